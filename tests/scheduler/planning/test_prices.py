"""Prices: worth no less than the need where a packing exists, a certificate where none does, and only proposals."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning import prices
from muster.scheduler.planning.exact import Answer, DualCertificate, decide
from muster.scheduler.planning.packing_instance import PackingInstance
from muster.scheduler.planning.patterns import PatternTable, pattern_table
from muster.scheduler.planning.prices import DEAREST, LAST_LEVEL, PriceSearch
from tests.build.examples import examples
from tests.build.matrices import a_leaf, a_matrix, an_instance


def planted(seed: int, nodes: int, more: int = 0) -> PackingInstance:
    """Pods of three random shapes on random nodes, whose room is what they take and some scraps."""
    rng = random.Random(seed)
    shapes = [(rng.randint(2, 9), rng.randint(2, 9)) for _ in range(3)]
    free, counts = np.zeros((2, nodes), dtype=np.int64), [0, 0, 0]
    for _ in range(2 * nodes):
        at, node = rng.randrange(3), rng.randrange(nodes)
        free[:, node] += shapes[at]
        counts[at] += 1
    free += np.array([[rng.randint(0, 2) for _ in range(nodes)] for _ in range(2)])
    wanted = {f"s{at}": count + (more if at == 0 else 0) for at, count in enumerate(counts)}
    return an_instance(
        a_matrix(free.tolist(), [list(shape) for shape in shapes]), a_leaf("a", sum(wanted.values()), **wanted)
    )


def table_of(instance: PackingInstance) -> PatternTable:
    table = run_to_end(pattern_table(instance, Budget(100_000)))
    assert table is not None
    return table


def spare_of(instance: PackingInstance) -> int:
    """What all nodes are worth at the prices beyond what is needed."""
    table = table_of(instance)
    found = run_to_end(PriceSearch(table, np.array(instance.counts), Budget(100_000)).run(LAST_LEVEL))
    assert found is not None
    assert found.weights.max() == DEAREST
    assert found.weights.min() >= 0
    return int(table.sizes @ table.best(table.table @ found.weights)) - int(found.weights @ instance.counts)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 30))
def test_where_a_packing_exists_the_nodes_are_worth_what_is_needed(seed: int, nodes: int):
    assert spare_of(planted(seed, nodes)) >= 0


@pytest.mark.parametrize("seed", range(5))
def test_prices_refute_what_no_single_resource_does(seed: int):
    instance = planted(seed, 40, more=12)

    assert spare_of(instance) < 0
    answer = run_to_end(decide(instance, Budget(100_000)))
    assert isinstance(answer, DualCertificate)
    assert answer.available < answer.required


def test_the_fractional_packing_covers_the_need():
    instance = planted(3, 60)
    table = table_of(instance)
    found = run_to_end(PriceSearch(table, np.array(instance.counts), Budget(100_000)).run(LAST_LEVEL))
    assert found is not None

    taken = (found.shares * table.sizes[table.class_of]) @ table.table

    assert np.allclose(np.add.reduceat(found.shares, table.starts), 1.0)
    assert (taken >= 0.99 * np.array(instance.counts)).all()


def test_a_budget_that_ends_gives_no_prices():
    instance = planted(1, 20)

    assert run_to_end(PriceSearch(table_of(instance), np.array(instance.counts), Budget(3)).run(LAST_LEVEL)) is None


def test_a_small_error_in_all_prices_changes_no_decision(monkeypatch: pytest.MonkeyPatch):
    def answers() -> list[Answer]:
        return [run_to_end(decide(planted(seed, 40, more=seed % 3), Budget(100_000))) for seed in range(30)]

    before, rounded = answers(), prices.rounded
    for sign in (1, -1):
        error = 1 + sign * 1e-9
        monkeypatch.setattr(
            prices, "rounded", lambda found, error=error: rounded(found * np.resize([error, 1 / error], len(found)))
        )
        for one, other in zip(before, answers(), strict=True):
            assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other
