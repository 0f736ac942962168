"""A host port is held by one pod on a node: same protocol and number clash when the addresses overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from muster.scheduler.arrays import Bools, Ints, Slots
from muster.scheduler.changes import NODE_ADDED, POD_GONE
from muster.scheduler.constraints.base import Constraint, Reach
from muster.scheduler.shapes import Port
from muster.scheduler.tallies import Tally

if TYPE_CHECKING:
    from muster.scheduler.cluster import Cluster
    from muster.scheduler.shapes import Shape


class NodePorts(Constraint):
    name = "NodePorts"
    filters = Reach.LOAD
    entangles = True
    text = "node(s) didn't have free ports for the requested pod ports"
    cures = frozenset((NODE_ADDED, POD_GONE))

    def filters_for(self, shape: Shape, cluster: Cluster) -> bool:
        return bool(shape.footprint.needs.ports)

    def allows(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        free = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
        for held in _clashing(shape, cluster):
            free &= held.column[: cluster.size][slots] == 0
        return free

    def seats(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        return self.allows(shape, cluster, slots).astype(np.int64)


def _clashing(shape: Shape, cluster: Cluster) -> list[Tally]:
    wanted = shape.footprint.needs.ports

    def find() -> list[Tally]:
        known = [(what, tally) for what, tally in cluster.tallies.carried() if isinstance(what, Port)]
        return [tally for what, tally in known if any(what.clashes(port) for port in wanted)]

    return shape.fresh("clashing ports", cluster.tallies.version, find)
