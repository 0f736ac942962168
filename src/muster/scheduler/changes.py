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

Changes = frozenset[str]
NOTHING: Changes = frozenset()
# Changes that show on no node and no pod.
ELSEWHERE: Changes = frozenset((STORAGE, NAMESPACE, SELECTORS))
