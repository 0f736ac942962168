"""Packing instances: pods pooled into item types, and counts given back to the groups."""

from __future__ import annotations

import numpy as np

from muster.scheduler.placement.budget import Budget
from muster.scheduler.planning.first_fit import pack
from muster.scheduler.planning.packing_instance import PackingInstance, ScopedRequest
from tests.build.matrices import SHAPES, a_leaf, a_matrix, an_instance


def test_equal_lots_of_several_leaves_become_one_type():
    instance = an_instance(a_matrix([[4, 4]], [[1]]), a_leaf("a", 2, s0=2), a_leaf("b", 3, s0=3))

    assert instance.types == 1
    assert instance.counts == [5]


def test_seats_of_a_shared_type_are_handed_back_to_each_leaf():
    instance = an_instance(a_matrix([[4, 4]], [[1]]), a_leaf("a", 2, s0=2), a_leaf("b", 5, s0=5))
    placed = pack(instance, Budget(100))
    assert placed is not None

    given = {packed.pods.members[0].uid[0]: int(packed.counts.sum()) for packed in instance.packed(placed)}

    assert given == {"a": 2, "b": 5}


def test_nodes_that_differ_in_nothing_that_matters_form_one_class():
    instance = an_instance(a_matrix([[7, 8, 9]], [[4], [4]]), a_leaf("a", 2, s0=1, s1=1))

    assert len(np.unique(instance.free)) <= 2


def test_a_group_that_may_choose_keeps_a_type_for_each_shape():
    matrix = a_matrix([[9, 9]], [[1], [2]])

    instance = an_instance(matrix, a_leaf("may", 3, s0=2, s1=2), a_leaf("must", 2, s0=1, s1=1))

    assert instance.counts == [2, 2, 1, 1]
    assert instance.owner == [0, 0, -1, -1]
    assert instance.needs == [3]
    assert instance.preferred == [2, 1, 1, 1]


def test_equal_shapes_on_other_nodes_are_another_type():
    matrix = a_matrix([[4, 4, 4]], [[1]])
    some = matrix.everywhere(np.array([True, True, False]))
    leaf, other = a_leaf("a", 2, s0=2), a_leaf("b", 1, s0=1)

    instance = PackingInstance(matrix, [ScopedRequest(leaf, some), ScopedRequest(other, matrix.everywhere())])

    assert instance.counts == [2, 1]
    assert instance.shapes == [SHAPES[0], SHAPES[0]]
    assert [[int(instance.nodes[at]) for at in np.flatnonzero(row)] for row in instance.fits] == [[0, 1], [0, 1, 2]]


def test_only_the_need_of_one_shape_is_counted():
    assert an_instance(a_matrix([[9]], [[1]]), a_leaf("a", 2, s0=5)).counts == [2]


def test_amounts_are_divided_and_cut_at_the_whole_request():
    instance = an_instance(
        a_matrix([[1000, 3500, 90_000], [7, 7, 7]], [[1000, 0], [2000, 0]]), a_leaf("a", 2, s0=1, s1=1)
    )

    assert instance.requests.tolist() == [[1], [2]]
    assert instance.free.tolist() == [[1, 3, 3]]  # the row that nothing requests is gone, 3 is all that is requested


def test_nodes_come_in_the_order_of_rank_and_only_if_something_fits():
    matrix = a_matrix([[4, 0, 4, 4]], [[1]])
    matrix.rank = np.array([2, 0, 3, 1])

    assert an_instance(matrix, a_leaf("a", 1, s0=1)).nodes.tolist() == [3, 0, 2]


def test_seats_of_a_type_depend_on_what_is_still_free():
    instance = an_instance(a_matrix([[4, 4]], [[2]]), a_leaf("a", 4, s0=4))

    assert instance.seats(instance.free, 0).tolist() == [2, 2]
    assert instance.seats(instance.free - np.array([[1, 2]]), 0).tolist() == [1, 0]


def test_packed_pods_of_a_group_that_may_choose_are_its_own():
    leaf = a_leaf("a", 2, s0=2, s1=2)
    instance = an_instance(a_matrix([[9, 9]], [[1], [2]]), leaf)

    small, large = instance.packed(np.array([[0, 1], [1, 0]]))

    assert (small.pods, large.pods) == leaf.identical
    assert (small.nodes.tolist(), large.nodes.tolist()) == ([1], [0])


def test_packed_pods_are_split_between_groups_node_by_node():
    instance = an_instance(a_matrix([[3, 4]], [[1]]), a_leaf("a", 4, s0=4), a_leaf("b", 3, s0=3))

    first, second = instance.packed(np.array([[3, 4]]))

    assert (first.nodes.tolist(), first.counts.tolist()) == ([0, 1], [3, 1])
    assert (second.nodes.tolist(), second.counts.tolist()) == ([1], [3])
