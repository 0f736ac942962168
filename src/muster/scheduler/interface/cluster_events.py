"""Cluster events: what changed in the cluster, as far as it can make an unschedulable pod schedulable.

Event handlers report them, and each plugin names those that can end its rejection (`Plugin.requeue_on`), as
kube-scheduler's `EventsToRegister` does.
"""

from __future__ import annotations

NODE_ADDED = "node added"
NODE_REMOVED = "node removed"
NODE_LABELS = "node labels"
NODE_TAINTS = "node taints"
NODE_UNSCHEDULABLE = "node unschedulable"
NODE_ALLOCATABLE = "node allocatable"
NODE_IMAGES = "node images"
POD_PLACED = "pod placed"
POD_GONE = "pod gone"
POD_CHANGED = "pod changed"
STORAGE = "storage"
DEVICES = "devices"
NAMESPACE = "namespace"
SELECTORS = "selectors"

ClusterEvents = frozenset[str]

NOTHING: ClusterEvents = frozenset()

# Events of one node. The node is filtered again after each of them, so no plugin has to name these to requeue pods.
NODE_LOCAL: ClusterEvents = frozenset(
    (
        NODE_ADDED,
        NODE_LABELS,
        NODE_TAINTS,
        NODE_UNSCHEDULABLE,
        NODE_ALLOCATABLE,
        NODE_IMAGES,
        POD_GONE,
        POD_CHANGED,
    )
)
