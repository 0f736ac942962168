"""Playing decisions out without a cluster: binds succeed, victims leave, conditions are only written down.

This is how "what would happen" is answered: the brain itself decides, on the facts of a snapshot, and the rehearsal
plays the API server. Nothing leaves this process.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from muster.api.types import Condition
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.interface.keys import ObjectRef

MOST_TURNS = 1_000_000


@dataclass(slots=True)
class Simulation:
    """One brain and what came of its decisions."""

    scheduler: Scheduler
    now: float = 0.0
    placed: dict[ObjectRef, str] = field(default_factory=dict[ObjectRef, str])  # pod -> node, in the order of the binds
    victims: dict[ObjectRef, ObjectRef] = field(default_factory=dict[ObjectRef, ObjectRef])  # pod -> for whom
    words: dict[ObjectRef, d.SetCondition] = field(
        default_factory=dict[ObjectRef, d.SetCondition]
    )  # the last word on each

    def run(self) -> Simulation:
        """Turns until there is nothing more to do at this moment."""
        for _ in range(MOST_TURNS):
            decisions = self.scheduler.next(self.now)
            if not decisions:
                return self
            for decision in decisions:
                self._play(decision)
        raise RuntimeError("the rehearsal does not come to rest")

    def _play(self, decision: d.Decision) -> None:
        match decision:
            case d.Bind(pod, node):
                self.placed[pod] = node
                self.scheduler.handle(events.BindSucceeded(pod.uid, node), self.now)
            case d.Evict(pod, preemptor):
                self.victims[pod] = preemptor
                self.placed.pop(pod, None)
                self.scheduler.handle(events.ObjectDeleted("Pod", pod.namespace, pod.name, pod.uid), self.now)
            case d.SetCondition(about):
                self.words[about] = decision
                self._remember(decision)
            case _:
                pass

    def _remember(self, decision: d.SetCondition) -> None:
        """A pod's own conditions decide what is said about it next; groups are remembered by the brain itself."""
        member = self.scheduler.state.forest.members.get(decision.about.uid)
        if member is None:
            return
        old = tuple(c for c in member.pod.status.conditions or () if c.type != decision.type)
        new = Condition(decision.type, decision.status, decision.reason, decision.message)
        status = msgspec.structs.replace(member.pod.status, conditions=(*old, new))
        self.scheduler.handle(events.ObjectUpdated("Pod", msgspec.structs.replace(member.pod, status=status)), self.now)
