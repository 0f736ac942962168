"""Victims as columns: with tens of thousands of them, an object is made only of those that are looked at.

A victim has a number, its index in the sequence. `pods` has one row for each pod of each victim that is on a known
node: the number of its victim, its slot and its footprint, sorted by victim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np

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


class PodRows(NamedTuple):
    """The pods of all victims on known nodes, sorted by victim."""

    victim: Ints
    slot: Ints
    footprint: Ints  # index of `VictimTable.footprints`


class VictimTable(Sequence[Victim]):
    """A sequence of victims that makes the `Victim` of a single pod when it is asked for."""

    def __init__(
        self,
        sources: list[Member | Victim],
        *,
        priority: Ints,
        marked: Bools,
        groups: list[Group],
        group_of: Ints,
        footprints: list[Footprint],
        pods: PodRows,
    ) -> None:
        self._sources = sources  # a member is a victim by itself
        self._made: dict[int, Victim] = {}
        self.priority = priority
        self.marked = marked
        self.groups = groups  # PodGroups that would lose members
        self.group_of = group_of  # index of `groups` for a single pod; -1 for one without a group, and for subtrees
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
        source = self._sources[index]
        if isinstance(source, Victim):
            return source
        made = self._made.get(index)
        if made is None:
            made = self._made[index] = self._single(source, index)
        return made

    def _single(self, member: Member, number: int) -> Victim:
        ref, group = member.ref, int(self.group_of[number])
        loss: Losses = ((self.groups[group].key, 1),) if group >= 0 else ()
        priority, marked = int(self.priority[number]), bool(self.marked[number])
        return Victim(EntityKey("Pod", ref.namespace, ref.name), (ref.uid,), priority, (start(member),), loss, marked)

    def subtrees(self) -> list[tuple[int, Victim]]:
        """The victims of several pods, with their numbers."""
        return [(number, each) for number, each in enumerate(self._sources) if isinstance(each, Victim)]

    def starts(self) -> list[str]:
        """The start time of every single pod; empty for subtrees."""
        return ["" if isinstance(each, Victim) else start(each) for each in self._sources]

    def by_key(self, numbers: Ints) -> Ints:
        """Some victims in the order of their keys."""
        wanted: list[int] = numbers.tolist()
        sources = [self._sources[number] for number in wanted]
        keys = [source.key if isinstance(source, Victim) else source.ref for source in sources]
        names = [key.name for key in keys]
        order = sorted(range(len(keys)), key=names.__getitem__)  # plain texts are compared fastest
        if len({key.namespace for key in keys}) > 1:
            order.sort(key=lambda at: keys[at].namespace)
        if len({key.kind for key in keys}) > 1:
            order.sort(key=lambda at: keys[at].kind)
        return numbers[order]

    def reordered(self, order: Ints) -> VictimTable:
        """The same victims with other numbers: `order[i]` becomes number i."""
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        victim, numbers = number[self.pods.victim], list[int](order.tolist())
        rows = np.argsort(victim, kind="stable")
        return VictimTable(
            [self._sources[each] for each in numbers],
            priority=self.priority[order],
            marked=self.marked[order],
            groups=self.groups,
            group_of=self.group_of[order],
            footprints=self.footprints,
            pods=PodRows(victim[rows], self.pods.slot[rows], self.pods.footprint[rows]),
        )


def start(member: Member) -> str:
    """When a pod was started, or else created."""
    pod = member.pod
    return pod.status.start_time or pod.metadata.creation_timestamp or ""
