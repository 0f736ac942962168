"""What a queued entity asks for: a tree of groups with their pending pods.

The cycle builds a request from the forest and the queue; the planner never reads API objects of groups. A single pod
is a PodGroupRequest with one member. Members are in the order in which they are preferred (priority, creation time,
uid).

The fields are inputs. What planning needs beyond them (how many pods are missing, which pods are interchangeable,
which children are open) is derived on first use and kept with the node, so a request that is planned several times
derives it once. Requests are compared by identity; two requests of equal `signature` ask for the same thing, so a
search that failed for one fails for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import msgspec

from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey

Signature = tuple[object, ...]


class PendingPod(msgspec.Struct, frozen=True, gc=False):
    """One pending pod. A group has thousands, and they are made anew for every attempt: hence a struct."""

    uid: str
    namespace: str
    name: str
    shape: Shape
    priority: int


class IdenticalPods(msgspec.Struct, frozen=True, eq=False):
    """Pending pods of one PodGroup that have the same shape, in order of preference."""

    shape: Shape
    members: tuple[PendingPod, ...]
    preferred: int  # how many of them are among the first `need` members of the group

    @property
    def count(self) -> int:
        return len(self.members)


class PodGroupRequest(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A PodGroup (or a single pod) with its pending members."""

    key: EntityKey
    minimum: int  # minCount; 1 for basic and for single pods
    bound: int  # members that count already (running, assumed, completed after success)
    members: tuple[PendingPod, ...]
    topology: str = ""  # label key whose value all members share; "" if there is no constraint
    domains: tuple[str, ...] = ()  # values in use by bound members: one pins, two or more are a conflict
    variant_of: PodGroupRequest | None = None

    @cached_property
    def need(self) -> int:
        """Pods that are missing for the minimum. With need 0 all pending members are extras."""
        return max(0, self.minimum - self.bound)

    @cached_property
    def satisfied(self) -> bool:
        """The minimum holds already, without any new pod."""
        return self.bound >= self.minimum

    @cached_property
    def admissible(self) -> bool:
        """The minimum holds, or could: enough members exist and those that are bound share one domain."""
        if self.satisfied:
            return True
        return not _in_several_domains(self) and self.bound + len(self.members) >= self.minimum

    @cached_property
    def identical(self) -> tuple[IdenticalPods, ...]:
        """The pods that may be placed, by shape; none if bound members are in several domains."""
        members, need = self.members, self.need
        if not members or _in_several_domains(self):
            return ()
        first = members[0].shape
        if all(member.shape is first for member in members):
            return (IdenticalPods(first, members, min(need, len(members))),)
        by_shape: dict[Shape, list[PendingPod]] = {}
        preferred: dict[Shape, int] = {}
        for position, member in enumerate(members):
            shape = member.shape
            by_shape.setdefault(shape, []).append(member)
            preferred[shape] = preferred.get(shape, 0) + (position < need)
        return tuple(IdenticalPods(shape, tuple(found), preferred[shape]) for shape, found in by_shape.items())

    @cached_property
    def pending(self) -> int:
        """How many pods may be placed."""
        return sum(pods.count for pods in self.identical)

    @cached_property
    def pin(self) -> str | None:
        """The domain that bound members are in already; "" if their node has none."""
        return self.domains[0] if self.topology and self.domains else None

    @cached_property
    def signature(self) -> Signature:
        """What is asked for, without names."""
        if self.variant_of is not None:
            return ("variant", self.variant_of.signature, self.need)
        counts = tuple(sorted((pods.shape.id, pods.count) for pods in self.identical))
        return ("leaf", self.need, counts, self.topology, self.pin)

    def with_need(self, need: int) -> PodGroupRequest:
        """The same group, asked for so many pods beside its bound members."""
        return msgspec.structs.replace(self, minimum=self.bound + need, variant_of=self)

    def with_minimum(self, minimum: int) -> PodGroupRequest:
        """The request as it were with another minCount."""
        return msgspec.structs.replace(self, minimum=minimum)

    def with_topology(self, topology: str, domains: tuple[str, ...]) -> PodGroupRequest:
        """The request as it were with another topology constraint, whose domains bound members use."""
        return msgspec.structs.replace(self, topology=topology, domains=domains)

    def with_members(self, members: tuple[PendingPod, ...]) -> PodGroupRequest:
        return msgspec.structs.replace(self, members=members)


