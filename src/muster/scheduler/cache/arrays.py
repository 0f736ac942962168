"""The array types of the columnar core, and the two rules for growing them.

Columns have a slot per node along their last axis. A caller that judges some nodes passes `Slots`:
an array of slot numbers (of any number of dimensions), or a slice for all of them.

A log of changed slots, so that a cache can bring just those up to date.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


Ids = npt.NDArray[np.int32]


Bools = npt.NDArray[np.bool_]


Slots = Ints | slice


def grown(array: npt.NDArray[np.generic], length: int) -> npt.NDArray[np.generic]:
    """The array with its last axis extended by zeros to the given length."""
    out = np.zeros((*array.shape[:-1], length), dtype=array.dtype)
    out[..., : array.shape[-1]] = array
    return out


def with_rows(array: Ints, rows: int) -> Ints:
    """The array with its first axis extended by zeros to the given number of rows."""
    out = np.zeros((rows, array.shape[1]), dtype=array.dtype)
    out[: array.shape[0]] = array
    return out


_LONGEST = 65536


class ChangeLog:
    """Slots in the order in which they changed; `end` is the version that a reader remembers."""

    __slots__ = ("_kept", "_slots", "_start", "end")

    def __init__(self) -> None:
        self._slots: Ints = np.zeros(1024, dtype=np.int64)
        self._kept = 0
        self._start = 0
        self.end = 0

    def add(self, slot: int) -> None:
        if self._kept == len(self._slots):
            self._make_room()
        self._slots[self._kept] = slot
        self._kept += 1
        self.end += 1

    def add_many(self, slots: Ints) -> None:
        while self._kept + len(slots) > len(self._slots) and len(self._slots) < _LONGEST:
            self._make_room()
        if self._kept + len(slots) <= len(self._slots):
            self._slots[self._kept : self._kept + len(slots)] = slots
            self._kept += len(slots)
            self.end += len(slots)
        else:
            # More than the log is for: every reader starts anew.
            self.end += len(slots)
            self._kept = 0
            self._start = self.end

    def since(self, version: int) -> Ints | None:
        """The slots changed since then, perhaps repeated; None when the log no longer reaches back so far."""
        if version < self._start:
            return None
        return self._slots[version - self._start : self._kept]

    def _make_room(self) -> None:
        if len(self._slots) < _LONGEST:
            self._slots = cast(Ints, grown(self._slots, len(self._slots) * 2))
        else:
            self._kept = 0
            self._start = self.end
