"""Victims: the indivisible sets of running pods below a priority that could be evicted.

The victim of a pod is the whole subtree of its highest ancestor whose disruption mode is `all`; without such an
ancestor it is the pod alone. A victim has the priority of its root. Pods that are terminating already belong to no
victim; a subtree with a pod that cannot be evicted now (its bind is in flight) is no victim as a whole.

Many entities may fail in one state of the cluster and ask for the same victims: `VictimIndex` computes them once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.cluster import Cluster, PlacedPod
from muster.scheduler.cache.footprints import Footprint
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Group, Member, priority_of
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.preemption.victim_table import PodRows, Victim, VictimTable, start


class Quorum(NamedTuple):
    """A group that victims belong to: what it has now (members, or satisfied children), and what it needs."""

    bound: int
    minimum: int
    gang: bool  # a basic group has no minimum that could break
    parent: EntityKey | None


class Candidates(NamedTuple):
    """The victims below a priority."""

    victims: VictimTable
    quorums: Mapping[EntityKey, Quorum]
    in_flight: bool  # some pods cannot be evicted yet because their bind is in flight


class VictimIndex:
    """The candidates of the last state that was asked about."""

    def __init__(self) -> None:
        self._state: tuple[int, int, frozenset[str], frozenset[str]] | None = None
        self._candidates: Candidates | None = None

    def below(
        self, priority: int, forest: Forest, cluster: Cluster, version: int, *, marked: Set[str], excluded: Set[str]
    ) -> Candidates:
        """The victims of lower priority; the result is the same for as long as `version` is."""
        state = (version, priority, frozenset(marked), frozenset(excluded))
        if self._candidates is None or state != self._state:
            found, in_flight = possible_victims(forest, cluster, priority, marked=marked, excluded=excluded)
            self._candidates = Candidates(found, quorums(found), in_flight)
            self._state = state
        return self._candidates


# --- victims ---------------------------------------------------------------------------------------


def possible_victims(
    forest: Forest, cluster: Cluster, below: int, *, marked: Collection[str] = (), excluded: Collection[str] = ()
) -> tuple[VictimTable, bool]:
    """Every victim of lower priority, and whether some pods are left out because their bind is in flight."""
    running = _RunningPods(forest, cluster)
    low = (running.priority < below) & ~running.column("terminating")
    assumed = running.column("assumed")
    kept = assumed | running.among(excluded) if excluded else assumed
    evictable = low & ~kept
    for subtree in running.subtrees_of(low & kept):
        subtree.complete = False
    in_subtree = evictable & (running.subtree_of >= 0)
    for member, subtree in zip(running.members_of(in_subtree), running.subtrees_of(in_subtree), strict=True):
        subtree.members.append(member)
    complete = [subtree for subtree in running.subtrees if subtree.complete and subtree.frees_room(cluster)]
    single = np.flatnonzero(evictable & (running.subtree_of < 0) & (running.slot >= 0))
    return _table(running, single, [_together(each, marked) for each in complete], marked), bool((low & assumed).any())


class _RunningPods:
    """Columns over all pods on nodes, and what those of one PodGroup have in common."""

    def __init__(self, forest: Forest, cluster: Cluster) -> None:
        self.cluster = cluster
        self.entries: list[PlacedPod] = list(cluster.pods.values())
        self.members: list[Member] = list(map(forest.members.__getitem__, cluster.pods))
        self.slot: Ints = np.fromiter(map(attrgetter("slot"), self.entries), np.int64, len(self.entries))
        self.groups: list[Group] = []
        self.subtrees: list[_Subtree] = []
        self.group_of = self._find_groups()
        priorities, subtrees = self._traits()
        alone = np.flatnonzero(self.group_of < 0)
        self.priority: Ints = np.append(priorities, 0)[self.group_of]
        self.priority[alone] = [self.members[pod].traits[1] for pod in alone.tolist()]
        self.subtree_of: Ints = np.append(subtrees, -1)[self.group_of]

    def _find_groups(self) -> Ints:
        """Per pod, the index of its group; -1 without one."""
        self._first: list[Member] = []  # of each group
        known: dict[Group | None, int] = {None: -1}
        found: list[int] = []
        for member in self.members:
            number = known.get(member.group)
            if number is None:
                assert member.group is not None
                number = known[member.group] = len(self.groups)
                self.groups.append(member.group)
                self._first.append(member)
            found.append(number)
        return np.array(found, dtype=np.int64)

    def _traits(self) -> tuple[Ints, Ints]:
        """Per group, the priority of its pods as victims, and the subtree that is evicted as a whole (-1 for none)."""
        known: dict[EntityKey, int] = {}
        priorities, subtrees = [0] * len(self.groups), [-1] * len(self.groups)
        for number, (group, member) in enumerate(zip(self.groups, self._first, strict=True)):
            priorities[number] = victim_priority(member)
            ancestor = disrupted_as_whole(group)
            if ancestor is not None:
                if ancestor.key not in known:
                    known[ancestor.key] = len(self.subtrees)
                    self.subtrees.append(_Subtree(ancestor.key, priorities[number]))
                subtrees[number] = known[ancestor.key]
        return np.array(priorities, dtype=np.int64), np.array(subtrees, dtype=np.int64)

    def members_of(self, pods: Bools) -> list[Member]:
        numbers: list[int] = np.flatnonzero(pods).tolist()
        return [self.members[pod] for pod in numbers]

    def subtrees_of(self, pods: Bools) -> list[_Subtree]:
        """The subtree of each of these pods, for those that are in one."""
        numbers: list[int] = self.subtree_of[pods & (self.subtree_of >= 0)].tolist()
        return [self.subtrees[number] for number in numbers]

    def column(self, name: str) -> Bools:
        return np.fromiter(map(attrgetter(name), self.entries), np.bool_, len(self.entries))

    def among(self, uids: Collection[str]) -> Bools:
        return np.fromiter(map(uids.__contains__, self.cluster.pods), np.bool_, len(self.entries))


def _table(running: _RunningPods, single: Ints, together: list[Victim], marked: Collection[str]) -> VictimTable:
    """The single pods and the subtrees as one table."""
    pods: list[int] = single.tolist()
    entries = [running.entries[pod] for pod in pods]
    entries += [running.cluster.pods[uid] for victim in together for uid in victim.uids]
    counts = np.array([1] * len(pods) + [len(victim.uids) for victim in together], dtype=np.int64)
    slot = np.fromiter(map(attrgetter("slot"), entries), np.int64, len(entries))
    known: dict[Footprint, int] = {}
    footprint = np.array([known.setdefault(entry.footprint, len(known)) for entry in entries], dtype=np.int64)
    there = slot >= 0
    rows = PodRows(np.repeat(np.arange(len(counts)), counts)[there], slot[there], footprint[there])
    sources: list[Member | Victim] = [running.members[pod] for pod in pods]
    flags = [member.uid in marked for member in sources] if marked else [False] * len(pods)  # type: ignore[union-attr]
    return VictimTable(
        [*sources, *together],
        priority=np.append(running.priority[single], [victim.priority for victim in together]).astype(np.int64),
        marked=np.array([*flags, *(victim.marked for victim in together)], dtype=np.bool_),
        groups=running.groups,
        group_of=np.append(running.group_of[single], [-1] * len(together)).astype(np.int64),
        footprints=list(known),
        pods=rows,
    )


@dataclass(slots=True)
class _Subtree:
    """Running pods below one group of disruption mode `all`; those whose node is gone are evicted with the others."""

    key: EntityKey
    priority: int
    members: list[Member] = field(default_factory=list[Member])
    complete: bool = True  # every running pod below the group can be evicted now

    def frees_room(self, cluster: Cluster) -> bool:
        """Whether any of the pods is on a node that exists."""
        return any(cluster.pods[member.uid].slot >= 0 for member in self.members)


def victim_priority(member: Member) -> int:
    """The priority of the pod's root; a pod without a group, or whose top was never seen, has its own."""
    if member.group is None:
        return member.traits[1]
    top = member.group.root()
    return priority_of(top) if top.exists else member.traits[1]


