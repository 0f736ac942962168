"""Turns decisions into API calls: which call, in which order, behind which barrier.

Nothing is deleted before everything that announces it is written: an eviction waits for all DisruptionTarget conditions
and nominations that were decided before it, in this scheduling cycle or an earlier one. A bind overtakes what was still
to be written about the pod being unschedulable, because that is no longer true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muster.api.devices import ResourceClaim
from muster.api.groups import DISRUPTION_TARGET
from muster.api.types import Pod
from muster.client.clock import Clock
from muster.client.objects import part
from muster.client.protocol import Client, Obj
from muster.engine.api_calls.binding import BindConditions, BindingCall
from muster.engine.api_calls.call import ApiCall, Barrier
from muster.engine.api_calls.claims import AllocationCall, BindsAfterClaims, ReleaseCall
from muster.engine.api_calls.device_gate import BindGates, DeviceBindGate
from muster.engine.api_calls.event import DecidedEvents
from muster.engine.api_calls.eviction import EvictionCall
from muster.engine.api_calls.patches import ClaimAnnotationCall, StatusPatchCall, VolumeClaimRefCall
from muster.engine.api_calls.volume_gate import VolumeBindGate
from muster.engine.api_discovery import ServedApis
from muster.engine.call_queue import CallQueue
from muster.engine.latest_objects import LatestObjects
from muster.scheduler.interface.decisions import (
    AllocateClaim,
    Bind,
    DeallocateClaim,
    Decision,
    Evict,
    Nominate,
    PromiseVolume,
    RecordEvent,
    SelectVolumeNode,
    SetCondition,
)
from muster.scheduler.interface.events import Event
from muster.scheduler.interface.keys import ObjectRef

POD_SCHEDULED = "PodScheduled"


def _urgent_first(decisions: list[Decision]) -> list[Decision]:
    """Nothing waits for what a bound pod does not need any more, nor for events."""
    bound = {each.pod for each in decisions if isinstance(each, Bind)}

    def rank(decision: Decision) -> int:
        if isinstance(decision, RecordEvent):
            return 2
        return 1 if isinstance(decision, Nominate) and not decision.node and decision.pod in bound else 0

    return sorted(decisions, key=rank)


class ApiDispatcher:
    """Carries out the decisions of scheduling cycles."""

    def __init__(
        self,
        client: Client,
        served: ServedApis,
        queue: CallQueue,
        latest: LatestObjects,
        events: DecidedEvents,
        clock: Clock,
        report: Callable[[Event], None],
        bind_conditions: BindConditions,
    ) -> None:
        self._client = client
        self._served = served
        self._queue = queue
        self._latest = latest
        self._events = events
        self._clock = clock
        self._report = report
        self._bind_conditions = bind_conditions
        self._announcing: set[ApiCall] = set()  # DisruptionTargets and nominations that are not known to be written
        self._barrier: Barrier | None = None
        self.volume_gate = VolumeBindGate(latest.look, self._bind, report)
        self.device_gate = DeviceBindGate(latest.look, report)
        self.gates = BindGates(self.volume_gate, self.device_gate)

    def dispatch(self, decisions: list[Decision]) -> None:
        self._barrier = None
        volumes: list[SelectVolumeNode | PromiseVolume] = []  # for the bind that follows them
        gang: tuple[list[Bind], list[SelectVolumeNode | PromiseVolume]] = ([], [])
        together = any(isinstance(each, SelectVolumeNode | PromiseVolume) for each in decisions)
        claims = [each for each in decisions if isinstance(each, AllocateClaim)]
        if claims:
            decisions = self._bind_after_claims(decisions, claims)
        for decision in _urgent_first(decisions):
            match decision:
                case Bind() if together and self.in_group(decision.pod):
                    gang[0].append(decision)
                    gang[1].extend(volumes)
                    volumes = []
                case Bind() if volumes:
                    self.volume_gate.hold([decision], volumes, self._clock.now())
                    volumes = []
                case Bind():
                    self._bind(decision)
                case SelectVolumeNode():
                    volumes.append(decision)
                    self._queue.submit(ClaimAnnotationCall(decision, self._client, self._clock, self._latest))
                case PromiseVolume():
                    volumes.append(decision)
                    self._queue.submit(VolumeClaimRefCall(decision, self._client, self._clock, self._latest))
                case AllocateClaim():
                    pass  # was written above
                case DeallocateClaim():
                    self._queue.submit(ReleaseCall(decision.claim, decision.consumers, self._client, self._clock))
                case SetCondition():
                    self._set_condition(decision)
                case Nominate():
                    self._nominate(decision)
                case Evict():
                    self._evict(decision)
                case RecordEvent():
                    self.record(decision)
        if gang[0]:
            self.volume_gate.hold(*gang, self._clock.now())

    def _bind_after_claims(self, decisions: list[Decision], claims: list[AllocateClaim]) -> list[Decision]:
        """Write the claims of a plan; what binds its pods is dispatched when they are written. The other decisions."""
        later = [each for each in decisions if isinstance(each, Bind | SelectVolumeNode | PromiseVolume)]
        calls: dict[ObjectRef, list[AllocationCall]] = {}
        for decision in claims:
            call = self._queue.submit(AllocationCall(decision, self._client, self._clock))
            if isinstance(call, AllocationCall):
                calls.setdefault(decision.consumer, []).append(call)
        binds = [each for each in later if isinstance(each, Bind)]
        if len(binds) == len(later) and not any(self.in_group(bind.pod) for bind in binds):
            for bind in binds:  # pods that have nothing to do with each other
                self._hold([bind], calls.get(bind.pod, []), [bind])
        elif binds:
            self._hold(binds, [call for found in calls.values() for call in found], later)
        return [each for each in decisions if each not in later and not isinstance(each, AllocateClaim)]

    def _hold(self, binds: list[Bind], calls: list[AllocationCall], then: Sequence[Decision]) -> None:
        def undo(call: AllocationCall) -> None:
            consumers = (consumer.uid for consumer in call.consumers)
            self._queue.submit(ReleaseCall(call.claim, consumers, self._client, self._clock, call.allocation or {}))

        def give_back() -> None:
            for call in calls:
                undo(call)

        def written() -> None:
            if any(map(self._awaits_conditions, calls)):
                claims = [call.claim for call in calls]
                self.device_gate.hold(binds, claims, release, give_back, self._clock.now())
            else:
                release()

        def release() -> None:
            self.dispatch(list(then))

        self._queue.submit(BindsAfterClaims(binds, calls, written, undo, self._report), Barrier(calls))

    def _awaits_conditions(self, call: AllocationCall) -> bool:
        """Whether a claim has devices that must be made ready before a pod may use them."""
        if call.allocation is not None:
            results: list[Obj] = part(call.allocation, "devices").get("results") or []
            return any(result.get("bindingConditions") for result in results)
        known: ResourceClaim | None = self._latest.look("ResourceClaim", call.claim.namespace, call.claim.name)
        allocation = known.status.allocation if known is not None else None
        return any(each.binding_conditions for each in (allocation.devices.results if allocation else None) or ())

    def record(self, decision: RecordEvent) -> None:
        """Queue an event."""
        call = self._events.call(decision)
        if call is not None:
            self._queue.submit(call)

    def in_group(self, ref: ObjectRef) -> bool:
        """Whether a pod names a group."""
        pod: Pod | None = self._latest.look("Pod", ref.namespace, ref.name)
        return pod is not None and pod.spec.scheduling_group is not None

    def _bind(self, decision: Bind) -> None:
        call = BindingCall(decision, self._client, self._clock, self._report, self._bind_conditions)
        for queued in self._queue.queued(call.key):
            if isinstance(queued, StatusPatchCall):
                queued.conditions.pop(POD_SCHEDULED, None)
                queued.nominated = None
        self._queue.submit(call)

    def _set_condition(self, decision: SetCondition) -> None:
        call = self._status_patch(decision.about)
        if call is None:
            return
        target = decision.type == DISRUPTION_TARGET
        if target and decision.status != "True":
            self._cancel_eviction(call)
        carrier = self._queue.submit(call.add(decision))
        if target and decision.status == "True":
            self._announce(carrier)

    def _nominate(self, decision: Nominate) -> None:
        call = self._status_patch(decision.pod)
        if call is None:
            return
        carrier = self._queue.submit(call.add(decision))
        if decision.node:
            self._announce(carrier)

    def _status_patch(self, about: ObjectRef) -> StatusPatchCall | None:
        if about.kind not in self._served.resources:
            return None
        return StatusPatchCall(about, self._served.resource(about.kind), self._client, self._clock, self._latest)

    def _cancel_eviction(self, call: ApiCall) -> None:
        """A DisruptionTarget that is set to False cancels the deletion that it announced."""
        for queued in self._queue.queued(call.key):
            if isinstance(queued, EvictionCall):
                queued.cancelled = True

    def _announce(self, call: ApiCall | None) -> None:
        if call is not None:
            self._announcing.add(call)
            self._barrier = None

    def _evict(self, decision: Evict) -> None:
        if self._barrier is None:
            self._announcing = {call for call in self._announcing if not call.ended or call.error}
            self._barrier = Barrier(self._announcing)
            self._announcing = {call for call in self._announcing if not call.ended}
        call = EvictionCall(decision, self._client, self._clock, self._latest, self._report)
        self._queue.submit(call, self._barrier)
