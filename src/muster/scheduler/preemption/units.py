"""Units of eviction: pods that leave together or not at all.

A running pod's unit is the whole subtree of its highest ancestor whose disruption mode is `all`; without
such an ancestor it is the pod alone. A unit has the priority of its root. Pods that are leaving already
belong to no unit, and neither do pods whose bind is still in flight.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from muster.scheduler.cluster import Cluster
from muster.scheduler.faults import priority_of
from muster.scheduler.groups import Forest, Group, Member
from muster.scheduler.planning.demand import GroupKey


@dataclass(frozen=True, slots=True)
class Unit:
    """Pods that are evicted together or not at all."""

    key: GroupKey  # the pod itself, or the highest ancestor whose disruption mode is `all`
    uids: tuple[str, ...]
    priority: int  # of the root
    starts: tuple[str, ...]  # when each pod started
    losses: tuple[tuple[GroupKey, int], ...] = ()  # leaf groups and how many members each would lose
    marked: bool = False  # on its way out already: evicting it costs nothing more


def units(
    forest: Forest, cluster: Cluster, below: int, *, marked: Collection[str] = (), spared: Collection[str] = ()
) -> tuple[list[Unit], bool]:
    """Everything of lower priority that could be evicted, and whether some cannot yet because it is being bound."""
    homes: dict[GroupKey, _Home] = {}
    wholes: dict[GroupKey, _Whole] = {}
    alone: list[tuple[Member, int]] = []
    in_flight = False
    for uid, entry in cluster.pods.items():
        member = forest.members[uid]
        group = member.group
        if group is None:
            priority, home = member.traits[1], None
        else:
            home = homes.get(group.key) or homes.setdefault(group.key, _home(member, group, wholes))
            priority = home.priority
        if priority >= below or entry.dying:
            continue
        if entry.assumed or uid in spared:
            in_flight = in_flight or entry.assumed
            if home is not None:
                home.whole.untouchable = True
        elif home is not None and home.ancestor is not None:
            home.whole.members.append(member)
        elif entry.slot >= 0:
            alone.append((member, priority))
    found = [_unit(_key(member), [member], priority, marked) for member, priority in alone]
    for whole in wholes.values():
        movable = any(cluster.pods[member.uid].slot >= 0 for member in whole.members)
        if movable and not whole.untouchable:
            found.append(_unit(whole.key, whole.members, whole.priority, marked))
    return sorted(found, key=lambda unit: unit.key), in_flight


@dataclass(slots=True)
class _Whole:
    """What leaves together; members whose node is gone leave with the others."""

    key: GroupKey
    priority: int
    members: list[Member] = field(default_factory=list[Member])
    untouchable: bool = False  # a member cannot leave now, so nobody does


@dataclass(frozen=True, slots=True)
class _Home:
    priority: int
    ancestor: Group | None
    whole: _Whole


def _home(member: Member, group: Group, wholes: dict[GroupKey, _Whole]) -> _Home:
    ancestor, priority = _whole_ancestor(group), _priority(member)
    if ancestor is None:
        return _Home(priority, None, _Whole(group.key, priority))
    return _Home(priority, ancestor, wholes.setdefault(ancestor.key, _Whole(ancestor.key, priority)))


def _key(member: Member) -> GroupKey:
    return GroupKey("Pod", member.ref.namespace, member.ref.name)


def _priority(member: Member) -> int:
    """The priority of the pod's root; a tree whose top was never seen falls back to the pod's own."""
    assert member.group is not None
    top = member.group.root()
    return priority_of(top) if top.seen else member.traits[1]


def _whole_ancestor(group: Group) -> Group | None:
    highest: Group | None = None
    current: Group | None = group
    while current is not None:
        if current.disrupts_all:
            highest = current
        current = current.parent if not current.cyclic else None
    return highest


def _unit(key: GroupKey, members: list[Member], priority: int, marked: Collection[str]) -> Unit:
    members = sorted(members, key=lambda member: member.uid)
    losses: dict[GroupKey, int] = {}
    for member in members:
        if member.group is not None:
            losses[member.group.key] = losses.get(member.group.key, 0) + 1
    return Unit(
        key,
        tuple(member.uid for member in members),
        priority,
        tuple(member.pod.status.start_time or member.pod.metadata.creation_timestamp or "" for member in members),
        tuple(sorted(losses.items())),
        any(member.uid in marked for member in members),
    )


def quorums(forest: Forest, found: list[Unit]) -> dict[GroupKey, tuple[int, int]]:
    """How many members each touched gang has, and its minimum."""
    keys = {key for unit in found for key, _ in unit.losses}
    return {key: (forest.groups[key].bound, forest.groups[key].minimum) for key in keys}
