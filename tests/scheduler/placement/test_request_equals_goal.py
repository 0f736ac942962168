"""The request derives what the goal derived, on random trees."""

from __future__ import annotations

import random

import pytest

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import (
    CompositeRequest,
    GroupRequest,
    PodGroupRequest,
    admissible_leaves,
    groups,
    open_leaves,
)
from muster.scheduler.planning import goal as old
from muster.scheduler.planning.goal import BranchGoal, Goal, GoalBuilder, LeafGoal
from tests.scheduler.planning.scene import RACK, ZONE, Scene, a_pod


def random_tree(rng: random.Random, scene: Scene, name: str, depth: int) -> GroupRequest:
    topology = rng.choice(["", "", RACK, ZONE])
    domains = tuple(rng.choices(["a", "b", ""], k=rng.choice([0, 0, 1, 2])))
    if depth == 0 or rng.random() < 0.3:
        count = rng.randrange(5)
        members = tuple(scene.member(a_pod(f"{name}-{i}", rng.choice([1, 1, 2, 3]))) for i in range(count))
        key = EntityKey("PodGroup", "default", name)
        return PodGroupRequest(key, rng.randrange(1, 5), rng.randrange(4), members, topology, domains)
    children = tuple(random_tree(rng, scene, f"{name}.{i}", depth - 1) for i in range(rng.randrange(1, 4)))
    key = EntityKey("CompositePodGroup", "default", name)
    return CompositeRequest(key, rng.randrange(1, 4), children, topology, domains)


def same(request: GroupRequest, goal: Goal, builder: GoalBuilder, pairs: list[tuple[GroupRequest, Goal]]) -> None:
    pairs.append((request, goal))
    assert (request.key, request.need, request.bound, request.topology, request.pin) == (
        goal.key,
        goal.need,
        goal.bound,
        goal.topology,
        goal.pin,
    )
    if isinstance(request, PodGroupRequest):
        assert isinstance(goal, LeafGoal)
        assert [(pods.shape, pods.members, pods.preferred, pods.count) for pods in request.identical] == [
            (builder.shapes[lot.shape], lot.members, lot.preferred, lot.count) for lot in goal.lots
        ]
        assert request.pending == goal.pending
        return
    assert isinstance(goal, BranchGoal)
    for ours, theirs in zip(request.open, goal.open, strict=True):
        same(ours, theirs, builder, pairs)
    for ours, theirs in zip(request.done, goal.done, strict=True):
        same(ours, theirs, builder, pairs)


@pytest.mark.parametrize("seed", range(400))
def test_request_and_goal_derive_equal_values(seed: int) -> None:
    rng = random.Random(seed)
    scene = Scene()
    request = random_tree(rng, scene, "g", 3)
    builder = GoalBuilder()
    goal = builder.build(request)
    pairs: list[tuple[GroupRequest, Goal]] = []
    same(request, goal, builder, pairs)
    assert [leaf.key for leaf in open_leaves(request)] == [leaf.key for leaf in old.open_leaves(goal)]
    assert [leaf.key for leaf in admissible_leaves(request)] == [leaf.key for leaf in old.all_leaves(goal)]
    for group in groups(request):
        assert group.satisfied == old.satisfied(group)
        assert group.admissible == old.admissible(group)
    for ours, theirs in pairs:
        for other, other_goal in pairs:
            assert (ours.signature == other.signature) == (theirs.signature == other_goal.signature)
