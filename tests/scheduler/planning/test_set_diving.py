"""Dives: a state with few open domains that obeys every row, reached by following fractional fillings."""

from __future__ import annotations

import random

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning import group_sets, set_relaxation
from muster.scheduler.planning.filling_rules import FillingRules, FillingState
from muster.scheduler.planning.set_diving import FEW_DOMAINS, SetDiving
from tests.build.filling import a_filling_state


def planted(seed: int, domains: int = 24) -> tuple[list[int], list[int]]:
    rng = random.Random(seed)
    homes = [[rng.randint(301, 999) for _ in range(rng.randint(1, 2))] for _ in range(domains)]
    groups = [group for home in homes for group in home]
    rng.shuffle(groups)
    return [sum(home) + rng.randint(0, 4) for home in homes], groups


def dived(seed: int, variant: int = 0) -> FillingState | None:
    rows, state = a_filling_state(*planted(seed))
    if FillingRules(rows, Budget(1_000_000)).settle(state) is not None:
        return state
    return run_to_end(SetDiving(rows, Budget(1_000_000)).dive(state, variant))


@pytest.mark.parametrize("seed", range(8))
def test_a_dive_leaves_few_domains_and_exceeds_no_room(seed: int):
    rooms, groups = planted(seed)
    rows, _ = a_filling_state(rooms, groups)

    state = dived(seed)

    assert state is not None
    assert int(state.open.sum()) <= FEW_DOMAINS or not state.waiting.any()
    taken = sum((counts for _, counts in state.chosen), np.zeros(len(rows.groups), dtype=np.int64))
    assert (taken + state.waiting == rows.groups).all(), "every group is in a set or waits"
    for kind, counts in state.chosen:
        assert counts @ rows.load[:, 0] <= rows.room[kind, 0]


def test_another_variant_is_another_way():
    ways = [dived(3, variant) for variant in range(4)]

    assert len({repr([(k, c.tolist()) for k, c in way.chosen]) for way in ways if way is not None}) > 1


def test_a_small_error_in_floating_point_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    def chosen() -> list[object]:
        states = [dived(seed) for seed in range(6)]
        return [state and [(kind, counts.tolist()) for kind, counts in state.chosen] for state in states]

    before, evaluate = chosen(), set_relaxation._Smoothed._evaluate

    for sign in (1, -1):

        def off(
            self: set_relaxation._Smoothed, point: np.ndarray, smoothing: float, sign: int = sign
        ) -> tuple[float, np.ndarray]:
            value, shares = evaluate(self, point * np.resize([1 + sign * 1e-9, 1 - sign * 1e-9], len(point)), smoothing)
            return value, shares

        monkeypatch.setattr(set_relaxation._Smoothed, "_evaluate", off)
        assert chosen() == before


def test_sets_that_cannot_suffice_are_known_to_be_hopeless():
    rows, state = a_filling_state([8, 8, 8, 8], [5, 5, 5, 5, 4, 4, 4])
    diving = SetDiving(rows, Budget(1_000_000))

    assert run_to_end(diving.dive(state, 0)) is None
    assert diving.hopeless


def test_domains_with_too_many_sets_take_part_with_some(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(group_sets, "MOST_SAMPLED", 60)
    rng = random.Random(5)
    homes = [[rng.randint(301, 999) for _ in range(5 if at < 2 else 2)] for at in range(16)]
    groups = [group for home in homes for group in home]
    rng.shuffle(groups)
    rows, state = a_filling_state([sum(home) + 3 for home in homes], groups, unknown=(0, 1))
    assert len(state.unknown) >= 2

    reached = run_to_end(SetDiving(rows, Budget(10_000_000)).dive(state, 0))

    assert reached is not None
    taken = sum((counts for _, counts in reached.chosen), np.zeros(len(rows.groups), dtype=np.int64))
    assert (taken + reached.waiting == rows.groups).all()
