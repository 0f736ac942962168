"""A scheduler with an instant API server around it: objects are added, decisions carried out at once.

    world = a_world(nodes=[a_node("n0", cpu=4)])
    world.add(a_gang("g", min_count=3), *pods(3, group="g", cpu=1))
    world.run()
    assert world.bound() == {"g-0": "n0", ...}

The world plays the API server and the kubelet: binds happen, conditions are stored and come back as events,
victims leave. After every step it checks that no node is overcommitted.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from muster.api import gates as feature_gates
from muster.api import groups as api
from muster.api import quantity, types
from muster.api.devices import ResourceClaimStatus
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.runtime.config import Config, default_config, load
from tests.build.objects import RACK


class TestWorld:
    """A scheduler with an instant API server around it."""

    __test__ = False

    def __init__(
        self,
        nodes: Iterable[types.Node] = (),
        *,
        seed: int = 0,
        config: dict[str, Any] | None = None,
        features: str = "",
    ) -> None:
        self.now = 0.0
        gates = feature_gates.parse(features)[0]
        self.scheduler = Scheduler(load(config) if config else default_config(), seed=seed, gates=gates)
        self.objects: dict[tuple[str, str, str], Any] = {}
        self.log: list[d.Decision] = []
        self.events: list[d.RecordEvent] = []
        self.refuse_binds: set[str] = set()  # names of pods whose bind the API refuses once
        self.slow_victims = False  # victims stay terminating until `reap`
        self.add(*nodes)
        self._tell(events.CacheSynced())

    # --- facts -------------------------------------------------------------------------------------

    def _tell(self, event: events.Event) -> None:
        self.scheduler.handle(event, self.now)

    def add(self, *objects: Any) -> TestWorld:
        """Create or replace objects."""
        for obj in objects:
            kind = type(obj).__name__
            self.objects[kind, obj.metadata.namespace, obj.metadata.name] = obj
            self._tell(events.ObjectUpdated(kind, obj))
        return self

    def remove(self, kind: str, name: str, namespace: str = "ns") -> None:
        obj = self.objects.pop((kind, "" if kind == "Node" else namespace, name))
        self._tell(events.ObjectDeleted(kind, obj.metadata.namespace, name, obj.metadata.uid))

    def get(self, kind: str, name: str, namespace: str = "ns") -> Any:
        return self.objects[kind, "" if kind == "Node" else namespace, name]

    def pod(self, name: str) -> types.Pod:
        return self.get("Pod", name)

    def finish(self, name: str, phase: str = "Succeeded") -> None:
        pod = self.pod(name)
        self.add(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, phase=phase)))

    def terminate(self, name: str) -> None:
        pod = self.pod(name)
        self.add(msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp="now")))

    def reap(self) -> None:
        """Terminating pods are gone."""
        for (kind, namespace, name), obj in list(self.objects.items()):
            if kind == "Pod" and obj.metadata.deletion_timestamp:
                self.remove("Pod", name, namespace)

    def restart(self, config: Config | None = None) -> None:
        """The scheduler dies and a new one starts from what is stored, with this configuration or the same."""
        state = self.scheduler.state
        self.scheduler = Scheduler(config or state.config, gates=state.gates)
        for (kind, _, _), obj in sorted(self.objects.items(), key=lambda item: item[0]):
            self._tell(events.ObjectUpdated(kind, obj))
        self._tell(events.CacheSynced())

    # --- running -----------------------------------------------------------------------------------

    def step(self) -> list[d.Decision]:
        """One turn of the scheduler, carried out."""
        decisions = self.scheduler.next(self.now)
        for decision in decisions:
            self._carry_out(decision)
        self.log += decisions
        self.check()
        return decisions

    def run(self, turns: int = 10_000) -> TestWorld:
        """Turns until the scheduler has nothing more to do at this moment."""
        for _ in range(turns):
            if not self.step() and self.scheduler.is_idle(self.now):
                return self
        raise AssertionError(f"the scheduler does not come to rest: {self.log[-5:]}")

    def wait(self, seconds: float) -> TestWorld:
        """Let time pass, with every timer that runs out on the way."""
        end = self.now + seconds
        self.run()
        while (due := self.scheduler.wake_at(self.now)) is not None and due <= end:
            self.now = max(self.now, due)
            self.run()
            if self.scheduler.wake_at(self.now) == due:
                self.now = min(end, due + 0.001)
        self.now = end
        return self.run()

    def _carry_out(self, decision: d.Decision) -> None:
        match decision:
            case d.Bind(pod, node):
                self._bind(pod, node)
            case d.SetCondition(about, type_, status, reason, message):
                self._set_condition(about, types.Condition(type_, status, reason, message))
            case d.Nominate(pod, node):
                self._replace_status(pod, nominated_node_name=node)
            case d.Evict(pod, _):
                self._evict(pod)
            case d.RecordEvent():
                self.events.append(decision)
            case d.AllocateClaim():
                self._allocate(decision)
            case d.DeallocateClaim(claim):
                held = self.objects["ResourceClaim", claim.namespace, claim.name]
                self.add(msgspec.structs.replace(held, status=ResourceClaimStatus()))
            case d.SelectVolumeNode():
                pass

    def _stored(self, ref: ObjectRef) -> Any:
        """The object, if it is not another one of the same name."""
        obj = self.objects.get((ref.kind, ref.namespace, ref.name))
        return obj if obj is not None and obj.metadata.uid == ref.uid else None

    def _bind(self, ref: ObjectRef, node: str) -> None:
        pod = self._stored(ref)
        if pod is None or pod.metadata.deletion_timestamp:
            self._tell(events.BindFailed(ref.uid, node, "gone", events.POD_CHANGED))
            return
        if ref.name in self.refuse_binds:
            self.refuse_binds.discard(ref.name)
            self._tell(events.BindFailed(ref.uid, node, "refused"))
            return
        assert not pod.spec.node_name, f"{ref.name} is bound twice"
        self._tell(events.BindSucceeded(ref.uid, node))
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        status = msgspec.structs.replace(pod.status, phase="Running", nominated_node_name="")
        self.add(msgspec.structs.replace(pod, spec=spec, status=status))

    def _allocate(self, decision: d.AllocateClaim) -> None:
        claim = self.objects["ResourceClaim", decision.claim.namespace, decision.claim.name]
        status = msgspec.to_builtins(claim.status)
        if decision.allocation is not None:
            assert "allocation" not in status, f"{decision.claim.name} is allocated twice"
            status["allocation"] = decision.allocation
        consumer = {"resource": f"{decision.consumer.kind.lower()}s", "name": decision.consumer.name}
        status["reservedFor"] = [*status.get("reservedFor", ()), consumer | {"uid": decision.consumer.uid}]
        self.add(msgspec.structs.replace(claim, status=msgspec.convert(status, ResourceClaimStatus)))

    def _set_condition(self, about: ObjectRef, condition: types.Condition) -> None:
        obj = self._stored(about)
        if obj is not None:
            before = next((c for c in obj.status.conditions or () if c.type == condition.type), None)
            same = before is not None and before.status == condition.status
            time = before.last_transition_time if same and before is not None else self.timestamp()
            others = tuple(c for c in obj.status.conditions or () if c.type != condition.type)
            condition = msgspec.structs.replace(condition, last_transition_time=time)
            self._replace_status(about, conditions=(*others, condition))

    def timestamp(self) -> str:
        """The present time as the API writes it, `now` seconds into 1970."""
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _replace_status(self, ref: ObjectRef, **fields: Any) -> None:
        obj = self._stored(ref)
        if obj is not None:
            self.add(msgspec.structs.replace(obj, status=msgspec.structs.replace(obj.status, **fields)))

    def _evict(self, ref: ObjectRef) -> None:
        if self._stored(ref) is not None:
            self.terminate(ref.name)
            if not self.slow_victims:
                self.remove("Pod", ref.name, ref.namespace)

    # --- looking -----------------------------------------------------------------------------------

    def bound(self, prefix: str = "") -> dict[str, str]:
        """Pods that sit on a node, by name."""
        found = {name: obj.spec.node_name for (kind, _, name), obj in self.objects.items() if kind == "Pod"}
        return {name: node for name, node in sorted(found.items()) if node and name.startswith(prefix)}

    def pending(self, prefix: str = "") -> list[str]:
        every = [name for (kind, _, name), obj in self.objects.items() if kind == "Pod" and not obj.spec.node_name]
        return sorted(name for name in every if name.startswith(prefix))

    def evicted(self) -> list[str]:
        return sorted(decision.pod.name for decision in self.log if isinstance(decision, d.Evict))

    def condition(self, kind: str, name: str, type_: str | None = None) -> types.Condition | None:
        wanted = (
            type_
            or {
                "PodGroup": api.POD_GROUP_INITIALLY_SCHEDULED,
                "CompositePodGroup": api.COMPOSITE_INITIALLY_SCHEDULED,
                "Pod": "PodScheduled",
            }[kind]
        )
        conditions = self.get(kind, name).status.conditions or ()
        return next((c for c in conditions if c.type == wanted), None)

    def domain(self, name: str, key: str = RACK) -> str:
        return self.get("Node", self.pod(name).spec.node_name).metadata.labels[key]

    def check(self) -> None:
        """No node holds more than it has, counted from the objects alone."""
        used: dict[tuple[str, str], int] = {}
        for (kind, _, _), obj in self.objects.items():
            if kind == "Pod" and obj.spec.node_name and obj.status.phase not in ("Succeeded", "Failed"):
                for container in obj.spec.containers or ():
                    for resource, amount in ((container.resources and container.resources.requests) or {}).items():
                        key = (obj.spec.node_name, resource)
                        used[key] = used.get(key, 0) + quantity.milli(amount)
        for (node, resource), amount in used.items():
            found = self.objects.get(("Node", "", node))
            ignored = any(profile.ignores(resource) for profile in self.scheduler.state.config.profiles.values())
            if found is not None and not ignored:
                room = quantity.milli((found.status.allocatable or {}).get(resource, "0"))
                assert amount <= room, f"{node} is overcommitted: {resource} {amount} of {room}"


def a_world(nodes: Iterable[types.Node] = (), **options: Any) -> TestWorld:
    return TestWorld(nodes, **options)
