"""Rows by key that know what changed since a version, so that a page is sent differences only.

Removed keys are remembered up to a limit; whoever is further behind than that starts again from the whole table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

MOST_REMOVED = 20_000


class Table(Generic[K, R]):
    """The present rows, and for each key the version at which it last changed, oldest change first."""

    def __init__(self) -> None:
        self.rows: dict[K, R] = {}
        self._changed: dict[K, int] = {}
        self._removed: dict[K, int] = {}
        self.floor = 0  # differences since earlier versions are not known

    def set(self, key: K, row: R, version: int) -> bool:
        """Store a row; says whether it differs from the one before."""
        if self.rows.get(key) == row:
            return False
        self.rows[key] = row
        self._removed.pop(key, None)
        self._changed.pop(key, None)
        self._changed[key] = version
        return True

    def remove(self, key: K, version: int) -> bool:
        """Remove a row; says whether there was one."""
        if self.rows.pop(key, None) is None:
            return False
        self._changed.pop(key, None)
        self._removed[key] = version
        while len(self._removed) > MOST_REMOVED:
            oldest = next(iter(self._removed))
            self.floor = max(self.floor, self._removed.pop(oldest))
        return True

    def changed_since(self, version: int) -> Iterator[K]:
        """The keys of rows that were set after a version, latest first."""
        for key in reversed(self._changed):
            if self._changed[key] <= version:
                return
            yield key

    def removed_since(self, version: int) -> Iterator[K]:
        """The keys that were removed after a version and are still absent."""
        for key in reversed(self._removed):
            if self._removed[key] <= version:
                return
            yield key
