"""What follows from a state of a filling: sets that leave too much are dropped, and a domain takes its only set."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.filling_rules import FillingRules
from tests.build.filling import a_filling_state


def rules_of(rows: DomainRows, steps: int = 100_000) -> FillingRules:
    return FillingRules(rows, Budget(steps))


def homes(rooms: list[int], groups: list[int]) -> list[tuple[int, ...]]:
    """Every assignment of groups to domains, by trying."""
    return [
        choice
        for choice in product(range(len(rooms)), repeat=len(groups))
        if all(sum(g for g, at in zip(groups, choice, strict=True) if at == d) <= r for d, r in enumerate(rooms))
    ]


@pytest.mark.parametrize("seed", range(60))
def test_what_is_settled_is_so_in_every_assignment(seed: int):
    rng = random.Random(seed)
    rooms = rng.sample(range(3, 14), rng.randint(2, 4))
    groups = rng.sample(range(1, 9), rng.randint(2, 5))
    rows, state = a_filling_state(rooms, groups)
    exist = homes(rooms, groups)

    settled = rules_of(rows).settle(state)

    if settled is False:
        assert not exist
    if settled is True:
        assert exist
    if not exist:
        return
    for kind, counts in state.chosen if settled is None else ():
        (domain,) = np.flatnonzero(rows.kind_of_domain == kind).tolist()
        members = {group for group in range(len(groups)) if counts[rows.kind_of_group[group]]}
        assert all({g for g, at in enumerate(home) if at == domain} == members for home in exist)


def test_a_domain_takes_its_only_set():
    rows, state = a_filling_state([7, 5], [7, 5])

    assert rules_of(rows).settle(state) is True

    assert sorted((kind, counts.tolist()) for kind, counts in state.chosen) == [(0, [1, 0]), (1, [0, 1])]
    assert not state.waiting.any()


def test_sets_that_leave_too_much_are_dropped():
    rows, state = a_filling_state([10, 10, 9], [6, 4, 5, 5, 9])  # nothing is spare: 29 of 29
    before = len(state.sets)

    rules_of(rows)._drop(state, rules_of(rows).spare(state.open, state.waiting))

    assert (state.sets.left == 0).all()
    assert len(state.sets) <= before


def test_what_is_taken_must_be_there():
    rows, state = a_filling_state([9, 9, 8], [4, 5, 3, 6])
    kind = int(rows.kind_of_domain[0])  # two domains of this kind
    one = np.zeros(len(rows.groups), dtype=np.int64)
    one[rows.kind_of_group[0]] = 1

    after = rules_of(rows).take(state, [(kind, one), (kind, one)])

    assert len(after.chosen) == 1, "the group was gone the second time"
    assert after.open[kind] == 1
    assert not (after.sets.counts[:, rows.kind_of_group[0]] > 0).any()
    assert state.open[kind] == 2, "the state before is unchanged"


def test_a_choice_is_allowed_as_long_as_rows_and_sets_allow_it():
    rows, _ = a_filling_state([9, 8], [4, 5, 3])
    rules, choice = rules_of(rows), (0, np.array([1, 1, 0]))
    assert rules.allows(choice)
    assert not rules.allows((1, np.array([1, 1, 0]))), "too large"

    rows.rule_out(0, np.array([0, 1]))

    assert not rules.allows(choice)


def test_a_budget_that_ends_leaves_something_out():
    rows, state = a_filling_state([9, 9, 8], [4, 5, 3, 6])

    assert rules_of(rows, steps=0).settle(state) is False
    assert state.cut


def test_domains_that_are_not_enumerated_are_once_few_groups_are_left():
    rows, state = a_filling_state([9, 8], [4, 5, 3], unknown=(0, 1))
    assert state.unknown.tolist() == [0, 1]

    rules_of(rows).settle(state)

    assert not len(state.unknown)
