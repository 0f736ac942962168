"""Domains for groups from rows alone: what is proposed exceeds no row, and "none" is said only if there is none."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning import domain_filling, group_sets
from muster.scheduler.planning.domain_filling import DomainFilling
from tests.build.domain_rows import rows_of


def a_filling(rooms: list[int], groups: list[int], steps: int = 100_000) -> DomainFilling:
    """Domains of one node and one resource; groups of so many pods of one shape."""
    return DomainFilling(rows_of(rooms, groups), Budget(steps))


def exists(rooms: list[int], groups: list[int], forbidden: tuple[int, tuple[int, ...]] | None = None) -> bool:
    for choice in product(range(len(rooms)), repeat=len(groups)):
        sets = [tuple(at for at, domain in enumerate(choice) if domain == one) for one in range(len(rooms))]
        if all(sum(groups[at] for at in each) <= room for each, room in zip(sets, rooms, strict=True)) and (
            forbidden is None or sets[forbidden[0]] != forbidden[1]
        ):
            return True
    return False


@pytest.mark.parametrize("seed", range(60))
def test_the_answer_is_that_of_trying_everything(seed: int):
    rng = random.Random(seed)
    rooms = [rng.randint(3, 9) for _ in range(rng.randint(2, 4))]
    groups = [rng.randint(1, 5) for _ in range(rng.randint(2, 6))]
    filling = a_filling(rooms, groups)

    found = run_to_end(filling.fill())

    assert (found is not None) == exists(rooms, groups)
    assert filling.complete
    if found is not None:
        assert (np.bincount(found, weights=groups, minlength=len(rooms)) <= rooms).all()


def test_a_set_that_is_ruled_out_is_not_proposed_again():
    filling = a_filling([5, 4], [5, 4])
    assert run_to_end(filling.fill()) is not None

    filling.rows.rule_out(0, np.array([0]))

    assert run_to_end(filling.fill()) is None
    assert filling.complete


def test_a_new_row_is_obeyed():
    filling = a_filling([6, 6], [3, 3])
    found = run_to_end(filling.fill())
    assert found is not None
    assert found[0] == found[1]

    filling.rows.room = np.column_stack((filling.rows.room, [1]))
    filling.rows.load = np.column_stack((filling.rows.load, [1]))
    found = run_to_end(filling.fill())

    assert found is not None
    assert found[0] != found[1]


def test_equal_groups_and_equal_domains_count_once():
    filling = a_filling([4] * 12, [3] * 12 + [2])

    assert run_to_end(filling.fill()) is None
    assert filling.complete
    assert filling.budget.spent < 300


def test_a_budget_that_ends_proves_nothing():
    filling = a_filling([7, 6, 5], [4, 3, 3, 3, 2, 3], steps=1)

    assert run_to_end(filling.fill()) is None
    assert not filling.complete


@pytest.mark.parametrize("seed", range(12))
def test_many_groups_find_their_domains_where_hardly_anything_is_spare(seed: int):
    rng = random.Random(seed)
    homes = [[rng.randint(11, 39) for _ in range(rng.randint(1, 4))] for _ in range(12)]
    groups = [group for home in homes for group in home]
    rng.shuffle(groups)
    rooms = [sum(home) for home in homes]
    filling = a_filling(rooms, groups)

    found = run_to_end(filling.fill())

    assert found is not None
    assert np.bincount(found, weights=groups, minlength=len(rooms)).tolist() == rooms


@pytest.mark.parametrize("seed", range(8))
def test_prices_alone_never_refute_what_exists(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(domain_filling, "FIRST_STATES", -10_000)  # nothing is tried before groups are priced
    rng = random.Random(seed)
    rooms = [rng.randint(3, 9) for _ in range(4)]
    groups = [rng.randint(1, 5) for _ in range(6)]
    filling = a_filling(rooms, groups)

    found = run_to_end(filling.fill())

    assert found is None
    if filling.complete:
        assert not exists(rooms, groups)


def test_domains_with_too_many_sets_are_filled_all_the_same(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(group_sets, "MOST_SETS", 3)
    rooms, groups = [30, 29, 28], [9, 8, 7, 6, 5, 5, 5, 6, 7, 8, 9, 4]
    filling = a_filling(rooms, groups)

    found = run_to_end(filling.fill())

    assert found is not None
    assert (np.bincount(found, weights=groups, minlength=3) <= rooms).all()


def test_what_was_left_out_proves_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(group_sets, "MOST_SETS", 0)  # no domain is ever enumerated
    monkeypatch.setattr(group_sets, "MOST_SAMPLED", 1)
    monkeypatch.setattr(domain_filling, "MOST_TRIED", 1)
    missed = 0
    for seed in range(40):
        rng = random.Random(seed)
        homes = [[rng.randint(2, 9) for _ in range(rng.randint(1, 3))] for _ in range(3)]
        groups = [group for home in homes for group in home]
        filling = a_filling([sum(home) for home in homes], groups)

        found = run_to_end(filling.fill())

        assert found is not None or not filling.complete
        missed += found is None
    assert missed, "some were left out"


@pytest.mark.parametrize("seed", range(6))
def test_a_proposal_is_repaired_without_the_sets_that_did_not_pack(seed: int):
    rng = random.Random(seed)
    homes = [[rng.randint(11, 39) for _ in range(rng.randint(1, 3))] for _ in range(10)]
    groups = [group for home in homes for group in home]
    filling = a_filling([sum(home) + 30 for home in homes], groups)
    ruled_out: list[tuple[int, frozenset[int]]] = []
    kinds = filling.rows.kind_of_group
    for _ in range(6):
        found = run_to_end(filling.fill())

        assert found is not None
        sets = [frozenset(np.flatnonzero(found == domain).tolist()) for domain in range(len(homes))]
        for domain, each in ruled_out:
            assert sorted(kinds[list(sets[domain])]) != sorted(kinds[list(each)]), "it was ruled out"
        domain = max(range(len(homes)), key=lambda at: len(sets[at]))
        ruled_out.append((domain, sets[domain]))
        filling.rows.rule_out(domain, np.array(sorted(sets[domain])))