class CompositeRequest(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A CompositePodGroup with its child groups."""

    key: EntityKey
    minimum: int  # minGroupCount; 1 for basic
    children: tuple[GroupRequest, ...]
    topology: str = ""
    domains: tuple[str, ...] = ()
    variant_of: CompositeRequest | None = None

    @cached_property
    def bound(self) -> int:
        """Pods below the group that count already."""
        return self.variant_of.bound if self.variant_of is not None else sum(child.bound for child in self.children)

    @cached_property
    def need(self) -> int:
        """Children that must still be satisfied for the minimum."""
        return max(0, self.minimum - sum(child.satisfied for child in self.children))

    @cached_property
    def satisfied(self) -> bool:
        """The minimum holds already, without any new pod."""
        return sum(child.satisfied for child in self.children) >= self.minimum

    @cached_property
    def admissible(self) -> bool:
        """The minimum holds, or could: enough children are admissible and bound pods share one domain."""
        if self.satisfied:
            return True
        return not _in_several_domains(self) and sum(child.admissible for child in self.children) >= self.minimum

    @cached_property
    def open(self) -> tuple[GroupRequest, ...]:
        """Admissible children whose minimum does not hold yet. The others of those cannot be placed at all."""
        if _in_several_domains(self):
            return ()
        return tuple(child for child in self.children if not child.satisfied and child.admissible)

    @cached_property
    def done(self) -> tuple[GroupRequest, ...]:
        """Children whose minimum holds: they can only take extras."""
        return () if _in_several_domains(self) else tuple(child for child in self.children if child.satisfied)

    @cached_property
    def pin(self) -> str | None:
        """The domain that bound pods are in already; "" if their node has none."""
        return self.domains[0] if self.topology and self.domains else None

    @cached_property
    def signature(self) -> Signature:
        """What is asked for, without names and whatever the order of the children."""
        children = tuple(sorted((child.signature for child in self.open), key=repr))
        if self.variant_of is not None:
            return ("variant", self.variant_of.signature, children)
        return ("branch", self.need, children, self.topology, self.pin)

    def with_need(self, need: int, children: tuple[GroupRequest, ...]) -> CompositeRequest:
        """The same group, asked for so many of these children, none of which is satisfied."""
        return msgspec.structs.replace(self, minimum=need, children=children, variant_of=self)

    def with_minimum(self, minimum: int) -> CompositeRequest:
        """The request as it were with another minGroupCount."""
        return msgspec.structs.replace(self, minimum=minimum)

    def with_topology(self, topology: str, domains: tuple[str, ...]) -> CompositeRequest:
        """The request as it were with another topology constraint, whose domains bound pods use."""
        return msgspec.structs.replace(self, topology=topology, domains=domains)

    def with_children(self, children: tuple[GroupRequest, ...]) -> CompositeRequest:
        return msgspec.structs.replace(self, children=children)


GroupRequest = PodGroupRequest | CompositeRequest


def _in_several_domains(request: GroupRequest) -> bool:
    """Bound pods are in more than one domain of the constraint, so no further pod can satisfy it."""
    return bool(request.topology) and len(set(request.domains)) > 1


def groups(request: GroupRequest) -> Iterator[GroupRequest]:
    """Every group of a tree, parents before children."""
    yield request
    for child in request.children if isinstance(request, CompositeRequest) else ():
        yield from groups(child)


def leaves(request: GroupRequest) -> Iterator[PodGroupRequest]:
    """Every PodGroup of a tree, left to right."""
    if isinstance(request, PodGroupRequest):
        yield request
    else:
        for child in request.children:
            yield from leaves(child)


def open_leaves(request: GroupRequest) -> Iterator[PodGroupRequest]:
    """The PodGroups of which pods may have to be placed for the minimum of the tree."""
    if isinstance(request, PodGroupRequest):
        yield request
    else:
        for child in request.open:
            yield from open_leaves(child)


def admissible_leaves(request: GroupRequest) -> Iterator[PodGroupRequest]:
    """The PodGroups of which pods may be placed, extras of satisfied groups included; open groups first."""
    if isinstance(request, PodGroupRequest):
        yield request
    else:
        for child in (*request.open, *request.done):
            yield from admissible_leaves(child)


def shapes_of(request: GroupRequest) -> dict[int, Shape]:
    """The distinct shapes of all pending pods, by shape id."""
    return {member.shape.id: member.shape for leaf in leaves(request) for member in leaf.members}


def rebuilt(request: GroupRequest, change: Callable[[GroupRequest], GroupRequest]) -> GroupRequest:
    """The tree with every group changed, children before parents."""
    if isinstance(request, CompositeRequest):
        request = request.with_children(tuple(rebuilt(child, change) for child in request.children))
    return change(request)
