"""Everything the brain knows at one moment: the cluster, the forest, the queue, and what is still to be said.

`intake` changes the world under events, `cycle` reads it and decides. The change notes (`dirty`, `cures`)
collect between two turns which parked roots could be helped, so that a burst of events costs one look.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from muster.api import types
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.volumes import bound
from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Group, Member
from muster.scheduler.groups.validity import TreeFault
from muster.scheduler.interface.cluster_events import ClusterEvents
from muster.scheduler.interface.decisions import Decision
from muster.scheduler.interface.keys import EntityKey, ObjectRef
from muster.scheduler.placement.verdict import Judged
from muster.scheduler.preemption.result import MOST_ROUNDS, PreemptionAttempt
from muster.scheduler.preemption.victims import VictimIndex
from muster.scheduler.queue.entity import CapacityHint, QueuedEntity
from muster.scheduler.queue.scheduling_queue import SchedulingQueue
from muster.scheduler.runtime.config import Config
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.state.nominations import Nomination
from muster.scheduler.state.preemptions import PreemptionInProgress
from muster.scheduler.status.conditions import ConditionWriter
from muster.scheduler.status.waiting import NoticeTimer

PLENTY = 1 << 40


_NOBODY: frozenset[str] = frozenset()


@dataclass(slots=True)
class SchedulerState:
    config: Config
    evaluator: Evaluator
    queue: SchedulingQueue
    forest: Forest = field(default_factory=Forest)
    conditions: ConditionWriter = field(default_factory=ConditionWriter)
    notices: NoticeTimer = field(default_factory=NoticeTimer)
    budgets: dict[tuple[str, str], types.PodDisruptionBudget] = field(
        default_factory=dict[tuple[str, str], types.PodDisruptionBudget]
    )
    holds: dict[str, Nomination] = field(default_factory=dict[str, Nomination])
    preempting: dict[EntityKey, PreemptionInProgress] = field(default_factory=dict[EntityKey, PreemptionInProgress])
    orphans: set[str] = field(default_factory=set[str])  # marked victims whose preemptor is not known (after a restart)
    leaving: set[str] = field(default_factory=set[str])  # bound pods that are terminating
    broken_since: dict[EntityKey, float] = field(default_factory=dict[EntityKey, float])
    faults: dict[EntityKey, TreeFault] = field(default_factory=dict[EntityKey, TreeFault])
    awaiting_binds: set[EntityKey] = field(default_factory=set[EntityKey])  # roots whose victims are just being bound
    refused: dict[str, float] = field(default_factory=dict[str, float])  # pods the API would not delete, until when
    rounds: deque[PreemptionAttempt] = field(
        default_factory=lambda: deque[PreemptionAttempt](maxlen=MOST_ROUNDS)
    )  # for those who count
    judged: deque[Judged] = field(default_factory=lambda: deque[Judged](maxlen=MOST_ROUNDS))
    outbox: list[Decision] = field(default_factory=list[Decision])
    dirty: set[int] = field(default_factory=set[int])  # slots that gained room or changed
    cures: set[str] = field(default_factory=set[str])  # whose refusals a change could have cured
    _curable: dict[str, set[str]] = field(init=False, default_factory=dict[str, set[str]])  # change -> constraints
    reviewed: set[EntityKey] = field(default_factory=set[EntityKey])  # groups whose bound members changed
    suspects: set[EntityKey] = field(default_factory=set[EntityKey])  # trees whose objects changed
    version: int = 0  # another one whenever a pod, a node or a group is another
    victim_index: VictimIndex = field(default_factory=VictimIndex)
    synced: bool = False

    @property
    def cluster(self) -> Cluster:
        return self.evaluator.cluster

    def __post_init__(self) -> None:
        for profile in self.config.profiles.values():
            for constraint in profile.filters:
                for change in constraint.requeue_events:
                    self._curable.setdefault(change, set()).add(constraint.name)

    def note(self, changed: ClusterEvents) -> None:
        """Remember whose refusals a change could have cured."""
        for change in changed:
            self.cures |= self._curable.get(change, _NOBODY)

    def shape_of(self, member: Member) -> Shape:
        """The shape of a pod, looked up once for as long as no selector tells more pods apart."""
        if member.shape is None or member.shape_epoch != len(self.cluster.pod_counts.keys):
            member.shape = self.evaluator.shape(member.pod, self.config.profiles[member.traits[0]])
            member.shape_epoch = len(self.cluster.pod_counts.keys)
        return member.shape

    def domain_of(self, node: str, key: str) -> str:
        """The value of a node's label, empty without it."""
        slot = self.cluster.index.get(node)
        if slot is None:
            return ""
        return self.cluster.label_value(key, int(self.cluster.labels(key)[slot]))

    def capacity(self, want: CapacityHint) -> tuple[int, int]:
        """The most seats of one shape in one domain, and in all."""
        with self.evaluator.trial() as trial:
            seats = trial.seats(want.shape)
        if want.weak:
            changed = [slot for slot in self.dirty if slot < len(seats)]
            hit = bool(changed) and bool(seats[changed].any())
            return (PLENTY, PLENTY) if hit else (0, 0)
        if want.topology is None:
            total = int(seats.sum())
            return total, total
        values = self.cluster.labels(want.topology)
        sums = np.bincount(values, weights=np.minimum(seats, PLENTY))[1:]
        return (int(sums.max()), int(sums.sum())) if len(sums) else (0, 0)

    def top(self, key: EntityKey) -> Group | None:
        """The group at the top of a tree, if it still is one."""
        group = self.forest.groups.get(key)
        return group.root() if group is not None else None

    def scheduler_of(self, entity: QueuedEntity) -> str:
        """The profile that places a root; empty when nobody of it is pending."""
        members = self.members_of(entity)
        return members[0].traits[0] if members else ""

    def members_of(self, entity: QueuedEntity) -> list[Member]:
        """The pending pods of a root, in the order in which they are placed."""
        if entity.member is not None:
            return [entity.member]
        assert entity.group is not None
        pending = [member for leaf in entity.group.leaves() for member in leaf.pending.values()]
        return sorted(pending, key=lambda member: member.order)

    def waits_for_volumes(self, member: Member) -> bool:
        """Whether a claim of the pod is not bound yet."""
        claims = (
            self.cluster.volumes.claims.get((member.ref.namespace, name))
            for name in self.shape_of(member).footprint.claims
        )
        return any(claim is not None and not bound(claim) for claim in claims)

    def held_against(self, entity: QueuedEntity) -> list[tuple[Shape, int]]:
        """The seats that this root must not take: those of others with its priority or more."""
        return [
            (hold.shape, self.cluster.index[hold.node])
            for hold in self.holds.values()
            if hold.entity != entity.key and hold.priority >= entity.priority and hold.node in self.cluster.index
        ]

    def going(self) -> frozenset[str]:
        """Pods on nodes that will be gone without any further word: terminating, or asked to."""
        doomed = {uid for under_way in self.preempting.values() for uid in under_way.doomed}
        surely = self.leaving | (doomed - self.refused.keys())
        return frozenset(uid for uid in surely if uid in self.cluster.pods)

    def release(self, key: EntityKey) -> None:
        """Give back every seat held for a root."""
        for uid in [uid for uid, hold in self.holds.items() if hold.entity == key]:
            del self.holds[uid]
            member = self.forest.members.get(uid)
            if member is not None:
                member.nominated = ""

    def ref_of(self, entity: QueuedEntity) -> ObjectRef:
        """The object that a root is, for events and messages."""
        if entity.member is not None:
            return entity.member.ref
        assert entity.group is not None
        return entity.group.ref
