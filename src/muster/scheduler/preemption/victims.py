"""Victims: the indivisible sets of running pods below a priority that could be evicted.

The victim of a pod is the whole subtree of its highest ancestor whose disruption mode is `all`; without such an
ancestor it is the pod alone. A victim has the priority of its root. Pods that are terminating already belong to no
victim; a subtree with a pod that cannot be evicted now (its bind is in flight) is no victim as a whole.

Many entities may fail in one state of the cluster and ask for the same victims: `VictimIndex` computes them once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Group, Member, priority_of
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


class Quorum(NamedTuple):
    """A group that victims belong to: what it has now (members, or satisfied children), and what it needs."""

    bound: int
    minimum: int
    gang: bool  # a basic group has no minimum that could break
    parent: EntityKey | None


class Candidates(NamedTuple):
    """The victims below a priority."""

    victims: list[Victim]
    quorums: Mapping[EntityKey, Quorum]
    in_flight: bool  # some pods cannot be evicted yet because their bind is in flight


class VictimIndex:
    """The candidates of the last state that was asked about."""

    def __init__(self) -> None:
        self._state: tuple[int, int, frozenset[str], frozenset[str]] | None = None
        self._candidates = Candidates([], {}, False)

    def below(
        self, priority: int, forest: Forest, cluster: Cluster, version: int, *, marked: Set[str], excluded: Set[str]
    ) -> Candidates:
        """The victims of lower priority; the result is the same for as long as `version` is."""
        state = (version, priority, frozenset(marked), frozenset(excluded))
        if state != self._state:
            found, in_flight = possible_victims(forest, cluster, priority, marked=marked, excluded=excluded)
            self._candidates = Candidates(found, quorums(forest, found), in_flight)
            self._state = state
        return self._candidates


# --- victims ---------------------------------------------------------------------------------------


def possible_victims(
    forest: Forest, cluster: Cluster, below: int, *, marked: Collection[str] = (), excluded: Collection[str] = ()
) -> tuple[list[Victim], bool]:
    """Every victim of lower priority, and whether some pods are left out because their bind is in flight."""
    known: dict[int, _GroupTraits] = {}
    subtrees: dict[EntityKey, _Subtree] = {}
    found: list[Victim] = []
    in_flight = False
    members = forest.members
    for uid, entry in cluster.pods.items():
        member = members[uid]
        group = member.group
        if group is None:
            traits, priority = None, member.traits[1]
        else:
            traits = known.get(id(group)) or known.setdefault(id(group), _traits(member, group, subtrees))
            priority = traits.priority
        if priority >= below or entry.terminating:
            continue
        if entry.assumed or uid in excluded:
            in_flight = in_flight or entry.assumed
            if traits is not None and traits.subtree is not None:
                traits.subtree.complete = False
        elif traits is not None and traits.subtree is not None:
            traits.subtree.members.append(member)
        elif entry.slot >= 0:
            found.append(_single(member, priority, traits.loss if traits is not None else (), marked))
    complete = [subtree for subtree in subtrees.values() if subtree.complete and subtree.frees_room(cluster)]
    found += [_together(subtree, marked) for subtree in complete]
    found.sort(key=_by_key)
    return found, in_flight


def _by_key(victim: Victim) -> EntityKey:
    return victim.key


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


@dataclass(frozen=True, slots=True)
class _GroupTraits:
    """What the members of one PodGroup have in common as victims."""

    priority: int
    loss: Losses  # what evicting one member costs its group
    subtree: _Subtree | None


def _traits(member: Member, group: Group, subtrees: dict[EntityKey, _Subtree]) -> _GroupTraits:
    ancestor, priority = disrupted_as_whole(group), victim_priority(member)
    loss = ((group.key, 1),)
    if ancestor is None:
        return _GroupTraits(priority, loss, None)
    return _GroupTraits(priority, loss, subtrees.setdefault(ancestor.key, _Subtree(ancestor.key, priority)))


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


def _start(member: Member) -> str:
    return member.pod.status.start_time or member.pod.metadata.creation_timestamp or ""


def _single(member: Member, priority: int, loss: Losses, marked: Collection[str]) -> Victim:
    ref = member.ref
    key = EntityKey("Pod", ref.namespace, ref.name)
    return Victim(key, (ref.uid,), priority, (_start(member),), loss, ref.uid in marked)


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
        tuple(map(_start, members)),
        tuple(sorted(losses.items())),
        any(member.uid in marked for member in members),
    )


# --- quorums ---------------------------------------------------------------------------------------


def quorums(forest: Forest, victims: Iterable[Victim]) -> dict[EntityKey, Quorum]:
    """The quorum of every group that would lose something, and of all groups above it."""
    known: dict[EntityKey, Quorum] = {}
    for victim in victims:
        for key, _ in victim.losses:
            group: Group | None = forest.groups[key] if key not in known else None
            while group is not None and group.key not in known:
                above = group.parent if not group.cyclic else None
                bound = group.bound if group.is_leaf else group.confirmed
                known[group.key] = Quorum(bound, group.minimum, _is_gang(group), above.key if above else None)
                group = above
    return known


def _is_gang(group: Group) -> bool:
    return group.obj is not None and group.obj.spec.scheduling_policy.gang is not None
