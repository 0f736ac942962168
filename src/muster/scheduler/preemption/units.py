"""Units of eviction: pods that leave together or not at all.

A running pod's unit is the whole subtree of its highest ancestor whose disruption mode is `all`; without
such an ancestor it is the pod alone. A unit has the priority of its root. Pods that are leaving already
belong to no unit, and neither do pods whose bind is still in flight.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

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


def units(forest: Forest, cluster: Cluster, below: int, marked: Collection[str] = ()) -> list[Unit]:
    """Everything of lower priority that could be evicted, in a stable order."""
    homes: dict[GroupKey, tuple[int, Group | None]] = {}
    whole: dict[GroupKey, tuple[int, list[Member]]] = {}
    found: list[Unit] = []
    for uid, entry in cluster.pods.items():
        if entry.dying or entry.assumed or entry.slot < 0:
            continue
        member = forest.members[uid]
        if member.group is None:
            if member.traits[1] < below:
                key = GroupKey("Pod", member.ref.namespace, member.ref.name)
                found.append(_unit(key, [member], member.traits[1], marked))
            continue
        home = homes.get(member.group.key)
        if home is None:
            home = homes[member.group.key] = (_priority(member), _whole_ancestor(member.group))
        priority, ancestor = home
        if priority >= below:
            continue
        if ancestor is None:
            key = GroupKey("Pod", member.ref.namespace, member.ref.name)
            found.append(_unit(key, [member], priority, marked))
        else:
            whole.setdefault(ancestor.key, (priority, []))[1].append(member)
    for key, (priority, members) in whole.items():
        found.append(_unit(key, members, priority, marked))
    return sorted(found, key=lambda unit: unit.key)


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
