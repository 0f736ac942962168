"""Array types of the cache, functions that extend arrays, and the log of changed slots.

Every node has a slot: its index along the last axis of all arrays. A function that computes something for some nodes
takes `Slots`: an array of slots (of any number of dimensions), or a slice for all of them.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Item = TypeVar("Item", bound=np.generic)

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Slots = Ints | slice

_MAX_LENGTH = 65536  # of a log: 512 KiB; a reader that is further behind computes everything again


def grown(array: npt.NDArray[Item], length: int) -> npt.NDArray[Item]:
    """The array with its last axis extended by zeros to the given length."""
    out = np.zeros((*array.shape[:-1], length), dtype=array.dtype)
    out[..., : array.shape[-1]] = array
    return out


def with_rows(array: Ints, rows: int) -> Ints:
    """The array with its first axis extended by zeros to the given number of rows."""
    out = np.zeros((rows, array.shape[1]), dtype=array.dtype)
    out[: array.shape[0]] = array
    return out


def present_ids(ids: Ids) -> Ints:
    """The distinct ids above 0, ascending. Ids are small; `np.unique` would sort, and import much at its first call."""
    present = np.flatnonzero(np.bincount(ids))
    return present[present > 0]


class ChangeLog:
    """Slots in the order in which they changed, so that a reader can recompute only those.

    `end` is the number of changes ever logged; a reader stores it and passes it to `since` the next time.
    """

    __slots__ = ("_length", "_slots", "_start", "end")

    def __init__(self) -> None:
        self._slots: Ints = np.zeros(1024, dtype=np.int64)
        self._length = 0
        self._start = 0
        self.end = 0

    def add(self, slot: int) -> None:
        if self._length == len(self._slots):
            self._make_room()
        self._slots[self._length] = slot
        self._length += 1
        self.end += 1

    def add_many(self, slots: Ints) -> None:
        while self._length + len(slots) > len(self._slots) and len(self._slots) < _MAX_LENGTH:
            self._make_room()
        if self._length + len(slots) <= len(self._slots):
            self._slots[self._length : self._length + len(slots)] = slots
            self._length += len(slots)
            self.end += len(slots)
        else:
            # More than the log can hold: it starts again, and every reader recomputes all slots.
            self.end += len(slots)
            self._length = 0
            self._start = self.end

    def since(self, version: int) -> Ints | None:
        """The slots changed since then, possibly repeated; None if the log no longer goes back that far."""
        if version < self._start:
            return None
        return self._slots[version - self._start : self._length]

    def _make_room(self) -> None:
        if len(self._slots) < _MAX_LENGTH:
            self._slots = grown(self._slots, len(self._slots) * 2)
        else:
            self._length = 0
            self._start = self.end
