"""For which shapes counting decides: room, ports, and company that no victim provides.

The seats of such a shape on a node follow from the node alone: what is free in each row that it asks for,
where its host ports are one more row of which a node has one. Required affinity narrows the nodes as
long as nobody who could be evicted is the company it needs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from muster.api import selectors
from muster.api.types import Pod, PodAffinityTerm
from muster.scheduler.arrays import Bools, Ints
from muster.scheduler.cluster import Cluster
from muster.scheduler.shapes import Footprint, Port, Shape

ROOM, PORTS, COMPANY = "NodeResourcesFit", "NodePorts", "InterPodAffinity"


class Counted:
    """A shape whose seats can be counted: where it may go, and how much of which row it asks for."""

    def __init__(self, cluster: Cluster, shape: Shape, open_: Bools) -> None:
        self.shape = shape
        self.open = open_
        self.ports: tuple[Port, ...] = tuple(shape.footprint.needs.ports)
        requests = shape.request_vector(cluster)
        self.rows: tuple[tuple[int, int], ...] = tuple(
            (int(row), int(requests[row])) for row in np.flatnonzero(requests)
        )

    def clashes(self, footprint: Footprint) -> int:
        """How many ports of a pod stand in the way."""
        return sum(any(port.clashes(mine) for mine in self.ports) for port in footprint.needs.ports)

    def port_room(self, cluster: Cluster) -> Ints:
        """One port per node, less those that clash."""
        room = np.ones(cluster.size, dtype=np.int64)
        for what, tally in cluster.tallies.carried():
            if isinstance(what, Port) and any(what.clashes(mine) for mine in self.ports):
                room -= tally.column[: cluster.size]
        return room


def counted(cluster: Cluster, shape: Shape, victims: Iterable[Pod]) -> Counted | None:
    """The shape in the terms of counting, or None where only a plan can tell."""
    standing = cluster.standing(shape)
    if any(rule.name not in (ROOM, PORTS) for rule in standing.load_filters):
        return None
    open_ = standing.node_ok.copy()
    if not standing.pods_filters:
        return Counted(cluster, shape, open_)
    if any(rule.name != COMPANY for rule in standing.pods_filters) or not _only_company(shape.pod, victims):
        return None
    for rule in standing.pods_filters:
        open_ &= rule.allows(shape, cluster, slice(0, cluster.size))
    return Counted(cluster, shape, open_)


def _only_company(pod: Pod, victims: Iterable[Pod]) -> bool:
    """Does the pod only want to be near pods that stay, and is it not its own company?"""
    affinity = pod.spec.affinity
    if affinity is None:
        return True
    apart = affinity.pod_anti_affinity
    if apart is not None and apart.required_during_scheduling_ignored_during_execution:
        return False
    near = affinity.pod_affinity
    terms = (near.required_during_scheduling_ignored_during_execution or ()) if near is not None else ()
    return not any(_selects(term, other) for term in terms for other in (pod, *victims))


def _selects(term: PodAffinityTerm, pod: Pod) -> bool:
    return selectors.matches(term.label_selector, pod.metadata.labels or {})
