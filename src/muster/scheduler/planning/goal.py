"""What is still to be done for a demand: need per group, members pooled into lots of one shape.

A goal is a demand without what needs no planning. Children whose minimum already holds count as done;
children that can never reach theirs (too few members, bound members in two domains) are left out
before anything is placed. Two goals of equal `signature` ask for the same thing, so a search that
failed with one fails with the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, PendingPod, PodGroupRequest

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lot:
    """Pending members of one leaf that are interchangeable, in the order in which they want to go."""

    shape: int  # index in the goal's list of shapes
    members: tuple[PendingPod, ...]
    preferred: int  # how many of them are among the first `need` members of the leaf

    @property
    def count(self) -> int:
        return len(self.members)


@dataclass(frozen=True, slots=True, eq=False)
class LeafGoal:
    key: EntityKey
    need: int
    bound: int
    members: tuple[PendingPod, ...]
    lots: tuple[Lot, ...]
    topology: str
    pin: str | None  # the value that bound members hold already; "" when their node has none
    signature: Signature

    @property
    def pending(self) -> int:
        return sum(lot.count for lot in self.lots)


@dataclass(frozen=True, slots=True, eq=False)
class BranchGoal:
    key: EntityKey
    need: int  # children that must still succeed
    bound: int
    open: tuple[Goal, ...]  # admissible children whose minimum does not hold yet
    done: tuple[Goal, ...]  # children whose minimum holds: they can only take extras
    topology: str
    pin: str | None
    signature: Signature


Goal = LeafGoal | BranchGoal


def satisfied(request: GroupRequest) -> bool:
    """Every minimum of the group holds already, without any new pod."""
    if isinstance(request, PodGroupRequest):
        return request.satisfied
    return sum(map(satisfied, request.children)) >= request.minimum


def admissible(request: GroupRequest) -> bool:
    """Enough members and children exist, and none is torn between two domains before its minimum holds."""
    if satisfied(request):
        return True
    if request.topology and len(set(request.domains)) > 1:
        return False
    if isinstance(request, PodGroupRequest):
        return request.bound + len(request.members) >= request.minimum
    return sum(map(admissible, request.children)) >= request.minimum


class GoalBuilder:
    """Turns demands into goals over one common list of shapes."""

    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self._index: dict[int, int] = {}

    def build(self, request: GroupRequest) -> Goal:
        return self._leaf(request) if isinstance(request, PodGroupRequest) else self._branch(request)

    def _leaf(self, leaf: PodGroupRequest) -> LeafGoal:
        torn = bool(leaf.topology) and len(set(leaf.domains)) > 1
        lots = () if torn else self._lots(leaf.members, leaf.need)
        topology, pin = leaf.topology or "", leaf.domains[0] if leaf.topology and leaf.domains else None
        signature = ("leaf", leaf.need, tuple(sorted((lot.shape, lot.count) for lot in lots)), topology, pin)
        return LeafGoal(leaf.key, leaf.need, leaf.bound, () if torn else leaf.members, lots, topology, pin, signature)

    def _lots(self, members: tuple[PendingPod, ...], need: int) -> tuple[Lot, ...]:
        if not members:
            return ()
        first = members[0].shape
        if all(member.shape is first for member in members):
            return (Lot(self._shape(first), members, min(need, len(members))),)
        by_shape: dict[int, list[PendingPod]] = {}
        preferred: dict[int, int] = {}
        for position, member in enumerate(members):
            shape = self._shape(member.shape)
            by_shape.setdefault(shape, []).append(member)
            preferred[shape] = preferred.get(shape, 0) + (position < need)
        return tuple(Lot(shape, tuple(found), preferred[shape]) for shape, found in by_shape.items())

    def _shape(self, shape: Shape) -> int:
        index = self._index.get(id(shape))
        if index is None:
            index = self._index[id(shape)] = len(self.shapes)
            self.shapes.append(shape)
        return index

    def _branch(self, branch: CompositeRequest) -> BranchGoal:
        torn = bool(branch.topology) and len(set(branch.domains)) > 1
        done = [] if torn else [self.build(child) for child in branch.children if satisfied(child)]
        met = sum(map(satisfied, branch.children))
        able = [] if torn else [c for c in branch.children if not satisfied(c) and admissible(c)]
        open_goals = tuple(self.build(child) for child in able)
        need = max(0, branch.minimum - met)
        topology, pin = branch.topology or "", branch.domains[0] if branch.topology and branch.domains else None
        children = tuple(sorted((child.signature for child in open_goals), key=repr))
        bound = sum(leaf.bound for leaf in _demand_leaves(branch))
        signature = ("branch", need, children, topology, pin)
        return BranchGoal(branch.key, need, bound, open_goals, tuple(done), topology, pin, signature)


def _demand_leaves(request: GroupRequest) -> Iterator[PodGroupRequest]:
    if isinstance(request, PodGroupRequest):
        yield request
    else:
        for child in request.children:
            yield from _demand_leaves(child)


def all_leaves(goal: Goal) -> Iterator[LeafGoal]:
    """Every leaf of a goal, those of satisfied children included."""
    if isinstance(goal, LeafGoal):
        yield goal
    else:
        for child in (*goal.open, *goal.done):
            yield from all_leaves(child)


def open_leaves(goal: Goal) -> Iterator[LeafGoal]:
    """The leaves whose minimum may have to be placed."""
    if isinstance(goal, LeafGoal):
        yield goal
    else:
        for child in goal.open:
            yield from open_leaves(child)
