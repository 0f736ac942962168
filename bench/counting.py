"""Counts of work that do not depend on the machine: attempts, search steps, array passes, requests.

They are taken by wrapping the scheduler's own functions while a work runs, so that nothing is paid for them otherwise.
The same events give the same counts on every machine and with every version of Python and NumPy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface.decisions import Decision
from muster.scheduler.placement.budget import Budget
from muster.scheduler.plugins import DEFAULT
from muster.scheduler.queue.scheduling_queue import SchedulingQueue

Counts = dict[str, int]
_PASSES = ("filter", "score", "capacity", "score_after")  # what a plugin computes over arrays of nodes


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Counts everything that schedulers do inside the block."""
    counts: Counter[str] = Counter()
    undo: list[Callable[[], None]] = []

    def wrap(owner: Any, name: str, note: Callable[[tuple[Any, ...], Any], None]) -> None:
        original = owner.__dict__[name]

        def counted(*arguments: Any, **named: Any) -> Any:
            result = original(*arguments, **named)
            note(arguments, result)
            return result

        setattr(owner, name, counted)
        undo.append(lambda: setattr(owner, name, original))

    def note_attempt(_: tuple[Any, ...], entity: object) -> None:
        counts["attempts"] += entity is not None

    def note_steps(arguments: tuple[Any, ...], _: object) -> None:
        if arguments[0].parent is None:  # a part reports to its parent
            counts["steps"] += arguments[1] if len(arguments) > 1 else 1

    def note_pass(_: tuple[Any, ...], result: object) -> None:
        counts["array passes"] += result is not None

    def note_decisions(_: tuple[Any, ...], decisions: list[Decision]) -> None:
        counts["requests"] += len(decisions)

    wrap(SchedulingQueue, "pop", note_attempt)
    wrap(Budget, "spend", note_steps)
    wrap(Scheduler, "next", note_decisions)
    for plugin in DEFAULT:
        for name in _PASSES:
            if name in plugin.__dict__:
                wrap(plugin, name, note_pass)
    try:
        yield counts
    finally:
        for each in reversed(undo):
            each()
