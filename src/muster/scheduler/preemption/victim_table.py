"""Victims as columns: with tens of thousands of them, an object is made only of those that are looked at.

A victim has a number, its index in the sequence. `pods` has one row for each pod of each victim that is on a known
node: the number of its victim, its slot and its footprint, sorted by victim.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.footprints import Footprint
from muster.scheduler.groups.group import Group, Member
from muster.scheduler.interface.keys import EntityKey

Losses = tuple[tuple[EntityKey, int], ...]


class Victim(NamedTuple):
    """Pods that are evicted together or not at all."""

    key: EntityKey  # the pod itself, or the highest ancestor whose disruption mode is `all`
    uids: tuple[str, ...]
    priority: int  # of the root
    starts: tuple[str, ...]  # start time of each pod
    losses: Losses = ()  # PodGroups and how many members each would lose
    marked: bool = False  # has the condition DisruptionTarget already: evicting it costs nothing more


class Subtree:
    """Running pods below one group of disruption mode `all`; those whose node is gone are evicted with the others."""

    __slots__ = ("group", "members")

    def __init__(self, group: Group) -> None:
        self.group = group
        self.members: list[Member] = []

    def losses(self) -> Losses:
        """PodGroups and how many members each would lose."""
        if self.group.is_leaf:
            return ((self.group.key, len(self.members)),)
        lost: dict[EntityKey, int] = {}
        for member in self.members:
            assert member.group is not None
            lost[member.group.key] = lost.get(member.group.key, 0) + 1
        return tuple(sorted(lost.items()))


class PodRows(NamedTuple):
    """The pods of all victims on known nodes, sorted by victim."""

    victim: Ints
    slot: Ints
    footprint: Ints  # index of `VictimTable.footprints`


class VictimTable(Sequence[Victim]):
    """A sequence of victims that makes a `Victim` when it is asked for."""

    def __init__(
        self,
        sources: list[Member | Subtree],
        *,
        priority: Ints,
        marked: Bools,
        started: npt.NDArray[np.float64],
        start_sum: npt.NDArray[np.float64],
        sizes: Ints,
        groups: list[Group],
        group_of: Ints,
        footprints: list[Footprint],
        pods: PodRows,
    ) -> None:
        self._sources = sources  # a member is a victim by itself
        self._made: dict[int, Victim] = {}
        self.priority = priority
        self.marked = marked
        self.started = started  # seconds since the epoch; of a subtree, of the pod that was started last
        self.start_sum = start_sum  # the same, of all pods of a victim together
        self.sizes = sizes  # how many pods
        self.groups = groups  # PodGroups that would lose members
        self.group_of = group_of  # index of `groups` for a single pod; -1 for one without a group, -2 for subtrees
        self.footprints = footprints
        self.pods = pods

    def __len__(self) -> int:
        return len(self._sources)

    @overload
    def __getitem__(self, index: int) -> Victim: ...

    @overload
    def __getitem__(self, index: slice) -> list[Victim]: ...

    def __getitem__(self, index: int | slice) -> Victim | list[Victim]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        made = self._made.get(index)
        if made is None:
            made = self._made[index] = self._victim(index)
        return made

    def _victim(self, number: int) -> Victim:
        source = self._sources[number]
        priority, marked = int(self.priority[number]), bool(self.marked[number])
        if isinstance(source, Subtree):
            members = sorted(source.members, key=_UID)
            uids, starts = tuple(map(_UID, members)), tuple(map(start_time, members))
            return Victim(source.group.key, uids, priority, starts, source.losses(), marked)
        ref = source.ref
        key = EntityKey("Pod", ref.namespace, ref.name)
        return Victim(key, (ref.uid,), priority, (start_time(source),), self.losses(number), marked)

    def losses(self, number: int) -> Losses:
        """PodGroups and how many members each would lose by a victim."""
        source, group = self._sources[number], int(self.group_of[number])
        if isinstance(source, Subtree):
            return source.losses()
        return ((self.groups[group].key, 1),) if group >= 0 else ()

    def subtrees(self) -> list[tuple[int, Subtree]]:
        """The victims that are whole subtrees, with their numbers."""
        numbers: list[int] = np.flatnonzero(self.group_of == SUBTREE).tolist()
        return [(number, each) for number in numbers if isinstance(each := self._sources[number], Subtree)]

    def by_key(self, numbers: Ints) -> Ints:
        """Some victims in the order of their keys."""
        wanted: list[int] = numbers.tolist()
        sources = list(map(self._sources.__getitem__, wanted))
        whole = (self.group_of[numbers] == SUBTREE).any()
        keys = [each.group.key if isinstance(each, Subtree) else each.ref for each in sources] if whole else sources
        kind, namespace, name = _KEY if whole else _REF
        names = list(map(name, keys))
        order = sorted(range(len(keys)), key=names.__getitem__)  # plain texts are compared fastest
        if len(set(map(namespace, keys))) > 1:
            order.sort(key=lambda at: namespace(keys[at]))
        if whole and len(set(map(kind, keys))) > 1:
            order.sort(key=lambda at: kind(keys[at]))
        return numbers[order]

    def reordered(self, order: Ints) -> VictimTable:
        """The same victims with other numbers: `order[i]` becomes number i."""
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        victim, numbers = number[self.pods.victim], list[int](order.tolist())
        rows = np.argsort(victim, kind="stable")
        return VictimTable(
            list(map(self._sources.__getitem__, numbers)),
            priority=self.priority[order],
            marked=self.marked[order],
            started=self.started[order],
            start_sum=self.start_sum[order],
            sizes=self.sizes[order],
            groups=self.groups,
            group_of=self.group_of[order],
            footprints=self.footprints,
            pods=PodRows(victim[rows], self.pods.slot[rows], self.pods.footprint[rows]),
        )


SUBTREE = -2  # in `VictimTable.group_of`


_UID = attrgetter("uid")
_KEY = (attrgetter("kind"), attrgetter("namespace"), attrgetter("name"))
_REF = (attrgetter("ref.kind"), attrgetter("ref.namespace"), attrgetter("ref.name"))


def start_time(member: Member) -> str:
    """When a pod was started, or else created."""
    pod = member.pod
    return pod.status.start_time or pod.metadata.creation_timestamp or ""
