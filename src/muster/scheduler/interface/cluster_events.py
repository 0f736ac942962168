"""What an event changed in the cluster, in the words that constraints use to say what could cure a refusal."""

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


NAMESPACE = "namespace"


SELECTORS = "selectors"


ClusterEvents = frozenset[str]


NOTHING: ClusterEvents = frozenset()


# After these, the node they happened on is looked at again in any case.
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
