"""From decisions to writes: which lane, in which order, behind which barrier.

Nothing is deleted before everything that announces it is written: an eviction waits for all marks and
nominations that were decided before it, in this turn or an earlier one. A bind overtakes what was still
to be said about the pod's waiting, because that is no longer true.
"""

from __future__ import annotations

from collections.abc import Callable

from muster.api.groups import DISRUPTION_TARGET
from muster.api.types import Pod
from muster.client.protocol import Client
from muster.engine.binds import BindWrite
from muster.engine.claims import ClaimGate
from muster.engine.evictions import EvictWrite
from muster.engine.facts import Facts
from muster.engine.lanes import Barrier, Lanes, Write
from muster.engine.pace import Pace
from muster.engine.recorder import Recorder
from muster.engine.served import Served
from muster.engine.statuses import ClaimWrite, StatusWrite, VolumeWrite
from muster.scheduler.interface.decisions import (
    Bind,
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


class Dispatcher:
    """Carries out lists of decisions."""

    def __init__(
        self,
        client: Client,
        served: Served,
        lanes: Lanes,
        facts: Facts,
        recorder: Recorder,
        pace: Pace,
        report: Callable[[Event], None],
    ) -> None:
        self._client = client
        self._served = served
        self._lanes = lanes
        self._facts = facts
        self._recorder = recorder
        self._pace = pace
        self._report = report
        self._announcing: set[Write] = set()  # marks and nominations that are not known to be written
        self._barrier: Barrier | None = None
        self.claims = ClaimGate(facts.look, self._bind, report)

    def carry_out(self, decisions: list[Decision]) -> None:
        self._barrier = None
        chosen: list[SelectVolumeNode | PromiseVolume] = []  # for the bind that follows them
        gang: tuple[list[Bind], list[SelectVolumeNode | PromiseVolume]] = ([], [])
        together = any(isinstance(each, SelectVolumeNode | PromiseVolume) for each in decisions)
        for decision in _urgent_first(decisions):
            match decision:
                case Bind() if together and self._in_group(decision.pod):
                    gang[0].append(decision)
                    gang[1].extend(chosen)
                    chosen = []
                case Bind() if chosen:
                    self.claims.hold([decision], chosen, self._pace.now())
                    chosen = []
                case Bind():
                    self._bind(decision)
                case SelectVolumeNode():
                    chosen.append(decision)
                    self._lanes.submit(ClaimWrite(decision, self._client, self._pace, self._facts))
                case PromiseVolume():
                    chosen.append(decision)
                    self._lanes.submit(VolumeWrite(decision, self._client, self._pace, self._facts))
                case SetCondition():
                    self._say(decision)
                case Nominate():
                    self._nominate(decision)
                case Evict():
                    self._evict(decision)
                case RecordEvent():
                    self._recorder.record(decision)
        if gang[0]:
            self.claims.hold(*gang, self._pace.now())

    def _in_group(self, ref: ObjectRef) -> bool:
        pod: Pod | None = self._facts.look("Pod", ref.namespace, ref.name)
        return pod is not None and pod.spec.scheduling_group is not None

    def _bind(self, decision: Bind) -> None:
        write = BindWrite(decision, self._client, self._pace, self._report)
        for queued in self._lanes.queued(write.key):
            if isinstance(queued, StatusWrite):
                queued.conditions.pop(POD_SCHEDULED, None)
                queued.nominated = None
        self._lanes.submit(write)

    def _say(self, decision: SetCondition) -> None:
        write = self._status(decision.about)
        if write is None:
            return
        mark = decision.type == DISRUPTION_TARGET
        if mark and decision.status != "True":
            self._withdraw(write)
        carrier = self._lanes.submit(write.add(decision))
        if mark and decision.status == "True":
            self._announce(carrier)

    def _nominate(self, decision: Nominate) -> None:
        write = self._status(decision.pod)
        if write is None:
            return
        carrier = self._lanes.submit(write.add(decision))
        if decision.node:
            self._announce(carrier)

    def _status(self, about: ObjectRef) -> StatusWrite | None:
        if about.kind not in self._served.resources:
            return None
        return StatusWrite(about, self._served.resource(about.kind), self._client, self._pace, self._facts)

    def _withdraw(self, write: Write) -> None:
        """A mark that is taken back calls off the deletion it announced."""
        for queued in self._lanes.queued(write.key):
            if isinstance(queued, EvictWrite):
                queued.withdrawn = True

    def _announce(self, write: Write | None) -> None:
        if write is not None:
            self._announcing.add(write)
            self._barrier = None

    def _evict(self, decision: Evict) -> None:
        if self._barrier is None:
            self._announcing = {write for write in self._announcing if not write.ended or write.fault}
            self._barrier = Barrier(self._announcing)
            self._announcing = {write for write in self._announcing if not write.ended}
        write = EvictWrite(decision, self._client, self._pace, self._facts, self._report)
        self._lanes.submit(write, self._barrier)
