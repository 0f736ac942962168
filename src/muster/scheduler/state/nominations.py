"""Nominations: seats kept for pods whose victims are still leaving, and for members of groups that do not exist yet.

A seat for a pod is kept while its entity waits for victims (`status.nominatedNodeName`). A seat for an expected member
is held once other members of its tree are bound, until a deadline that begins again with every member that comes; it
has a deadline, the others have none. The key is the uid of the pod, or what stands for it until the pod exists
(`groups.expected`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from muster.scheduler.cache.arrays import ChangeLog
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.requeue_signals import RequeueSignals


@dataclass(frozen=True, slots=True)
class Nomination:
    """One pod's seat on a node, kept for its entity against entities of lower or equal priority."""

    uid: str
    shape: Shape
    node: str
    priority: int
    entity: EntityKey
    group: EntityKey | None = None  # the PodGroup whose expected member it is for
    deadline: float | None = None  # until when it is held for a member to come; None while victims leave

    @property
    def is_held(self) -> bool:
        return self.deadline is not None


class Nominations:
    """All nominations, by pod or expected member, and which trees may have no seats held any more."""

    def __init__(self, cluster: Cluster, signals: RequeueSignals) -> None:
        self._cluster = cluster
        self._signals = signals
        self._by_pod: dict[str, Nomination] = {}
        self._epoch = 0  # how many label keys told pods apart when the shapes were looked up
        self._held: dict[EntityKey, set[str]] = {}  # entity -> uids of the seats held for it
        self._ended: set[EntityKey] = set()  # trees whose members did not come in time
        self._unsaid: set[EntityKey] = set()  # and on which that is still to be said
        self._wanted_until: dict[EntityKey, float] = {}  # trees that look for seats without a pending pod
        self._log_seen = 0

    def nominate(self, nomination: Nomination) -> None:
        old = self._by_pod.get(nomination.uid)
        if old is not None and replace(old, deadline=nomination.deadline) == nomination:
            self._put(nomination)  # the seat is the same
            return
        self.remove(nomination.uid)
        self._put(nomination)
        slot = self._cluster.index.get(nomination.node)
        if slot is not None:
            self._signals.taken(slot)
            self._signals.pod(nomination.shape.footprint)

    def _put(self, nomination: Nomination) -> None:
        self._drop_held(nomination.uid)
        self._by_pod[nomination.uid] = nomination
        if nomination.is_held:
            self._held.setdefault(nomination.entity, set()).add(nomination.uid)

    def _drop_held(self, uid: str) -> None:
        old = self._by_pod.get(uid)
        if old is not None and old.is_held:
            held = self._held[old.entity]
            held.discard(uid)
            if not held:
                del self._held[old.entity]

    def remove(self, uid: str) -> None:
        """The pod is gone, or its seat is not kept any longer."""
        self._drop_held(uid)
        nomination = self._by_pod.pop(uid, None)
        slot = self._cluster.index.get(nomination.node) if nomination is not None else None
        if nomination is not None and slot is not None:
            self._signals.nomination_cleared(slot, nomination.priority)
            self._signals.pod(nomination.shape.footprint)

    def renew(self, epoch: int, shape_of: Callable[[Shape], Shape]) -> None:
        """Pods are told apart by more labels than in an earlier epoch: look the shapes up again."""
        if self._epoch != epoch:
            self._epoch = epoch
            self._by_pod = {uid: replace(one, shape=shape_of(one.shape)) for uid, one in self._by_pod.items()}

    def clear(self, entity: EntityKey) -> list[str]:
        """Give back every seat kept for an entity while victims leave; the pods they were kept for."""
        if not self._by_pod:
            return []
        uids = [uid for uid, one in self._by_pod.items() if one.entity == entity and not one.is_held]
        for uid in uids:
            self.remove(uid)
        return uids

    def against(self, entity: EntityKey | None, priority: int) -> list[tuple[Shape, int]]:
        """The seats (shape, slot) that an entity must not take: those of others with its priority or more."""
        return [
            (nomination.shape, self._cluster.index[nomination.node])
            for nomination in self._by_pod.values()
            if nomination.entity != entity
            and nomination.priority >= priority
            and nomination.node in self._cluster.index
        ]

    def of(self, entity: EntityKey) -> dict[str, str]:
        """The pods that seats are kept for on behalf of an entity, and their nodes."""
        return {uid: one.node for uid, one in self._by_pod.items() if one.entity == entity}

    def entities(self) -> set[EntityKey]:
        """The entities whose victims leave, and for which seats are kept meanwhile."""
        return {nomination.entity for nomination in self._by_pod.values() if not nomination.is_held}

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_pod

    def __bool__(self) -> bool:
        return bool(self._by_pod)

    @property
    def all_held(self) -> bool:
        """Whether every seat is held for a member to come, or there is none."""
        return len(self._by_pod) == sum(map(len, self._held.values()))

    # --- seats held for members to come ------------------------------------------------------------

    def held(self, entity: EntityKey) -> list[Nomination]:
        """The seats held for members of a tree, in order."""
        return [self._by_pod[uid] for uid in sorted(self._held.get(entity, ()))]

    def held_by_uid(self, entity: EntityKey) -> dict[str, Nomination]:
        """The seats held for members of a tree, by the uid that stands for the member."""
        return {uid: self._by_pod[uid] for uid in sorted(self._held.get(entity, ()))}

    def holding(self) -> list[EntityKey]:
        """The trees that seats are held for."""
        return sorted(self._held)

    def release(self, entity: EntityKey, uids: Iterable[str] | None = None) -> None:
        """Give seats of a tree back: these, or all."""
        for uid in sorted(self._held.get(entity, ()) if uids is None else uids):
            self.remove(uid)

    def extend(self, entity: EntityKey, deadline: float) -> None:
        """A member came: the seats of the others are held until this time."""
        self._ended.discard(entity)
        self._unsaid.discard(entity)
        for uid in self._held.get(entity, ()):
            self._by_pod[uid] = replace(self._by_pod[uid], deadline=deadline)

    def end(self, entity: EntityKey) -> None:
        """The members of a tree did not come in time: nothing is held for them until one comes."""
        self.release(entity)
        if entity not in self._ended:
            self._ended.add(entity)
            self._unsaid.add(entity)

    def has_ended(self, entity: EntityKey) -> bool:
        return entity in self._ended

    def take_ended(self) -> list[EntityKey]:
        """The trees on which it is still to be said that nothing is held any more."""
        unsaid, self._unsaid = sorted(self._unsaid), set()
        return unsaid

    def forget(self, entity: EntityKey) -> None:
        """The tree is gone, or nothing of it is bound: it begins anew."""
        self.release(entity)
        self._ended.discard(entity)
        self._unsaid.discard(entity)
        self._wanted_until.pop(entity, None)

    # --- deadlines -----------------------------------------------------------------------------------

    def want(self, entity: EntityKey, until: float | None) -> None:
        """A tree without pending pods looks for seats until this time, or no longer."""
        if until is None:
            self._wanted_until.pop(entity, None)
        else:
            self._wanted_until[entity] = until

    def overdue(self, now: float) -> list[EntityKey]:
        """The trees that seats were held or looked for, until now."""
        found = {key for key, until in self._wanted_until.items() if until <= now}
        found |= {key for key, uids in self._held.items() if min(map(self._deadline, uids)) <= now}
        return sorted(found)

    def next_deadline(self) -> float | None:
        held = (self._deadline(uid) for uids in self._held.values() for uid in uids)
        return min((*self._wanted_until.values(), *held), default=None)

    def _deadline(self, uid: str) -> float:
        deadline = self._by_pod[uid].deadline
        assert deadline is not None
        return deadline

    def take_changed(self, log: ChangeLog) -> list[EntityKey]:
        """The trees with held seats on nodes that were logged since this was last asked, all if nobody knows."""
        changed, self._log_seen = log.since(self._log_seen), log.end
        if not self._held:
            return []
        if changed is None:
            return self.holding()
        slots, index = set(changed.tolist()), self._cluster.index
        return [
            key
            for key in self.holding()
            if any(index.get(self._by_pod[uid].node, -1) in slots | {-1} for uid in self._held[key])
        ]
