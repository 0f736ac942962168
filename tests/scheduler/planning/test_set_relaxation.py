"""The fractional filling: it covers every group once, is whole where one filling exists, and says when none does."""

from __future__ import annotations

import random

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning import set_relaxation
from muster.scheduler.planning.filling_rules import FillingState
from muster.scheduler.planning.pattern_columns import Floats
from muster.scheduler.planning.set_relaxation import FractionalFilling, fill_fractionally
from muster.scheduler.planning.set_samples import noise
from tests.build.filling import a_filling_state


def costs_of(state: FillingState, variant: int = 0) -> Floats:
    return np.asarray(noise(len(state.sets), variant, 1000) / 1000, dtype=np.float64)


def filled(state: FillingState, costs: Floats, steps: int = 1_000_000) -> FractionalFilling | None:
    return run_to_end(fill_fractionally(state.sets, state.open, state.waiting, costs, Budget(steps)))


def planted(seed: int, domains: int = 14) -> tuple[list[int], list[int]]:
    rng = random.Random(seed)
    homes = [[rng.randint(301, 999) for _ in range(rng.randint(1, 2))] for _ in range(domains)]
    groups = [group for home in homes for group in home]
    rng.shuffle(groups)
    return [sum(home) + rng.randint(0, 1) for home in homes], groups


@pytest.mark.parametrize("seed", range(12))
def test_every_group_is_covered_once_and_every_domain_filled(seed: int):
    _, state = a_filling_state(*planted(seed))
    assert not len(state.unknown)

    found = filled(state, costs_of(state))

    assert found is not None
    assert found.feasible
    taken = found.shares * state.open[state.sets.domain]
    assert np.allclose(taken @ state.sets.counts, state.waiting, atol=0.05)
    assert np.allclose(np.bincount(state.sets.domain, found.shares), 1.0, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_most_domains_get_one_set_whole(seed: int):
    _, state = a_filling_state(*planted(seed))

    found = filled(state, costs_of(state))

    assert found is not None
    assert np.count_nonzero(found.shares > 0.9) * 2 >= np.count_nonzero(state.open)


@pytest.mark.parametrize("seed", range(6))
def test_other_costs_are_not_dearer_where_they_were_asked_for(seed: int):
    _, state = a_filling_state(*planted(seed))
    sizes = state.open[state.sets.domain]
    all_costs = [costs_of(state, variant) for variant in range(3)]

    found = [filled(state, costs) for costs in all_costs]

    for costs, own in zip(all_costs, found, strict=True):
        assert own is not None
        for other in found:
            assert other is not None
            assert costs @ (own.shares * sizes) <= costs @ (other.shares * sizes) + 0.05


def test_prices_show_what_is_short_where_the_sets_do_not_suffice():
    _, state = a_filling_state([8, 8, 9], [5, 5, 5, 3, 3, 3])
    few = state.sets.counts[:, 0] < 1  # no set has the first kind of group but in one domain
    state.sets = state.sets.only(few | (state.sets.domain == 1))

    found = filled(state, costs_of(state))

    assert found is not None
    assert not found.feasible
    assert found.weights.argmax() == 0


def test_a_budget_that_ends_gives_nothing():
    _, state = a_filling_state(*planted(1))

    assert filled(state, costs_of(state), steps=5) is None


@pytest.mark.parametrize("seed", range(8))
def test_sets_far_from_the_dearest_count_again_when_the_prices_move(seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(set_relaxation, "FAR_BELOW", 0.3)  # nearly all are left out at every level
    monkeypatch.setattr(set_relaxation, "MOST_ERROR", 100.0)
    _, state = a_filling_state(*planted(seed))

    found = filled(state, costs_of(state))

    assert found is not None
    assert found.feasible
