"""The table of maximal patterns: complete, by classes of equal nodes, and absent where it would be too large."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning import patterns
from muster.scheduler.planning.packing_instance import PackingInstance
from muster.scheduler.planning.patterns import pattern_table
from tests.build.examples import examples
from tests.build.matrices import a_leaf, a_matrix, an_instance


def by_brute_force(instance: PackingInstance, node: int) -> set[tuple[int, ...]]:
    """Every feasible count of every type that no other feasible one contains."""
    free = instance.free[:, node]
    ranges = [range(count + 1 if instance.fits[at, node] else 1) for at, count in enumerate(instance.counts)]
    feasible = [one for one in product(*ranges) if (np.array(one) @ instance.requests <= free).all()]
    return {
        one
        for one in feasible
        if not any(other != one and all(a >= b for a, b in zip(other, one, strict=True)) for other in feasible)
    }


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=2, max_size=3),
    st.lists(st.integers(1, 3), min_size=3, max_size=3),
)
def test_the_table_has_every_maximal_pattern_of_every_node(nodes, requests, counts):
    matrix = a_matrix([list(row) for row in zip(*nodes, strict=True)], [list(each) for each in requests])
    wanted = {f"s{at}": counts[at] for at in range(len(requests))}
    instance = an_instance(matrix, a_leaf("a", sum(wanted.values()), **wanted))

    table = run_to_end(pattern_table(instance, Budget(10_000)))

    assert table is not None
    for node, at in enumerate(table.member_of.tolist()):
        assert {tuple(one) for one in table.of_class(at).tolist()} == by_brute_force(instance, node)


def test_equal_nodes_are_one_class():
    instance = an_instance(a_matrix([[4, 6, 4, 4]], [[2], [1]]), a_leaf("a", 8, s0=4, s1=4))

    table = run_to_end(pattern_table(instance, Budget(1000)))

    assert table is not None
    assert table.classes == 2
    assert sorted(table.sizes.tolist()) == [1, 3]
    assert table.member_of[0] == table.member_of[2] == table.member_of[3]


def test_there_is_no_table_where_it_would_be_too_large(monkeypatch: pytest.MonkeyPatch):
    instance = an_instance(a_matrix([[9, 8, 7]], [[2], [1]]), a_leaf("a", 8, s0=4, s1=4))
    assert run_to_end(pattern_table(instance, Budget(1000))) is not None
    assert run_to_end(pattern_table(instance, Budget(1))) is None, "the budget ends"

    monkeypatch.setattr(patterns, "MOST_PATTERNS", 3)

    assert run_to_end(pattern_table(instance, Budget(1000))) is None
