"""Whether a node would still admit a pod that was assigned to it: what a kubelet asks before it starts a pod.

Plans are made from what the watches had shown. Between the plan and its binds others may have bound pods to the same
nodes, or changed the nodes; this is the second look at them, as cheap as the plan is large. Like everything here it
reads the API objects and shares no code with the planner.
"""

from __future__ import annotations

from collections.abc import Callable

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.node_amounts import amounts_of
from muster.scheduler.checking.node_rules import ports_conflict, ports_of

NOBODY: frozenset[str] = frozenset()


def admission_fault(cluster: Cluster, uid: str, ignores: Callable[[str], bool]) -> str | None:
    """Why the node of an assumed pod would not admit it beside the pods that are there now, or None.

    `ignores` says which resources the pod's profile does not compare.
    """
    assumed = cluster.pods.get(uid)
    if assumed is None:
        return "the pod is no longer placed there"
    node = cluster.node_objects.get(assumed.node)
    if node is None or assumed.slot < 0:
        return f"node {assumed.node} is gone"
    amounts = amounts_of(cluster)
    shape = amounts.shape(assumed.pod)
    refusal = shape.rules.refusal(node)
    if refusal is not None:
        return f"node {assumed.node}: {refusal}"
    requested, allocatable = amounts.requested(assumed.slot, NOBODY), amounts.allocatable(node)
    for name in ("pods", *shape.requests):
        if requested.get(name, 0) > allocatable.get(name, 0) and not ignores(name):
            return f"node {assumed.node} has no {name} left: others were bound to it meanwhile"
    for port in shape.ports:
        for other in cluster.pods_on(assumed.slot):
            if other is not assumed and any(ports_conflict(port, taken) for taken in ports_of(other.pod)):
                return f"the port {port[2]} of node {assumed.node} was taken meanwhile"
    return None
