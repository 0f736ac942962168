"""From a tree in the forest to a demand for the planner."""

from __future__ import annotations

from collections.abc import Callable

from muster.scheduler import groups
from muster.scheduler.groups import Group
from muster.scheduler.planning.demand import Branch, Demand, GroupKey, Leaf, Member
from muster.scheduler.queue import Root
from muster.scheduler.shapes import Shape

ShapeOf = Callable[[groups.Member], Shape]
DomainOf = Callable[[str, str], str]  # (node name, label key) -> value, "" without the label


def demand_of(root: Root, shape_of: ShapeOf, domain_of: DomainOf) -> Demand:
    """What a root asks for now."""
    if root.member is not None:
        return Leaf(root.key, minimum=1, bound=0, members=(_wish(root.member, shape_of),))
    assert root.group is not None, "a root is a pod or a group"
    return _tree(root.group, shape_of, domain_of)


def _tree(group: Group, shape_of: ShapeOf, domain_of: DomainOf) -> Demand:
    topology = group.topology
    domains = domains_of(group, topology, domain_of) if topology else ()
    if group.is_leaf:
        pending = sorted(group.pending.values(), key=lambda member: member.order)
        members = tuple(_wish(member, shape_of) for member in pending)
        return Leaf(group.key, group.minimum, group.bound, members, topology, domains)
    children = tuple(_tree(child, shape_of, domain_of) for child in group.ordered_children() if child.seen)
    return Branch(group.key, group.minimum, children, topology, domains)


def _wish(member: groups.Member, shape_of: ShapeOf) -> Member:
    return Member(member.uid, member.ref.namespace, member.ref.name, shape_of(member), member.traits[1])


def domains_of(group: Group, topology: str, domain_of: DomainOf) -> tuple[str, ...]:
    """The domains that members sit in already; a node without the label counts as the domain without a name."""
    nodes = {member.node for leaf in group.leaves() for member in leaf.running.values()}
    return tuple(sorted({domain_of(node, topology) for node in nodes}))


def root_key(member: groups.Member) -> GroupKey:
    """The root under which a pod is queued."""
    if member.group is None:
        return GroupKey("Pod", member.ref.namespace, member.ref.name)
    return member.group.root().key
