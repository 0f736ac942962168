"""The invariants of the scheduler's state hold after every cycle of every test."""

from __future__ import annotations

import pytest

from muster.scheduler.cycle.scheduler import Scheduler


@pytest.fixture(autouse=True)
def checked_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Scheduler.next

    def run_and_check(self: Scheduler, now: float):
        decisions = run(self, now)
        self.state.check()
        return decisions

    monkeypatch.setattr(Scheduler, "next", run_and_check)
