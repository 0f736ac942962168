"""NodeUnschedulable: a cordoned node fits only pods that tolerate the taint `node.kubernetes.io/unschedulable`."""

from __future__ import annotations

from muster.api.selectors import tolerates
from muster.api.types import Taint
from muster.scheduler.cache.arrays import Bools, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED, NODE_UNSCHEDULABLE

_CORDON = Taint("node.kubernetes.io/unschedulable", "NoSchedule")


class NodeUnschedulable(Plugin):
    name = "NodeUnschedulable"
    filter_depends_on = DependsOn.NODE
    message = "node(s) were unschedulable"
    unresolvable = True
    requeue_on = frozenset((NODE_ADDED, NODE_UNSCHEDULABLE))

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        return not any(tolerates(toleration, _CORDON) for toleration in shape.pod.spec.tolerations or ())

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        return ~cluster.unschedulable[slots]
