"""The nodes as arrays, for questions whose answer depends on counts alone.

A node matrix holds what each node has free, what one pod of each shape requests, and which nodes each shape may use at
all. A limit that is no resource (a host port, attached volumes) becomes one more row, so that everything below computes
with one kind of row. A node matrix is never changed. Here, and only here, a shape has an index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.framework.shape import Shape

Ints = NDArray[np.int64]


Mask = NDArray[np.bool_]


PLENTY = np.int64(2**62)


class NodeSet:
    """A set of nodes, with a bit set for quick intersection."""

    __slots__ = ("bits", "nodes")

    def __init__(self, nodes: Ints, size: int) -> None:
        mask = np.zeros(size, dtype=bool)
        mask[nodes] = True
        self.nodes = nodes
        self.bits = int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


class NodeMatrix:
    """What is free on each node, what one pod of each shape requests, and where it may be placed."""

    def __init__(
        self,
        shapes: Sequence[Shape],
        free: Ints,
        requests: Ints,
        allowed: Mask,
        rank: Ints,
        columns: dict[str, NDArray[Any]] | None = None,
        value_ids: Callable[[str, str], int] = lambda key, value: int(value),
        *,
        limited: bool = False,
        exact: bool = True,
    ) -> None:
        self.free = free  # [row, node]
        self.requests = requests  # [shape, row]
        self.allowed = allowed  # [shape, node]
        self.rank = rank
        self.columns = columns or {}
        self.value_id = value_ids
        self.limited = limited  # some row stands for a limit that is no resource
        self.exact = exact  # if False, shapes compete for devices in a way that no row counts
        self.size = free.shape[1]
        self._index = {shape: at for at, shape in enumerate(shapes)}
        self._sets: dict[object, NodeSet] = {}
        self._domains: dict[tuple[NodeSet, str], dict[int, NodeSet]] = {}
        self._seats: dict[int, Ints] = {}

    def index(self, shape: Shape) -> int:
        """The row of a shape in `requests` and `allowed`."""
        return self._index[shape]

    def request(self, shape: Shape) -> Ints:
        """What one pod of a shape requests of each row."""
        return self.requests[self._index[shape]]

    def seats(self, shape: Shape) -> Ints:
        """How many pods of a shape each node takes when nothing else comes."""
        at = self._index[shape]
        known = self._seats.get(at)
        if known is None:
            known = self._seats[at] = count_seats(self.free, self.requests[at], self.allowed[at])
        return known

    def everywhere(self, mask: Mask | None = None) -> NodeSet:
        """All nodes, or those of a mask."""
        nodes: Ints = np.arange(self.size, dtype=np.int64) if mask is None else np.flatnonzero(mask)
        return self._sets.setdefault(nodes.tobytes(), NodeSet(nodes, self.size))

    def domains(self, nodes: NodeSet, key: str) -> dict[int, NodeSet]:
        """The domains of a label key among some nodes, by value id; nodes without the label are in none."""
        known = self._domains.get((nodes, key))
        if known is None:
            if not len(nodes.nodes):
                return {}
            values = self.columns[key][nodes.nodes]
            order = np.argsort(values, kind="stable")
            ordered = values[order]
            starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
            found, parts = ordered[starts], np.split(nodes.nodes[order], starts[1:])
            known = {int(value): NodeSet(part, self.size) for value, part in zip(found, parts, strict=True) if value}
            self._domains[(nodes, key)] = known
        return known


def count_seats(free: Ints, request: Ints, allowed: Mask) -> Ints:
    """Seats per node for one shape alone."""
    seats = np.where(allowed, PLENTY, 0)
    for row in np.flatnonzero(request):
        np.minimum(seats, free[row] // request[row], out=seats)
    return np.maximum(seats, 0, out=seats)
