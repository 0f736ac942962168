"""What can be evicted: indivisible units of running pods below a priority.

A pod's unit is the whole subtree of its highest ancestor whose disruption mode is `all`; without
such an ancestor it is the pod alone. A unit has the priority of its root. Pods that are leaving already
belong to no unit; a unit with a member that cannot leave now (its bind is in flight) is left alone as a whole.

Who could be evicted, worked out once for as long as nothing changes.

Many roots may fail in one state of the world, each of them asking the same question.
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
    starts: tuple[str, ...]  # when each pod started
    losses: Losses = ()  # leaf groups and how many members each would lose
    marked: bool = False  # on its way out already: evicting it costs nothing more


def possible_victims(
    forest: Forest, cluster: Cluster, below: int, *, marked: Collection[str] = (), spared: Collection[str] = ()
) -> tuple[list[Victim], bool]:
    """Everything of lower priority that could be evicted, and whether some cannot yet because it is being bound."""
    homes: dict[int, _Home] = {}
    wholes: dict[EntityKey, _Whole] = {}
    found: list[Victim] = []
    in_flight = False
    members = forest.members
    for uid, entry in cluster.pods.items():
        member = members[uid]
        group = member.group
        if group is None:
            home, priority = None, member.traits[1]
        else:
            home = homes.get(id(group)) or homes.setdefault(id(group), _home(member, group, wholes))
            priority = home.priority
        if priority >= below or entry.terminating:
            continue
        if entry.assumed or uid in spared:
            in_flight = in_flight or entry.assumed
            if home is not None and home.whole is not None:
                home.whole.untouchable = True
        elif home is not None and home.whole is not None:
            home.whole.members.append(member)
        elif entry.slot >= 0:
            found.append(_alone(member, priority, home.loss if home is not None else (), marked))
    whole = [whole for whole in wholes.values() if not whole.untouchable and whole.stands_on(cluster)]
    found += [_together(one, marked) for one in whole]
    found.sort(key=_by_key)
    return found, in_flight


def _by_key(unit: Victim) -> EntityKey:
    return unit.key


@dataclass(slots=True)
class _Whole:
    """What leaves together; members whose node is gone leave with the others."""

    key: EntityKey
    priority: int
    members: list[Member] = field(default_factory=list[Member])
    untouchable: bool = False  # a member cannot leave now, so nobody does

    def stands_on(self, cluster: Cluster) -> bool:
        """Would its leaving free anything?"""
        return any(cluster.pods[member.uid].slot >= 0 for member in self.members)


@dataclass(frozen=True, slots=True)
class _Home:
    priority: int
    loss: Losses  # what one member's leaving costs
    whole: _Whole | None


def _home(member: Member, group: Group, wholes: dict[EntityKey, _Whole]) -> _Home:
    ancestor, priority = _whole_ancestor(group), _priority(member)
    loss = ((group.key, 1),)
    if ancestor is None:
        return _Home(priority, loss, None)
    return _Home(priority, loss, wholes.setdefault(ancestor.key, _Whole(ancestor.key, priority)))


def _priority(member: Member) -> int:
    """The priority of the pod's root; a tree whose top was never seen falls back to the pod's own."""
    assert member.group is not None
    top = member.group.root()
    return priority_of(top) if top.exists else member.traits[1]


def _whole_ancestor(group: Group) -> Group | None:
    highest: Group | None = None
    current: Group | None = group
    while current is not None:
        if current.disrupts_all:
            highest = current
        current = current.parent if not current.cyclic else None
    return highest


def _start(member: Member) -> str:
    return member.pod.status.start_time or member.pod.metadata.creation_timestamp or ""


def _alone(member: Member, priority: int, loss: Losses, marked: Collection[str]) -> Victim:
    ref = member.ref
    key = EntityKey("Pod", ref.namespace, ref.name)
    return Victim(key, (ref.uid,), priority, (_start(member),), loss, ref.uid in marked)


def _together(whole: _Whole, marked: Collection[str]) -> Victim:
    members = sorted(whole.members, key=lambda member: member.uid)
    losses: dict[EntityKey, int] = {}
    for member in members:
        assert member.group is not None
        losses[member.group.key] = losses.get(member.group.key, 0) + 1
    return Victim(
        whole.key,
        tuple(member.uid for member in members),
        whole.priority,
        tuple(map(_start, members)),
        tuple(sorted(losses.items())),
        any(member.uid in marked for member in members),
    )


class Quorum(NamedTuple):
    """A group that victims belong to: what it has now (members, or children that hold), and what it needs."""

    bound: int
    minimum: int
    gang: bool  # a basic group has no minimum that could break
    parent: EntityKey | None


def quorums(forest: Forest, found: Iterable[Victim]) -> dict[EntityKey, Quorum]:
    """Every group that would lose something, and all groups above it."""
    known: dict[EntityKey, Quorum] = {}
    for unit in found:
        for key, _ in unit.losses:
            group: Group | None = forest.groups[key] if key not in known else None
            while group is not None and group.key not in known:
                above = group.parent if not group.cyclic else None
                known[group.key] = Quorum(_has(group), group.minimum, _is_gang(group), above.key if above else None)
                group = above
    return known


def _has(group: Group) -> int:
    return group.bound if group.is_leaf else group.confirmed


def _is_gang(group: Group) -> bool:
    return group.obj is not None and group.obj.spec.scheduling_policy.gang is not None


Question = tuple[int, int, frozenset[str], frozenset[str]]


class Candidates(NamedTuple):
    """The units below a priority."""

    victims: list[Victim]
    quorums: Mapping[EntityKey, Quorum]
    in_flight: bool  # some cannot be asked yet because they are just being bound


class VictimIndex:
    """The last answer."""

    def __init__(self) -> None:
        self._question: Question | None = None
        self._answer = Candidates([], {}, False)

    def below(
        self, priority: int, forest: Forest, cluster: Cluster, version: int, *, marked: Set[str], spared: Set[str]
    ) -> Candidates:
        """The units of lower priority; `version` says when the answer may be another."""
        question = (version, priority, frozenset(marked), frozenset(spared))
        if question != self._question:
            found, in_flight = possible_victims(forest, cluster, priority, marked=marked, spared=spared)
            self._answer = Candidates(found, quorums(forest, found), in_flight)
            self._question = question
        return self._answer
