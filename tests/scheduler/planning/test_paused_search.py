"""Searches in slices: no slice spends much more steps than it has, and what was found is applied to what there is."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from bench.objects import a_pod
from bench.search import RACK, TREES, Instance, Row, World, planted

from muster.scheduler.checking.validate import validate
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import CompositeRequest, PodGroupRequest
from muster.scheduler.placement.verdict import Placed
from muster.scheduler.planning.packing_instance import PackedPods
from muster.scheduler.planning.paused_search import PausedSearch
from muster.scheduler.planning.plan import plan_first_slice, resumed_verdict
from muster.scheduler.planning.tree_search import Found

SLICE = 300
ROWS = (Row(60, 120, 3, 8, 6), Row(60, 240, 4), Row(120, 200, 4, 14, 8))


def until_found(world: World, budget: Budget) -> tuple[PausedSearch | None, Found | None, list[int]]:
    """The search in slices, on the cluster as it is: what it found, and the steps of each slice."""
    steps, before = list[int](), 0
    with world.evaluator.trial() as trial:
        paused = plan_first_slice(world.request(), trial, budget)
    steps.append(budget.spent)
    if not isinstance(paused, PausedSearch):
        return None, None, steps
    answer = None
    while answer is None:
        before = budget.spent
        answer = paused.advance()
        steps.append(budget.spent - before)
    return paused, answer if isinstance(answer, Found) else None, steps


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("seed", range(3))
def test_no_slice_spends_much_more_steps_than_it_has(row: Row, seed: int):
    _, _, steps = until_found(World(planted(row, seed)), Budget(40 * SLICE, slice_steps=SLICE))

    assert max(steps) < 2 * SLICE


@pytest.mark.slow
def test_no_slice_of_a_hard_tree_does_either():
    _, found, steps = until_found(World(planted(TREES[5], 17)), Budget(25_000, slice_steps=2_500))

    assert found is not None
    assert max(steps) < 2_500 * 1.2


def a_paused_world() -> tuple[World, PausedSearch, Found]:
    """A world whose search outlasted its first slice and found a placement."""
    for seed in range(20):
        world = World(planted(ROWS[0], seed))
        paused, found, _ = until_found(world, Budget(40 * SLICE, slice_steps=SLICE))
        if paused is not None and found is not None:
            return world, paused, found
    raise AssertionError("no search was paused")


def test_what_was_found_is_placed_where_it_was_found():
    world, paused, found = a_paused_world()

    with world.evaluator.trial() as trial:
        verdict = resumed_verdict(paused, found, trial)

    assert isinstance(verdict, Placed)
    wanted: Counter[tuple[int, int]] = Counter()
    for packed in found.packed:
        for node, count in zip(packed.nodes.tolist(), packed.counts.tolist(), strict=True):
            wanted[packed.pods.shape.id, node] += count
    shape_of = {pod.uid: pod.shape.id for leaf in world.request().open for pod in leaf.members}  # type: ignore[union-attr]
    assert wanted == Counter((shape_of[each.uid], each.index) for each in verdict.assignments)


def test_seats_that_are_gone_are_gone_for_all_groups_of_a_node():
    world = World(Instance(((4000, 4096), (4000, 4096)), (0, 0), ((1000, 1000),), ((2,), (2,)), tree=True))
    cluster, request = world.evaluator.cluster, world.request()
    assert isinstance(request, CompositeRequest)
    leaves = [leaf for leaf in request.open if isinstance(leaf, PodGroupRequest)]
    here, two = np.array([0]), np.array([2])
    packed = [PackedPods(pods, here, two) for leaf in leaves for pods in leaf.identical]
    rack = cluster.label_id(RACK, "r0")
    found = Found(packed, [(leaf, rack) for leaf in leaves], [*leaves, request])
    paused = PausedSearch(request, iter(()), Budget(1), tuple(cluster.names))  # type: ignore[arg-type]
    cluster.change("Pod", a_pod("late", "2", "1Mi", node=cluster.names[0]))  # two of four seats are gone

    with world.evaluator.trial() as trial:
        verdict = resumed_verdict(paused, found, trial)

    assert isinstance(verdict, Placed)
    assert Counter(each.index for each in verdict.assignments) == {0: 2, 1: 2}
    assert validate(verdict, request, cluster) is None
