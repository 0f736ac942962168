"""The snapshot as arrays, for questions whose answer depends on counts alone.

A board holds what each node still has free, what one pod of each shape takes, and where each shape
may go at all. A limit that is no resource (a host port, attached volumes) becomes one more row, so
that everything below works with one kind of arithmetic. Boards are never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    def __init__(
        self,
        free: Ints,
        requests: Ints,
        allowed: Mask,
        rank: Ints,
        columns: dict[str, NDArray[Any]] | None = None,
        value_ids: Callable[[str, str], int] = lambda key, value: int(value),
        *,
        limited: bool = False,
    ) -> None:
        self.free = free  # [row, node]
        self.requests = requests  # [shape, row]
        self.allowed = allowed  # [shape, node]
        self.rank = rank
        self.columns = columns or {}
        self.value_id = value_ids
        self.limited = limited  # some row stands for a limit that is no resource
        self.size = free.shape[1]
        self._scopes: dict[object, NodeSet] = {}
        self._domains: dict[tuple[NodeSet, str], dict[int, NodeSet]] = {}
        self._seats: dict[int, Ints] = {}

    def seats(self, shape: int) -> Ints:
        """How many pods of a shape each node takes when nothing else comes."""
        known = self._seats.get(shape)
        if known is None:
            known = self._seats[shape] = count_seats(self.free, self.requests[shape], self.allowed[shape])
        return known

    def everywhere(self, mask: Mask | None = None) -> NodeSet:
        nodes: Ints = np.arange(self.size, dtype=np.int64) if mask is None else np.flatnonzero(mask)
        return self._scopes.setdefault(nodes.tobytes(), NodeSet(nodes, self.size))

    def domains(self, scope: NodeSet, key: str) -> dict[int, NodeSet]:
        """The domains of a label key inside a scope, by value id; nodes without the label are in none."""
        known = self._domains.get((scope, key))
        if known is None:
            if not len(scope.nodes):
                return {}
            values = self.columns[key][scope.nodes]
            order = np.argsort(values, kind="stable")
            ordered = values[order]
            starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
            found, parts = ordered[starts], np.split(scope.nodes[order], starts[1:])
            known = {int(value): NodeSet(nodes, self.size) for value, nodes in zip(found, parts, strict=True) if value}
            self._domains[(scope, key)] = known
        return known


def count_seats(free: Ints, request: Ints, allowed: Mask) -> Ints:
    """Seats per node for one shape alone."""
    seats = np.where(allowed, PLENTY, 0)
    for row in np.flatnonzero(request):
        np.minimum(seats, free[row] // request[row], out=seats)
    return np.maximum(seats, 0, out=seats)
