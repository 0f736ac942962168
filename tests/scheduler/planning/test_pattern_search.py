"""The pattern search: planted packings are found, and what is found covers the need."""

from __future__ import annotations

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget, run_slice, run_to_end
from muster.scheduler.planning.pattern_search import PatternSearch
from muster.scheduler.planning.prices import LAST_LEVEL, PriceSearch
from tests.scheduler.planning.test_prices import planted, table_of


def a_search(seed: int, nodes: int, budget: Budget) -> PatternSearch:
    instance = planted(seed, nodes)
    table, need = table_of(instance), np.array(instance.counts)
    found = run_to_end(PriceSearch(table, need, Budget(100_000)).run(LAST_LEVEL))
    assert found is not None
    return PatternSearch(table, need, found, budget)


@pytest.mark.parametrize("seed", range(12))
def test_every_node_takes_one_pattern_and_the_need_is_covered(seed: int):
    search = a_search(seed, 50, Budget(100_000))

    taken = run_to_end(search.run())

    assert taken is not None
    assert (np.add.reduceat(taken, search.patterns.starts) == search.patterns.sizes).all()
    assert (taken @ search.patterns.table >= search.need).all()


def test_a_search_without_budget_finds_nothing_and_claims_nothing():
    search = a_search(1, 50, Budget(1))
    search.shares[:] = 0  # nothing is decided beforehand

    assert run_to_end(search.run()) is None


def test_a_search_pauses_and_goes_on():
    whole = run_to_end(a_search(2, 50, Budget(100_000)).run())
    search = a_search(2, 50, Budget(100_000, slice_steps=2))
    search.shares[:] = 0
    slices, running = 0, search.run()
    while (found := run_slice(running)) is None and slices < 1000:
        slices += 1

    assert whole is not None
    assert found is not None
    assert slices > 3
