"""Search steps: how much a search may do, and where it pauses.

A step is a bounded amount of work, at most one pass over `CELLS_PER_STEP` cells of an array, never a unit of time: the
same search takes the same steps on any machine. A long search is a generator that yields where it may be left and
taken up again; it holds no lock and no open trial there.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeVar

CELLS_PER_STEP = 16_384

T = TypeVar("T")

Pausing = Generator[None, None, T]  # a search with an answer of type T that yields where it may be paused


@dataclass(slots=True)
class Budget:
    """Steps that may still be spent, in slices of `slice_steps` (0: in one)."""

    limit: int
    spent: int = field(default=0)
    slice_steps: int = 0
    parent: Budget | None = None
    _paused_at: int = 0

    def spend(self, steps: int = 1) -> bool:
        """Spend steps; False when the budget is exceeded."""
        self.spent += steps
        if self.parent is not None:
            self.parent.spend(steps)
        return self.spent <= self.limit

    def spend_cells(self, cells: int) -> bool:
        """Spend the steps of an array pass over so many cells."""
        return self.spend(1 + cells // CELLS_PER_STEP)

    @property
    def exhausted(self) -> bool:
        return self.spent >= self.limit

    @property
    def left(self) -> int:
        return max(0, self.limit - self.spent)

    def part(self, steps: int) -> Budget:
        """A budget of at most so many steps, which are spent of this one as well."""
        return Budget(max(1, min(steps, self.left)), parent=self)

    def shorten_slice(self, steps: int) -> None:
        """Work that is no part of the search took up so much of its slice."""
        self._whole()._paused_at -= steps

    def _whole(self) -> Budget:
        whole = self
        while whole.parent is not None:
            whole = whole.parent
        return whole

    def pause_due(self, ahead: int = 0) -> bool:
        """Whether the slice is used up, or so many steps more would use it up; if so, the next one starts."""
        whole = self._whole()
        if not whole.slice_steps or whole.spent - whole._paused_at + ahead < whole.slice_steps:
            return False
        whole._paused_at = whole.spent
        return True


def run_slice(search: Pausing[T]) -> T | None:
    """The answer of a search; None if it pauses first."""
    try:
        next(search)
    except StopIteration as end:
        return end.value
    return None


def run_to_end(search: Pausing[T]) -> T:
    """The answer of a search, without pausing."""
    while True:
        try:
            next(search)
        except StopIteration as end:
            return end.value
