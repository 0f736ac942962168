"""The guard of the benchmarks: it notices other counts and longer times, and nothing else."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from bench import guard
from bench.__main__ import PAGES
from bench.figures import Figure, table
from bench.guard import GuardedWork, Result
from bench.objects import a_gang, a_node, a_pod

from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.events import CacheSynced, ObjectUpdated
from muster.scheduler.runtime.config import default_config


def a_gang_of(size: int) -> Callable[[], Callable[[], object]]:
    def prepare() -> Callable[[], object]:
        scheduler = Scheduler(default_config())
        objects: list[Any] = [a_node("n", "8"), a_gang("g", size)]
        objects += [a_pod(f"g-{number}", "1", "1Gi", group="g") for number in range(size)]
        for obj in objects:
            scheduler.handle(ObjectUpdated(type(obj).__name__, obj), 0.0)
        scheduler.handle(CacheSynced(), 0.0)
        return lambda: scheduler.next(1.0)

    return prepare


@pytest.fixture
def ratios(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the next measurements give, in this order."""
    given: list[float] = []

    def measure(works: list[GuardedWork]) -> dict[str, float]:
        ratio = given.pop(0)
        return {work.name: ratio for work in works}

    monkeypatch.setattr(guard, "measure", measure)
    return given


def test_counts_are_those_of_the_work():
    counts = guard.count(GuardedWork("gang", a_gang_of(3)))
    assert counts["attempts"] == 1
    assert counts["requests"] == 3
    assert counts["array passes"] > 0


def test_what_a_work_returns_in_a_counter_is_counted_too():
    counts = guard.count(GuardedWork("own", lambda: lambda: Counter({"found": 2, "missed": 0})))
    assert counts == {"found": 2, "missed": 0}


def test_the_same_work_counts_the_same_twice():
    work = GuardedWork("gang", a_gang_of(3))
    assert guard.count(work) == guard.count(work)


def test_other_counts_are_a_fault(ratios: list[float]):
    ratios += [1.0]
    work = GuardedWork("gang", a_gang_of(3))
    recorded = {"gang": Result(1.0, guard.count(GuardedWork("gang", a_gang_of(2))))}
    (fault,) = guard.faults([work], recorded)
    assert fault.startswith("gang: counts")


def test_a_work_that_was_never_recorded_is_a_fault(ratios: list[float]):
    ratios += [1.0]
    assert guard.faults([GuardedWork("new", a_gang_of(1))], {}) == ["new: not recorded"]


@pytest.mark.parametrize(
    ("measured", "faults"),
    [([1.9], 0), ([2.1, 1.9], 0), ([2.1, 2.1], 1)],
    ids=["within twice the time", "slow only once", "slow twice"],
)
def test_a_longer_time_is_a_fault_only_when_measured_twice(ratios: list[float], measured: list[float], faults: int):
    ratios += measured
    work = GuardedWork("gang", a_gang_of(3))
    assert len(guard.faults([work], {"gang": Result(1.0, guard.count(work))})) == faults
    assert ratios == []


def test_a_ratio_is_that_of_the_work_to_the_calibration_loop(monkeypatch: pytest.MonkeyPatch):
    clock = iter(number * 0.5 for number in range(100))
    monkeypatch.setattr("bench.guard.time.process_time", lambda: next(clock))
    assert guard.measure([GuardedWork("gang", a_gang_of(1))]) == {"gang": 1.0}


def test_every_work_of_the_pages_is_recorded_once():
    names = [work.name for work in guard.all_works(())]
    assert sorted(names) == sorted(guard.read())


def test_the_table_shows_figures_with_their_bars():
    rows = [
        ("page", Figure("quick", 12.34, "ms", ceiling=20)),
        ("page", Figure("slow", 5.0, "pods/s", floor=6)),
        ("page", Figure("only for reading", 1.0, "s")),
        ("page", Figure.not_measured("elsewhere", "times", "no Go here", floor=3)),
    ]
    assert table(rows).splitlines()[2:] == [
        "| page | quick | 12.3 ms | at most 20 | yes |",
        "| page | slow | 5 pods/s | at least 6 | NO |",
        "| page | elsewhere; no Go here | not measured | at least 3 | unknown |",
    ]


def test_every_page_offers_figures():
    for page in PAGES:
        assert callable(importlib.import_module(f"bench.{page}").figures), page
