"""Node matrices: seats of each shape, and domains of label keys as sets of nodes."""

from __future__ import annotations

import numpy as np

from muster.scheduler.planning.node_matrix import NodeMatrix, NodeSet, count_seats
from tests.build.matrices import SHAPES, a_matrix


def test_seats_are_limited_by_the_scarcest_row_that_is_requested():
    free = np.array([[8, 8, 1, -2], [3, 9, 9, 9], [0, 0, 0, 0]])
    everywhere = np.ones(4, dtype=bool)

    assert count_seats(free, np.array([2, 1, 0]), everywhere).tolist() == [3, 4, 0, 0]
    assert count_seats(free, np.array([2, 1, 0]), np.array([True, False, True, True])).tolist() == [3, 0, 0, 0]


def test_each_shape_has_its_own_row():
    matrix = a_matrix([[6, 9]], [[2], [3]])
    large = NodeMatrix(SHAPES[:2], matrix.free, matrix.requests, np.array([[True, True], [False, True]]), matrix.rank)

    assert [matrix.index(shape) for shape in SHAPES[:2]] == [0, 1]
    assert matrix.request(SHAPES[1]).tolist() == [3]
    assert (matrix.seats(SHAPES[0]).tolist(), matrix.seats(SHAPES[1]).tolist()) == ([3, 4], [2, 3])
    assert large.seats(SHAPES[1]).tolist() == [0, 3]
    assert not large.limited


def test_equal_sets_of_nodes_are_one_object():
    matrix = a_matrix([[1, 1, 1]], [[1]])

    assert matrix.everywhere() is matrix.everywhere()
    assert matrix.everywhere().nodes.tolist() == [0, 1, 2]
    some = matrix.everywhere(np.array([True, False, True]))
    assert some.nodes.tolist() == [0, 2]
    assert some is matrix.everywhere(np.array([True, False, True]))


def test_domains_are_the_nodes_of_each_value_and_nodes_without_one_are_in_none():
    matrix = a_matrix([[1] * 6], [[1]], rack=[2, 1, 0, 2, 1, 2])

    found = {value: domain.nodes.tolist() for value, domain in matrix.domains(matrix.everywhere(), "rack").items()}

    assert found == {1: [1, 4], 2: [0, 3, 5]}


def test_domains_inside_a_domain_have_only_its_nodes():
    matrix = a_matrix([[1] * 4], [[1]], zone=[1, 1, 2, 2], rack=[1, 2, 1, 1])
    zones = matrix.domains(matrix.everywhere(), "zone")

    inside = matrix.domains(zones[1], "rack")

    assert {value: domain.nodes.tolist() for value, domain in inside.items()} == {1: [0], 2: [1]}
    assert matrix.domains(zones[1], "rack") is inside
    assert matrix.domains(matrix.everywhere(np.zeros(4, dtype=bool)), "rack") == {}


def test_the_bits_of_a_set_show_which_nodes_two_sets_share():
    one, other = NodeSet(np.array([0, 9]), 12), NodeSet(np.array([9, 10]), 12)

    assert one.bits == 1 | 1 << 9
    assert one.bits & other.bits == 1 << 9
    assert not NodeSet(np.array([0]), 12).bits & other.bits
