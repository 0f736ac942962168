"""The oracle of waiting is tried itself: without one of the signals that wake entities it finds a difference.

Each fault is planted by switching one method of `RequeueSignals` off. The sequences named here are the first of their
kind that notice; the same sequences have no difference with all signals on.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.scheduler.queue import scheduling_queue
from muster.scheduler.state.requeue_signals import RequeueSignals
from tests.build.random_pressure import Deed, a_life, a_tense_life
from tests.promises.test_waiting_equals_oracle import FALLBACK_SECONDS, difference

Life = Callable[[int], list[Deed]]

FAULTS: list[tuple[str, Life, int, bool]] = [
    ("nomination_cleared", a_tense_life, 10, True),
    ("pod", a_tense_life, 104, False),
    ("pod_gone", a_tense_life, 34, True),
    ("pod_leaving", a_tense_life, 52, False),
    ("evictable", a_life, 0, True),
    ("capacity", a_life, 50, True),
]


@pytest.fixture(autouse=True)
def late_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling_queue, "FALLBACK_SECONDS", FALLBACK_SECONDS)


@pytest.mark.parametrize(("signal", "life", "seed", "plain"), FAULTS)
def test_a_signal_that_is_missing_is_noticed(
    signal: str, life: Life, seed: int, plain: bool, monkeypatch: pytest.MonkeyPatch
):
    assert not difference(life(seed), plain=plain), "with all signals"

    monkeypatch.setattr(RequeueSignals, signal, lambda self, *args, **fields: None)

    assert difference(life(seed), plain=plain)
