"""A cordoned node takes only pods that tolerate being there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.api.selectors import tolerates
from muster.api.types import Taint
from muster.scheduler.arrays import Bools, Slots
from muster.scheduler.changes import NODE_ADDED, NODE_UNSCHEDULABLE
from muster.scheduler.constraints.base import Constraint, Reach

if TYPE_CHECKING:
    from muster.scheduler.cluster import Cluster
    from muster.scheduler.shapes import Shape

_CORDON = Taint("node.kubernetes.io/unschedulable", "NoSchedule")


class NodeUnschedulable(Constraint):
    name = "NodeUnschedulable"
    filters = Reach.NODE
    text = "node(s) were unschedulable"
    final = True
    cures = frozenset((NODE_ADDED, NODE_UNSCHEDULABLE))

    def filters_for(self, shape: Shape, cluster: Cluster) -> bool:
        return not any(tolerates(toleration, _CORDON) for toleration in shape.pod.spec.tolerations or ())

    def allows(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        return ~cluster.unschedulable[slots]
