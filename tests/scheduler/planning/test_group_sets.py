"""Sets of groups for one domain: all of them, or some of too many."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget
from muster.scheduler.planning import group_sets
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.group_sets import GroupSets, all_sets, some_sets, together
from tests.build.domain_rows import rows_of


def sets_of(rows: DomainRows, spare: int, domain: int = 0) -> GroupSets:
    found = all_sets(rows, domain, rows.groups, np.full(rows.load.shape[1], spare), Budget(100_000))
    assert found is not None
    return found


def by_trying(rows: DomainRows, spare: int) -> set[tuple[int, ...]]:
    room, load = int(rows.room[0, 0]), rows.load[:, 0].tolist()
    found: set[tuple[int, ...]] = set()
    for counts in product(*(range(int(count) + 1) for count in rows.groups)):
        left = room - sum(count * each for count, each in zip(counts, load, strict=True))
        if 0 <= left <= spare:
            found.add(counts)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_the_sets_are_those_of_trying_everything(seed: int):
    rng = random.Random(seed)
    rows = rows_of([rng.randint(3, 14), 20], [rng.randint(1, 6) for _ in range(rng.randint(1, 6))])
    spare = rng.randint(0, 5)

    found = sets_of(rows, spare)

    assert len(found) == len({tuple(counts) for counts in found.counts.tolist()}), "each set once"
    assert {tuple(counts) for counts in found.counts.tolist()} == by_trying(rows, spare)
    assert (found.left[:, 0] == rows.room[0, 0] - found.counts @ rows.load[:, 0]).all()


def test_too_many_sets_are_not_enumerated_but_sampled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(group_sets, "MOST_SETS", 8)
    monkeypatch.setattr(group_sets, "MOST_SAMPLED", 4)
    rows = rows_of([20, 100], list(range(1, 13)))
    spare = np.array([20])

    assert all_sets(rows, 0, rows.groups, spare, Budget(100_000)) is None
    found = some_sets(rows, 0, rows.groups, spare, Budget(100_000))

    assert found is not None
    assert 0 < len(found) <= 4 * 6
    assert found.left.min() == 0, "those that leave least are among them"


def test_dear_groups_are_sampled_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(group_sets, "MOST_SAMPLED", 1)
    rows = rows_of([6, 100], [2, 2, 2, 2, 3, 3])  # two kinds
    prices = np.array([1, 1000])

    found = some_sets(rows, 0, rows.groups, np.array([6]), Budget(100_000), prices)

    assert found is not None
    assert [0, 2] in found.counts.tolist()
    assert [1, 0] not in found.counts.tolist()


def test_new_rows_and_sets_ruled_out_leave_the_others():
    rows = rows_of([5, 9], [2, 3, 4])
    before = sets_of(rows, 5)
    assert [1, 1, 0] in before.counts.tolist()

    rows.rule_out(0, np.array([0, 1]))
    rows.room = np.column_stack((rows.room, [1, 1]))
    rows.load = np.column_stack((rows.load, [1, 1, 5]))
    after = before.refreshed(rows)

    assert sorted(after.counts.tolist()) == [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert after.left.shape == (3, 2)


def test_the_best_sets_of_each_domain():
    rows = rows_of([5, 4], [2, 3])
    sets = together([sets_of(rows, 9, 1), sets_of(rows, 9, 0)], rows)
    assert sets.domain.tolist() == sorted(sets.domain.tolist())

    best = sets.best(sets.left[:, 0], 1)

    assert best.domain.tolist() == [0, 1]
    assert best.counts.tolist() == [[1, 1], [0, 1]]


def test_a_budget_that_ends_gives_no_sets():
    rows = rows_of([5, 9], [2, 3, 4])

    assert all_sets(rows, 0, rows.groups, np.array([9]), Budget(0)) is None
    assert some_sets(rows, 0, rows.groups, np.array([9]), Budget(0)) is None
