"""Victims: the indivisible sets of running pods below a priority that could be evicted.

The victim of a pod is the whole subtree of its highest ancestor whose disruption mode is `all`; without such an
ancestor it is the pod alone. A victim has the priority of its root. Pods that are terminating already belong to no
victim; a subtree with a pod that cannot be evicted now (its bind is in flight) is no victim as a whole.

Many entities may fail in one state of the cluster and ask for the same victims: `VictimIndex` computes them once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.cluster import Cluster, PlacedPod
from muster.scheduler.cache.footprints import Footprint
from muster.scheduler.cache.run_times import seconds_of
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Group, Member, priority_of
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.preemption.victim_table import SUBTREE, PodRows, Subtree, VictimTable, start_time


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
            found = possible_victims(forest, cluster, priority, marked=marked, excluded=excluded)
            self._candidates = Candidates(found, quorums(found))
            self._state = state
        return self._candidates


# --- victims ---------------------------------------------------------------------------------------


def possible_victims(
    forest: Forest, cluster: Cluster, below: int, *, marked: Collection[str] = (), excluded: Collection[str] = ()
) -> VictimTable:
    """Every victim of lower priority."""
    running = _RunningPods(forest, cluster)
    low = (running.priority < below) & ~running.column("terminating")
    assumed = running.column("assumed")
    kept = assumed | running.among(excluded) if excluded else assumed
    evictable, alone = low & ~kept, running.subtree_of < 0
    single = np.flatnonzero(evictable & alone & (running.slot >= 0))
    whole = running.whole_subtrees(np.flatnonzero(evictable & ~alone), np.flatnonzero(low & kept & ~alone))
    return _table(running, single, whole, marked)


class _RunningPods:
    """Columns over all pods on nodes, and what those of one PodGroup have in common."""

    def __init__(self, forest: Forest, cluster: Cluster) -> None:
        self.cluster = cluster
        self.entries: list[PlacedPod] = list(cluster.pods.values())
        self.members: list[Member] = list(map(forest.members.__getitem__, cluster.pods))
        self.slot: Ints = np.fromiter(map(_SLOT, self.entries), np.int64, len(self.entries))
        self._group: list[Group | None] = list(map(_GROUP, self.members))
        numbers = {group: number for number, group in enumerate(each for each in dict.fromkeys(self._group) if each)}
        self.groups: list[Group] = list(numbers)
        self.group_of: Ints = numbered(self._group, {**numbers, None: -1})
        self.subtrees: list[Group] = []
        priorities, subtrees, rooted = self._traits()
        own = np.flatnonzero(~np.append(rooted, False)[self.group_of])
        self.priority: Ints = np.append(priorities, 0)[self.group_of]
        self.priority[own] = [self.members[pod].traits[1] for pod in own.tolist()]
        self.subtree_of: Ints = np.append(subtrees, -1)[self.group_of]

    def _traits(self) -> tuple[Ints, Ints, Bools]:
        """Per group, the priority of its pods as victims, and the subtree that is evicted as a whole (-1 for none).

        Also whether the top of its tree exists: without it each pod has its own priority (as in `victim_priority`).
        """
        known: dict[Group, int] = {}
        priorities, subtrees = [0] * len(self.groups), [-1] * len(self.groups)
        rooted = np.zeros(len(self.groups), dtype=np.bool_)
        for number, group in enumerate(self.groups):
            top = group.root()
            if top.exists:
                rooted[number], priorities[number] = True, priority_of(top)
            ancestor = disrupted_as_whole(group)
            if ancestor is not None:
                subtrees[number] = known.setdefault(ancestor, len(known))
        self.subtrees = list(known)
        return np.array(priorities, dtype=np.int64), np.array(subtrees, dtype=np.int64), rooted

    def whole_subtrees(self, pods: Ints, kept: Ints) -> Ints:
        """Those of the pods whose whole subtree can be evicted and would free room, subtree by subtree."""
        size = len(self.subtrees)
        frees_room = np.bincount(self.subtree_of[pods[self.slot[pods] >= 0]], minlength=size) > 0
        complete = np.bincount(self.subtree_of[kept], minlength=size) == 0
        pods = pods[(frees_room & complete)[self.subtree_of[pods]]]
        return pods[np.argsort(self.subtree_of[pods], kind="stable")]

    def column(self, name: str) -> Bools:
        return np.fromiter(map(attrgetter(name), self.entries), np.bool_, len(self.entries))

    def among(self, uids: Collection[str]) -> Bools:
        return np.fromiter(map(uids.__contains__, self.cluster.pods), np.bool_, len(self.entries))

    def started(self, pods: list[int]) -> npt.NDArray[np.float64]:
        """When pods were started, in seconds since the epoch; 0 where that cannot be read."""
        members = list(map(self.members.__getitem__, pods))
        texts: list[str] = list(map(_STARTED, members))
        if not all(texts):
            texts = list(map(start_time, members))
        times = {text: seconds_of(text) or 0.0 for text in set(texts)}
        return np.fromiter(map(times.__getitem__, texts), np.float64, len(texts))

    def footprints(self, pods: list[int]) -> tuple[list[Footprint], Ints]:
        """The distinct footprints of pods, and which of them each pod has."""
        found = [self.entries[pod].footprint for pod in pods]
        distinct = list(dict.fromkeys(found))
        return distinct, numbered(found, {footprint: number for number, footprint in enumerate(distinct)})


def numbered(items: Sequence[Any], numbers: Mapping[Any, int]) -> Ints:
    """The number of each item."""
    return np.fromiter(map(numbers.__getitem__, items), np.int64, len(items))


_SLOT, _GROUP, _STARTED = attrgetter("slot"), attrgetter("group"), attrgetter("pod.status.start_time")


def _table(running: _RunningPods, single: Ints, whole: Ints, marked: Collection[str]) -> VictimTable:
    """The single pods and the subtrees as one table; `whole` are the pods of the subtrees, one after the other."""
    pods = np.append(single, whole)
    numbers: list[int] = pods.tolist()
    subtrees = _subtrees(running, numbers[len(single) :])
    sizes = np.array([1] * len(single) + [len(each.members) for each in subtrees], dtype=np.int64)
    firsts = np.append(0, np.cumsum(sizes))[:-1]  # of each victim, the first of its rows
    footprints, footprint = running.footprints(numbers)
    there = running.slot[pods] >= 0
    rows = PodRows(np.repeat(np.arange(len(sizes)), sizes)[there], running.slot[pods][there], footprint[there])
    flags = running.among(marked)[pods] if marked else np.zeros(len(pods), dtype=np.bool_)
    started = running.started(numbers)
    return VictimTable(
        [*map(running.members.__getitem__, numbers[: len(single)]), *subtrees],
        priority=running.priority[pods[firsts]],
        marked=np.maximum.reduceat(flags, firsts) if len(firsts) else flags,
        started=np.maximum.reduceat(started, firsts) if len(firsts) else started,
        start_sum=np.add.reduceat(started, firsts) if len(firsts) else started,
        sizes=sizes,
        groups=running.groups,
        group_of=np.append(running.group_of[single], np.full(len(subtrees), SUBTREE)),
        footprints=footprints,
        pods=rows,
    )


def _subtrees(running: _RunningPods, pods: list[int]) -> list[Subtree]:
    """The subtrees of pods that come one subtree after the other."""
    found: list[Subtree] = []
    numbers: list[int] = running.subtree_of[pods].tolist()
    for pod, number in zip(pods, numbers, strict=True):
        group = running.subtrees[number]
        if not found or found[-1].group is not group:
            found.append(Subtree(group))
        found[-1].members.append(running.members[pod])
    return found


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
