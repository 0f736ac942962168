"""Carries out decisions without a cluster: binds succeed, victims are deleted, conditions are only recorded.

This answers what would happen: the scheduler itself decides, on the objects of a snapshot, and the simulation takes the
place of the API server. Nothing leaves this process.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from muster.api.devices import ResourceClaimStatus
from muster.api.types import Condition
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.interface.keys import ObjectRef

MOST_CYCLES = 1_000_000


@dataclass(slots=True)
class Simulation:
    """One scheduler and the results of its decisions."""

    scheduler: Scheduler
    now: float = 0.0
    placed: dict[ObjectRef, str] = field(default_factory=dict[ObjectRef, str])  # pod -> node, in the order of the binds
    victims: dict[ObjectRef, ObjectRef] = field(default_factory=dict[ObjectRef, ObjectRef])  # pod -> preemptor
    # The last condition that was set on each object.
    conditions: dict[ObjectRef, d.SetCondition] = field(default_factory=dict[ObjectRef, d.SetCondition])

    def run(self) -> Simulation:
        """Scheduling cycles until there is nothing more to do at this time."""
        for _ in range(MOST_CYCLES):
            decisions = self.scheduler.next(self.now)
            if not decisions and self.scheduler.is_idle(self.now):
                return self
            for decision in decisions:
                self._carry_out(decision)
        raise RuntimeError(f"the simulation did not end after {MOST_CYCLES} cycles")

    def _carry_out(self, decision: d.Decision) -> None:
        match decision:
            case d.Bind(pod, node):
                self.placed[pod] = node
                self.scheduler.handle(events.BindSucceeded(pod.uid, node), self.now)
            case d.Evict(pod, preemptor):
                self.victims[pod] = preemptor
                self.placed.pop(pod, None)
                self.scheduler.handle(events.ObjectDeleted("Pod", pod.namespace, pod.name, pod.uid), self.now)
                self._give_back_claims(pod.uid)
            case d.SetCondition(about):
                self.conditions[about] = decision
                self._set_condition(decision)
            case _:
                pass

    def _give_back_claims(self, uid: str) -> None:
        """Claims are no longer reserved for a pod that is gone; without any consumer they lose their devices."""
        for claim in list(self.scheduler.state.cluster.devices.claims.claims.values()):
            consumers = claim.status.reserved_for or ()
            left = tuple(each for each in consumers if each.uid != uid)
            if len(left) < len(consumers):
                status = msgspec.structs.replace(claim.status, reserved_for=left) if left else ResourceClaimStatus()
                updated = msgspec.structs.replace(claim, status=status)
                self.scheduler.handle(events.ObjectUpdated("ResourceClaim", updated), self.now)

    def _set_condition(self, decision: d.SetCondition) -> None:
        """The conditions of a pod decide which are set next; those of groups the scheduler remembers itself."""
        member = self.scheduler.state.forest.members.get(decision.about.uid)
        if member is None:
            return
        old = tuple(c for c in member.pod.status.conditions or () if c.type != decision.type)
        new = Condition(decision.type, decision.status, decision.reason, decision.message)
        status = msgspec.structs.replace(member.pod.status, conditions=(*old, new))
        self.scheduler.handle(events.ObjectUpdated("Pod", msgspec.structs.replace(member.pod, status=status)), self.now)
