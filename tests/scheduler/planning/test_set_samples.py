"""Samples of domains with too many sets: they obey the rows, grow where prices are high, and never repeat a set."""

from __future__ import annotations

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning import group_sets
from muster.scheduler.planning.set_samples import SetSamples, noise
from tests.build.filling import a_filling_state

ROOMS, GROUPS = [60, 12], list(range(3, 17))


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_sets, "MOST_SAMPLED", 20)


def test_samples_obey_the_rows_and_what_a_state_has():
    rows, state = a_filling_state(ROOMS, GROUPS, unknown=(0,))
    spare = np.array([6])
    samples = SetSamples(rows, Budget(1_000_000))

    (found,) = run_to_end(samples.of(state, spare))

    assert len(found)
    assert (found.counts @ rows.load[:, 0] <= rows.room[0, 0]).all()
    assert (found.left <= spare).all()
    state.waiting[int(found.counts[0].argmax())] = 0
    (fewer,) = run_to_end(samples.of(state, spare))
    assert np.less_equal(fewer.counts, state.waiting).all()


def test_prices_add_sets_and_none_twice():
    rows, state = a_filling_state(ROOMS, GROUPS, unknown=(0,))
    spare = np.array([10_000])
    samples = SetSamples(rows, Budget(1_000_000))
    (before,) = run_to_end(samples.of(state, spare))
    cheap = int((before.counts > 0).sum(axis=0).argmin())
    weights = np.zeros(len(rows.groups), dtype=np.int64)
    weights[cheap] = 1 << 17

    (after,) = run_to_end(samples.of(state, spare, weights))

    assert len(after) > len(before)
    assert (after.counts[:, cheap] > 0).sum() > (before.counts[:, cheap] > 0).sum()
    assert len({row.tobytes() for row in after.counts}) == len(after)


def test_new_rows_and_sets_ruled_out_are_obeyed():
    rows, state = a_filling_state(ROOMS, GROUPS, unknown=(0,))
    samples = SetSamples(rows, Budget(1_000_000))
    spare = np.array([10_000])
    (before,) = run_to_end(samples.of(state, spare))
    gone = before.counts[0]
    rows.rule_out(0, np.flatnonzero(gone[rows.kind_of_group]))
    rows.room = np.column_stack((rows.room, [4, 4]))
    rows.load = np.column_stack((rows.load, np.ones(len(rows.groups), dtype=np.int64)))

    (after,) = run_to_end(samples.of(state, np.array([10_000, 10_000])))

    assert (after.counts.sum(axis=1) <= 4).all()
    assert not (after.counts == gone).all(axis=1).any()


def test_the_same_prices_give_other_sets_once_they_give_nothing_new():
    rows, state = a_filling_state(ROOMS, GROUPS, unknown=(0,))
    samples, spare = SetSamples(rows, Budget(10_000_000)), np.array([10_000])
    weights = np.arange(len(rows.groups), dtype=np.int64) << 12
    sizes = [len(run_to_end(samples.of(state, spare, weights))[0]) for _ in range(6)]

    assert sizes[-1] > sizes[1]


def test_noise_is_the_same_everywhere_and_not_always_the_same():
    assert noise(5, 0, 1000).tolist() == noise(5, 0, 1000).tolist()
    assert noise(5, 0, 1000).tolist() != noise(5, 1, 1000).tolist()
    many = noise(10_000, 3, 100)
    assert many.min() == 0
    assert many.max() == 99
    assert abs(float(many.mean()) - 49.5) < 2
