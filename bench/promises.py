"""Bars that are counts: how often a promise was broken in some random worlds. The tests and `make oracle` try more.

`python -m bench.promises`
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from tests.build.random_pressure import a_life
from tests.promises.test_waiting_equals_oracle import FALLBACK_SECONDS, difference

from bench.figures import Figure
from bench.starvation import an_hour
from muster.scheduler.queue import scheduling_queue

SEQUENCES = 200


def differences(sequences: int) -> list[int]:
    """The sequences of events after which a scheduler at rest has not decided what a new one decides."""
    usual = scheduling_queue.FALLBACK_SECONDS
    scheduling_queue.FALLBACK_SECONDS = FALLBACK_SECONDS  # it would hide what is looked for
    try:
        return [seed for seed in range(sequences) if difference(a_life(seed))]
    finally:
        scheduling_queue.FALLBACK_SECONDS = usual


def unlike_decisions() -> int:
    """Decisions of an hour without large gangs that are others with reservations than without."""
    runs = [an_hour(0.9, 2, 0, reservations=on, seed=1)[1] for on in (True, False)]
    return sum(one != other for one, other in zip_longest(*runs))


def figures() -> Iterator[Figure]:
    found = differences(SEQUENCES)
    name = f"{SEQUENCES} sequences of events: a new scheduler decides otherwise"
    yield Figure(
        name, len(found), "sequences", ceiling=0, note=f"seeds {found}" if found else "make oracle tries 10,000"
    )
    yield Figure("reservations on, no large gang: decisions that differ", unlike_decisions(), "decisions", ceiling=0)
    for who in ("two Musters", "Muster beside kube-scheduler"):
        name = f"{who} racing, 50 rounds: gangs started in part, pods rejected"
        yield Figure.not_measured(name, "", "tests/e2e/test_several_schedulers.py counts them", ceiling=0)


def main() -> None:
    for figure in figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
