"""A progress bar on stderr for work that takes over a second.

The bar appears one second after the work began, on a terminal only, and is erased when the work is done, so that it
never mixes with the answer on stdout.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
DELAY_SECONDS = 1.0
EVERY = 256  # items between two updates


class Bar:
    """What is being done, how much of it is done, and how much there is in all."""

    def __init__(self) -> None:
        self._what, self._total, self._done = "Working", 0, 0
        self._shown: Progress | None = None

    def stage(self, what: str, total: int = 0) -> None:
        """Begin the next part of the work; without a total the bar only shows that something goes on."""
        self._what, self._total, self._done = what, total, 0
        self._draw()

    def through(self, items: Iterable[T], what: str, total: int) -> Iterator[T]:
        """Yield the items and count them."""
        self.stage(what, total)
        every = EVERY if total > EVERY else 1
        for number, item in enumerate(items, 1):
            yield item
            if number % every == 0:
                self._done = number
                self._draw()

    def over(self, items: Collection[T], what: str) -> Iterator[T]:
        """`through` for items whose number is known."""
        return self.through(items, what, len(items))

    def show(self) -> None:
        """Start drawing."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        progress.add_task(self._what, total=self._total or None)
        progress.start()
        self._shown = progress
        self._draw()

    def hide(self) -> None:
        """Erase the bar."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None

    def _draw(self) -> None:
        if self._shown is not None:
            task = self._shown.task_ids[0]
            self._shown.update(task, description=self._what, total=self._total or None, completed=self._done)


@contextmanager
def shown(*, wanted: bool = True) -> Generator[Bar]:
    """A bar for the work of the block; shown if the work takes long enough and stderr is a terminal."""
    bar = Bar()
    if not wanted or not sys.stderr.isatty():
        yield bar
        return
    timer = Timer(DELAY_SECONDS, bar.show)
    timer.daemon = True
    timer.start()
    try:
        yield bar
    finally:
        timer.cancel()
        timer.join()
        bar.hide()
