"""Packing instances: pods pooled into item types, and counts given back to the groups."""

from __future__ import annotations

import numpy as np

from muster.scheduler.placement.verdict import Budget
from muster.scheduler.planning.first_fit import pack
from tests.build.matrices import a_leaf, a_matrix, an_instance


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
