"""`make faults`: many days, each in a process of its own; what was reached, what failed, and how to see it again."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.simulation.deeds import FAULTS, USERS, Deed
from tests.simulation.network import KINDS
from tests.simulation.shrink import shrink
from tests.simulation.world import Outcome, live

REACHED = (
    *KINDS,
    "disk full",
    "failed sync",
    "slow sync",
    "unsynced writes lost",
    "clock jump",
    "clock drift",
    "node dies",
    "node flaps",
    "node shrinks",
    "node deleted",
    "cordon",
    "orderly stop",
    "bind by another scheduler",
    "bind of our pod by another scheduler",
    "preemption",
    "replay",
    *(f"crash of {name}" for name in ("server", "a", "b", "c", "controllers", "kubelets", "foreign")),
    *(f"pause of {name}" for name in ("server", "a", "b", "c", "controllers", "kubelets", "foreign")),
    *(f"deed: {name}" for name in (*USERS, *FAULTS)),
)
SELDOM = ("crash of c", "pause of c")  # one day in five has a second scheduler
ENOUGH, ENOUGH_FOR_SELDOM = 100, 300  # days after which everything must have happened


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--most", type=int, default=20, help="stop after so many failures")
    parser.add_argument("--history", action="store_true", help="print what happened on the first day")
    parser.add_argument("--shrink", action="store_true", help="leave out deeds of the first day while it still fails")
    parser.add_argument("--deeds", default="", help="the numbers of the deeds to keep, separated by commas")
    given = parser.parse_args(arguments)
    _repeatable()
    if given.shrink:
        return _shrink(given.first)
    if given.history or given.deeds:
        return _show(given.first, given.deeds)
    return _many(given)


def _repeatable() -> None:
    """Sets of strings have the same order only with the same seed of hashes."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
            {**os.environ, "PYTHONHASHSEED": "0"},
        )


def _many(given: argparse.Namespace) -> int:
    began, counts, failed, done = time.monotonic(), Counter[str](), [], 0
    virtual, cpu = 0.0, 0.0
    for result in run_many(range(given.first, given.first + given.seeds), given.jobs):
        done += 1
        virtual += result["seconds"]
        cpu += result["cpu"]
        for name, count in result["counts"].items():
            counts[name] += count
            counts[f"days with {name}"] += count > 0
        if result["complaints"]:
            failed.append(result["seed"])
            print(f"seed {result['seed']} failed: {result['complaints'][0]}")
            print(
                f"  again: {command(result['seed'])} --history    smaller: {command(result['seed'])} --shrink",
                flush=True,
            )
            if len(failed) >= given.most:
                break
    print(
        f"{done} days, {virtual / 3600:.1f} virtual hours, {len(failed)} failed; "
        f"{cpu / max(done, 1):.2f} s of CPU a day, {time.monotonic() - began:.0f} s in all"
    )
    for name in REACHED:
        print(f"  {name:32} {counts[name]:8}  on {counts[f'days with {name}']:6} days")
    missed = never_reached(counts, done)
    if missed:
        print(f"never reached: {', '.join(missed)}")
    return 1 if failed or missed else 0


def never_reached(counts: Counter[str], days: int) -> list[str]:
    """What should have happened in so many days, and has not."""
    return [name for name in REACHED if not counts[name] and days >= (ENOUGH_FOR_SELDOM if name in SELDOM else ENOUGH)]


def command(seed: int) -> str:
    return f".venv/bin/python -m tests.simulation --first {seed}"


def run_many(seeds: Sequence[int], jobs: int) -> Iterator[dict[str, Any]]:
    """The results of many days, as they end."""
    waiting, running = list(reversed(seeds)), {}
    while waiting or running:
        while waiting and len(running) < jobs:
            seed = waiting.pop()
            reader = _fork(lambda seed=seed: _result(live(seed)))
            running[reader] = seed
        reader, seed = next(iter(running.items()))
        del running[reader]
        yield _read(reader, seed)


def in_child(work: Callable[[], dict[str, Any]], seed: int = -1) -> dict[str, Any]:
    """Do something in a process of its own, which leaves nothing behind."""
    return _read(_fork(work), seed)


def _fork(work: Callable[[], dict[str, Any]]) -> tuple[int, int]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    code = 1
    try:
        os.close(reader)
        began = time.process_time()
        result = work()
        result["cpu"] = time.process_time() - began
        with os.fdopen(writer, "w") as out:
            json.dump(result, out)
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _read(child: tuple[int, int], seed: int) -> dict[str, Any]:
    pid, reader = child
    with os.fdopen(reader) as incoming:
        text = incoming.read()
    os.waitpid(pid, 0)
    if not text:
        return {"seed": seed, "complaints": ["the simulation itself crashed"], "counts": {}, "seconds": 0.0, "cpu": 0.0}
    return json.loads(text)


def _result(outcome: Outcome) -> dict[str, Any]:
    return {
        "seed": outcome.seed,
        "complaints": outcome.complaints,
        "counts": dict(outcome.counts),
        "digest": outcome.digest,
        "seconds": outcome.seconds,
        "revisions": outcome.revisions,
    }


def _show(seed: int, kept: str) -> int:
    day: list[Deed] | None = None
    if kept:
        from tests.simulation.world import World

        whole = World(seed).day
        day = [] if kept == "none" else [whole[int(number)] for number in kept.split(",")]

    def work() -> dict[str, Any]:
        outcome = live(seed, day)
        return {**_result(outcome), "lines": outcome.lines}

    result = in_child(work, seed)
    print("\n".join(result.get("lines", [])))
    for complaint in result["complaints"]:
        print(f"WRONG {complaint}")
    print(f"history {result.get('digest')}")
    return 1 if result["complaints"] else 0


def _shrink(seed: int) -> int:
    from tests.simulation.world import World

    day = World(seed).day

    def complaint(kept: list[int]) -> str:
        found = in_child(lambda: _result(live(seed, [day[number] for number in kept])), seed)["complaints"]
        return found[0] if found else ""

    kept, text = shrink(len(day), complaint)
    if not text:
        print(f"seed {seed} does not fail")
        return 0
    print(f"seed {seed} fails with {len(kept)} of {len(day)} deeds: {text}")
    for number in kept:
        print(f"  {day[number]}")
    print(f"again: {command(seed)} --deeds {','.join(map(str, kept)) or 'none'}")
    return 1
