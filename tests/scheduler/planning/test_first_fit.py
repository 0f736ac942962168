"""Heuristic packing: tightest nodes first, preferred pods first, within the budget."""

from __future__ import annotations

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget
from muster.scheduler.planning.first_fit import TYPE_COST, finish, pack
from tests.build.matrices import a_leaf, a_matrix, an_instance, is_sound


def test_pods_go_to_the_nodes_with_the_least_to_spare():
    instance = an_instance(a_matrix([[9, 2, 5]], [[2]]), a_leaf("a", 3, s0=3))

    placed = pack(instance, Budget(100))

    assert placed is not None
    assert placed.tolist() == [[0, 1, 2]]


def test_large_pods_are_placed_before_small_ones():
    # Small first and tightest node first would put a small pod on the node that only the large one fills.
    instance = an_instance(a_matrix([[3, 4]], [[1], [3]]), a_leaf("a", 5, s0=4, s1=1))

    placed = pack(instance, Budget(100))

    assert placed is not None
    assert is_sound(instance, placed)
    assert placed.sum(axis=1).tolist() == [4, 1]


def test_another_order_is_tried_when_the_first_fails():
    # By dominant share s0 goes first and takes the node that s1 needs; by scarcity of seats s1 goes first.
    matrix = a_matrix([[5, 4]], [[3], [2]])
    matrix.allowed = np.array([[True, True], [True, False]])

    placed = pack(an_instance(matrix, a_leaf("a", 1, s0=1), a_leaf("b", 2, s1=2)), Budget(100))

    assert placed is not None
    assert placed.tolist() == [[0, 1], [2, 0]]


def test_nodes_that_would_be_left_with_the_least_are_tried_too():
    # By seats alone the first pod goes to the node that both others need.
    instance = an_instance(a_matrix([[2, 3], [6, 5]], [[2, 3], [1, 3]]), a_leaf("a", 3, s0=1, s1=2))

    placed = pack(instance, Budget(100))

    assert placed is not None
    assert placed.tolist() == [[0, 1], [2, 0]]


def test_a_group_that_may_choose_gets_the_pods_it_prefers_if_they_fit():
    def counts(free: list[int], **members: int) -> list[int]:
        placed = pack(an_instance(a_matrix([free], [[1], [4]]), a_leaf("a", 2, **members)), Budget(100))
        assert placed is not None
        return placed.sum(axis=1).tolist()

    assert counts([5, 5], s1=1, s0=3) == [1, 1]  # the large one and the first small one are preferred
    assert counts([2, 2], s1=1, s0=3) == [0, 2]
    assert counts([5, 5], s0=2, s1=1) == [2, 0]  # the large one is not, though it would go first by size


def test_what_does_not_fit_is_not_packed_in_part():
    assert pack(an_instance(a_matrix([[2, 2]], [[1]]), a_leaf("a", 5, s0=5)), Budget(100)) is None
    assert pack(an_instance(a_matrix([[2, 2]], [[1], [2]]), a_leaf("a", 4, s0=3, s1=2)), Budget(100)) is None


def test_an_instance_without_pods_is_solved():
    placed = pack(an_instance(a_matrix([[2, 2]], [[1]])), Budget(0))

    assert placed is not None
    assert placed.size == 0


@pytest.mark.parametrize("types", [1, 2])
def test_every_attempt_costs_steps_for_each_type(types: int):
    leaf = a_leaf("a", types, **{f"s{i}": 1 for i in range(types)})
    instance = an_instance(a_matrix([[9]], [[1], [2]]), leaf)
    budget = Budget(TYPE_COST * types)

    assert pack(instance, budget) is not None
    assert budget.spent == TYPE_COST * types
    assert pack(instance, Budget(TYPE_COST * types - 1)) is None


def test_a_packing_is_finished_beside_what_it_places_already():
    instance = an_instance(a_matrix([[4, 4]], [[2]]), a_leaf("a", 3, s0=3))

    placed = finish(instance, np.array([[2, 0]]), instance.counts, Budget(100))

    assert placed is not None
    assert placed.tolist() == [[2, 1]]


def test_pods_placed_already_count_for_a_group_that_may_choose():
    instance = an_instance(a_matrix([[4, 4]], [[2], [3]]), a_leaf("a", 2, s0=2, s1=2))

    placed = finish(instance, np.array([[1, 0], [0, 0]]), instance.counts, Budget(100))

    assert placed is not None
    assert placed.sum() == 2
    assert placed[0, 0] >= 1
