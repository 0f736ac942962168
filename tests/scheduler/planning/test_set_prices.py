"""Prices of groups: sufficient wherever an assignment exists, a proof where the sets do not suffice."""

from __future__ import annotations

import random

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.group_sets import GroupSets, all_sets, together
from muster.scheduler.planning.set_prices import GroupPrices, price_groups
from tests.build.domain_rows import rows_of


def every_set(rows: DomainRows) -> GroupSets:
    spare = rows.domains @ rows.room - rows.groups @ rows.load
    parts = [all_sets(rows, domain, rows.groups, spare, Budget(100_000)) for domain in range(len(rows.domains))]
    return together([part for part in parts if part is not None], rows)


def priced(rows: DomainRows) -> GroupPrices:
    found = run_to_end(price_groups(every_set(rows), rows.domains, rows.groups, Budget(100_000)))
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(20))
def test_where_an_assignment_exists_the_sets_are_sufficient(seed: int):
    rng = random.Random(seed)
    homes = [[rng.randint(2, 9) for _ in range(rng.randint(1, 3))] for _ in range(8)]
    rooms = [sum(home) + rng.randint(0, 1) for home in homes]

    found = priced(rows_of(rooms, [group for home in homes for group in home]))

    assert found.sufficient
    assert (found.weights >= 0).all()


def test_sets_that_do_not_suffice_are_refuted():
    found = priced(rows_of([5] * 4, [3] * 5))  # no domain takes two

    assert not found.sufficient
    assert int(found.worth[0]) * 4 < int(found.weights[0]) * 5


def test_a_scarce_group_is_dearer():
    rows = rows_of([6, 3, 3, 3], [6, 3, 3, 3])  # only one domain takes the large one

    found = priced(rows)

    large, small = (int(found.weights[kind]) for kind in rows.kind_of_group[:2])
    assert large >= small


def test_a_budget_that_ends_gives_no_prices():
    rows = rows_of([4, 4], [3, 3, 2])

    assert run_to_end(price_groups(every_set(rows), rows.domains, rows.groups, Budget(0))) is None


def test_prices_are_integers():
    assert priced(rows_of([5, 5], [3, 2, 3, 2])).weights.dtype == np.int64
