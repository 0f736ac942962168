"""What runs where: each node with its domains, its health, and the gangs whose pods are on it.

A gang is a tree of groups, named by its root. Pods without a group count under the object that controls them, or under
their namespace if none does. Amounts are in the order of `RESOURCES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from muster.scheduler.groups.group import priority_of
from muster.scheduler.interface.keys import EntityKey
from muster.views.queue import needed
from muster.views.topology import GPU
from muster.views.tree import reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.api.types import Node
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.groups.group import Group, Member

RESOURCES = ("cpu", "memory", GPU)
_DIVISORS = (1, 1 << 20, 1)  # milli-CPUs, MiB, devices

Amounts = tuple[int, int, int]
ZERO: Amounts = (0, 0, 0)
HEALTHY, CORDONED, NOT_READY, PRESSURE = "", "cordoned", "not ready", "under pressure"


class GangOnNode(msgspec.Struct, frozen=True):
    """The pods of one gang on one node."""

    gang: EntityKey
    pods: int
    amounts: Amounts


class NodeOccupancy(msgspec.Struct, frozen=True):
    """One node. `domains` has a value for each level of the topology, empty where the node has no such label."""

    name: str
    domains: tuple[str, ...]
    health: str
    allocatable: Amounts
    requested: Amounts
    gangs: tuple[GangOnNode, ...]


class GangState(msgspec.Struct, frozen=True, rename="camel"):
    """A gang as a whole. A minimum of 0 says that it is no group."""

    kind: str
    namespace: str
    name: str
    priority: int = 0
    bound: int = 0
    minimum: int = 0
    pending: int = 0
    met: bool = True
    reason: str = ""
    topology: str = ""


def gang_of(member: Member) -> EntityKey:
    """The gang that a pod counts under."""
    if member.group is not None:
        return member.group.root().key
    meta = member.pod.metadata
    for owner in meta.owner_references or ():
        if owner.controller:
            return EntityKey(owner.kind, meta.namespace, owner.name)
    return EntityKey("Pod", meta.namespace, "")


def occupancy(view: SchedulerView, node: Node, levels: Sequence[str]) -> NodeOccupancy:
    """One node of the cluster and who is on it, the largest gang first."""
    name = node.metadata.name
    labels = node.metadata.labels or {}
    gangs: dict[EntityKey, list[int]] = {}
    for uid, requests in view.pods_on(name):
        member = view.members.get(uid)
        if member is not None:
            found = gangs.setdefault(gang_of(member), [0, 0, 0, 0])
            found[0] += 1
            for index, amount in enumerate(_amounts(requests), 1):
                found[index] += amount
    on_node = [GangOnNode(key, found[0], (found[1], found[2], found[3])) for key, found in gangs.items()]
    on_node.sort(key=lambda each: (tuple(-amount for amount in reversed(each.amounts)), each.gang))
    slot = view.slot_of(name)
    return NodeOccupancy(
        name,
        tuple(labels.get(key, "") for key in levels),
        health_of(node),
        _at(view, slot, requested=False),
        _at(view, slot, requested=True),
        tuple(on_node),
    )


def _amounts(requests: Mapping[str, int]) -> Amounts:
    cpu, memory, gpu = (requests.get(name, 0) // size for name, size in zip(RESOURCES, _DIVISORS, strict=True))
    return (cpu, memory, gpu)


def _at(view: SchedulerView, slot: int | None, *, requested: bool) -> Amounts:
    if slot is None:
        return ZERO
    found: dict[str, int] = {}
    for name in RESOURCES:
        column = view.requested(name) if requested else view.allocatable(name)
        found[name] = int(column[slot]) if column is not None else 0
    return _amounts(found)


def health_of(node: Node) -> str:
    """What keeps pods away from a node, in two words; empty for a healthy one."""
    conditions = {condition.type: condition.status for condition in node.status.conditions or ()}
    if conditions.get("Ready", "True") != "True":
        return NOT_READY
    if node.spec.unschedulable:
        return CORDONED
    return PRESSURE if any(s == "True" for t, s in conditions.items() if t.endswith("Pressure")) else HEALTHY


def gang_state(group: Group) -> GangState:
    """A tree of groups as a whole: pods bound and needed, and why it waits if it does."""
    leaves = list(group.leaves())
    met = group.quorum_bound
    return GangState(
        *group.key,
        priority_of(group),
        sum(leaf.bound for leaf in leaves),
        sum(needed(leaf) for leaf in leaves),
        group.pending_below,
        met,
        "" if met else reason_of(group),
        group.topology or "",
    )
