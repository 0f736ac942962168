"""Domains for groups from rows alone: what is proposed exceeds no row, and "none" is said only if there is none."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning.domain_filling import DomainFilling
from muster.scheduler.planning.patterns import pattern_table
from tests.build.matrices import a_leaf, a_matrix, an_instance


def a_filling(rooms: list[int], groups: list[int]) -> DomainFilling:
    """Domains of one node and one resource; groups of so many pods of one shape."""
    instance = an_instance(a_matrix([rooms], [[1]]), a_leaf("a", sum(groups), s0=sum(groups)))
    table = pattern_table(instance, Budget(1000))
    assert table is not None
    allowed = np.ones((len(groups), len(rooms)), dtype=bool)
    filling = DomainFilling(table, instance.nodes.copy(), np.array(groups)[:, None], allowed)
    filling.add_weights(np.array([1]))
    return filling


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

    found = run_to_end(filling.fill(Budget(100_000)))

    assert (found is not None) == exists(rooms, groups)
    assert filling.complete
    if found is not None:
        assert (np.bincount(found, weights=groups, minlength=len(rooms)) <= rooms).all()


def test_a_set_that_is_ruled_out_is_not_proposed_again():
    filling = a_filling([5, 4], [5, 4])
    assert run_to_end(filling.fill(Budget(1000))) is not None

    filling.forbid(0, np.array([0]))

    assert run_to_end(filling.fill(Budget(1000))) is None
    assert filling.complete


def test_a_new_row_is_obeyed():
    filling = a_filling([6, 6], [3, 3])
    found = run_to_end(filling.fill(Budget(1000)))
    assert found is not None
    assert found[0] == found[1]

    filling.room = np.vstack((filling.room, [[1, 1]]))
    filling.load = np.vstack((filling.load, [[1, 1]]))
    found = run_to_end(filling.fill(Budget(1000)))

    assert found is not None
    assert found[0] != found[1]


def test_equal_groups_and_equal_domains_count_once():
    filling = a_filling([4] * 12, [3] * 12 + [2])
    budget = Budget(100_000)

    assert run_to_end(filling.fill(budget)) is None
    assert filling.complete
    assert budget.spent < 300


def test_a_budget_that_ends_proves_nothing():
    filling = a_filling([7, 6, 5], [4, 3, 3, 3, 2, 3])

    assert run_to_end(filling.fill(Budget(1))) is None
    assert not filling.complete
