"""Whoever shows how far a long answer is: a command draws a bar, a page shows nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Is told what is being done, and counts the items that pass through it."""

    def stage(self, what: str, total: int = 0) -> None: ...

    def through(self, items: Iterable[T], what: str, total: int) -> Iterator[T]: ...

    def over(self, items: Collection[T], what: str) -> Iterator[T]: ...