def disrupted_as_whole(group: Group) -> Group | None:
    """The highest ancestor (or the group itself) whose disruption mode is `all`."""
    highest: Group | None = None
    current: Group | None = group
    while current is not None:
        if current.disrupts_all:
            highest = current
        current = current.parent if not current.cyclic else None
    return highest


def _together(subtree: _Subtree, marked: Collection[str]) -> Victim:
    members = sorted(subtree.members, key=lambda member: member.uid)
    losses: dict[EntityKey, int] = {}
    for member in members:
        assert member.group is not None
        losses[member.group.key] = losses.get(member.group.key, 0) + 1
    return Victim(
        subtree.key,
        tuple(member.uid for member in members),
        subtree.priority,
        tuple(map(start, members)),
        tuple(sorted(losses.items())),
        any(member.uid in marked for member in members),
    )


# --- quorums ---------------------------------------------------------------------------------------


def quorums(victims: VictimTable) -> dict[EntityKey, Quorum]:
    """The quorum of every group that would lose something, and of all groups above it."""
    known: dict[EntityKey, Quorum] = {}
    for losing in victims.groups:
        group: Group | None = losing
        while group is not None and group.key not in known:
            above = group.parent if not group.cyclic else None
            bound = group.bound if group.is_leaf else group.confirmed
            known[group.key] = Quorum(bound, group.minimum, _is_gang(group), above.key if above else None)
            group = above
    return known


def _is_gang(group: Group) -> bool:
    return group.obj is not None and group.obj.spec.scheduling_policy.gang is not None
