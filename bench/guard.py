"""`make bench-guard`: a quick form of the benchmarks that notices when something became dearer.

Every page may offer small works (`guarded()`). Of each, two things are compared with `bench/guard.json`:

- its counts (attempts, search steps, array passes, requests, and what it returns in a `Counter`) must be exactly those
  recorded; a change that alters them on purpose records them again (`python -m bench.guard --record [NAME...]`) and
  says why;
- its processor time, as a ratio to a calibration loop, may be at most twice the recorded ratio. It is the least of five
  runs, in which all works and the loop take turns, and what is above the limit is measured a second time.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.counting import Counts, counting

RECORDED = Path(__file__).with_name("guard.json")
ROUNDS = 5
LIMIT = 2.0  # times the recorded ratio
SHORTEST = 0.05  # ratios below this are noise: a work that is shorter may grow up to it
PAGES = ("workloads", "scale", "cycle", "preemption", "wakeups", "search", "starvation")  # those that offer `guarded()`


class GuardedWork(NamedTuple):
    """A work of at most a fraction of a second. `prepare` builds what it needs and is not measured.

    A work that returns a `Counter` adds its own counts.
    """

    name: str
    prepare: Callable[[], Callable[[], object]]


class Result(NamedTuple):
    """What is recorded of a work: its time as a ratio to the calibration loop, and its counts."""

    ratio: float
    counts: Counts


def calibration() -> int:
    """A fixed mix of what the scheduler does: dictionaries, small objects, sorting, array passes."""
    found = 0
    for number in range(1, 41):
        table = {(number, each): each * 7919 % 1009 for each in range(2_000)}
        found += sum(sorted(table.values())[:10])
        column = np.arange(50_000) * number % 977
        found += int(np.minimum(column, 500).sum()) + int(np.bincount(column)[3])
    return found


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


def measure(works: Sequence[GuardedWork]) -> dict[str, float]:
    """The ratio of each work to the calibration loop: the least of several runs, taken in turns."""
    loop = float("inf")
    least = dict.fromkeys((work.name for work in works), float("inf"))
    for _ in range(ROUNDS):
        loop = min(loop, seconds(calibration))
        for work in works:
            least[work.name] = min(least[work.name], seconds(work.prepare()))
    return {name: value / loop for name, value in least.items()}


def count(work: GuardedWork) -> Counts:
    run = work.prepare()
    with counting() as counts:
        own = run()
    if isinstance(own, Counter):
        counts.update(own)
    return dict(sorted(counts.items()))


def faults(works: Sequence[GuardedWork], recorded: dict[str, Result]) -> list[str]:
    """What differs from the record, in words."""
    found = [f"{work.name}: not recorded" for work in works if work.name not in recorded]
    known = [work for work in works if work.name in recorded]
    for work in known:
        counts = count(work)
        if counts != recorded[work.name].counts:
            found.append(f"{work.name}: counts {counts}, recorded {recorded[work.name].counts}")
    slow = _slower(known, recorded)
    if slow:
        print("measured a second time:", ", ".join(work.name for work in slow), flush=True)
        slow = _slower(slow, recorded)
    return [*found, *(f"{work.name}: more than {LIMIT:g} times the recorded time, twice" for work in slow)]


def _slower(works: Sequence[GuardedWork], recorded: dict[str, Result]) -> list[GuardedWork]:
    ratios = measure(works)
    slow: list[GuardedWork] = []
    for work in works:
        ratio, before = ratios[work.name], recorded[work.name].ratio
        print(f"{work.name:<64} {ratio:8.3f}  recorded {before:8.3f}", flush=True)
        if ratio > max(SHORTEST, LIMIT * before):
            slow.append(work)
    return slow


def all_works(names: Iterable[str]) -> list[GuardedWork]:
    """The works of all pages, or those named."""
    works = [work for page in PAGES for work in importlib.import_module(f"bench.{page}").guarded()]
    wanted = set(names)
    return [work for work in works if not wanted or work.name in wanted]


def read() -> dict[str, Result]:
    if not RECORDED.exists():
        return {}
    return {name: Result(entry["ratio"], entry["counts"]) for name, entry in json.loads(RECORDED.read_text()).items()}


def record(works: Sequence[GuardedWork]) -> None:
    """Write what these works cost now; works that no longer exist are left out."""
    ratios, known = measure(works), read()
    existing = {work.name for work in all_works(())}
    entries = {name: each._asdict() for name, each in known.items() if name in existing}
    for work in works:
        entries[work.name] = {"ratio": round(ratios[work.name], 4), "counts": count(work)}
    RECORDED.write_text(json.dumps(entries, indent=1, sort_keys=True) + "\n")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these works")
    parser.add_argument("--record", action="store_true", help="record what the works cost now")
    options = parser.parse_args(arguments)
    works = all_works(options.names)
    if options.record:
        record(works)
        return 0
    found = faults(works, read())
    for fault in found:
        print(f"FAULT {fault}")
    print(f"{len(works)} works, {len(found)} faults")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
