"""Pod counts: on each node, the number of pods that a term selects or that carry a given term, port or disk.

Pods are grouped into label classes: namespace plus the labels whose key occurs in some selector, so that other labels
never split a class. A label class has a list of the pod counts that its pods belong to. Adding a pod is one addition
for each of them, and one for each of their sums by label value (topology pair counts).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from weakref import WeakValueDictionary, ref

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ids, Ints, grown
from muster.scheduler.cache.node_columns import LabelColumn, NodeColumns
from muster.scheduler.cache.pod_terms import PodTerm


class NodeSubset:
    """A set of nodes. Equal sets are one object (`PodCounts.node_subset`), so that sums over them are shared."""

    __slots__ = ("__weakref__", "mask")

    def __init__(self, mask: Bools) -> None:
        self.mask = mask


class _Sums:
    """Pods per value id of one label, on all nodes or a subset of them."""

    __slots__ = ("columns", "labels", "nodes", "values", "version")

    def __init__(self, columns: NodeColumns, labels: LabelColumn, nodes: NodeSubset | None, column: Ids) -> None:
        self.columns = columns
        self.labels = labels
        self.nodes = nodes
        self.version = columns.node_version
        size = columns.size
        weights = column[:size] if nodes is None else column[:size] * nodes.mask
        sums = np.bincount(labels.ids[:size], weights=weights, minlength=len(labels.values))
        sums[0] = 0  # nodes without the label are in no domain
        self.values: Ints = sums.astype(np.int64)

    def add(self, slot: int, count: int) -> None:
        # Sums over an older set of nodes are computed again when they are read.
        if self.version == self.columns.node_version and (self.nodes is None or self.nodes.mask[slot]):
            number = self.labels.ids[slot]
            if number:
                self.values[number] += count


class PodCount:
    """Number of pods per slot, their total, and their sums per value of the label keys that were read."""

    __slots__ = ("__weakref__", "_columns", "_sums", "_version", "column", "total")

    def __init__(self, columns: NodeColumns, capacity: int) -> None:
        self._columns = columns
        self._sums: dict[tuple[str, NodeSubset | None], _Sums] = {}
        self._version = -1
        self.column: Ids = np.zeros(capacity, dtype=np.int32)
        self.total = 0

    def add(self, slot: int, count: int) -> None:
        self.column[slot] += count
        self.total += count
        for sums in self._sums.values():
            sums.add(slot, count)

    def by_label(self, key: str, nodes: NodeSubset | None = None) -> Ints:
        """Pods per value id of a label, on `nodes` or everywhere; entry 0 (nodes without the label) is always 0."""
        if self._version != self._columns.node_version:
            self._sums.clear()
            self._version = self._columns.node_version
        sums = self._sums.get((key, nodes))
        if sums is None:
            sums = self._sums[(key, nodes)] = _Sums(self._columns, self._columns.label_column(key), nodes, self.column)
        return sums.values

    def reset(self) -> None:
        self.column[:] = 0
        self.total = 0
        self._sums.clear()


class LabelClass:
    """Pods of one namespace that have equal values for all label keys of all selectors."""

    __slots__ = (
        "__weakref__",
        "active_counts",
        "counts",
        "labels",
        "namespace",
        "pods_by_slot",
        "terminating_by_slot",
    )

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels
        self.pods_by_slot: dict[int, int] = {}
        self.terminating_by_slot: dict[int, int] = {}
        self.counts: list[ref[PodCount]] = []  # of every pod
        self.active_counts: list[ref[PodCount]] = []  # without pods that are being deleted

    def add(self, slot: int, count: int, terminating: bool) -> None:
        _add_at(self.pods_by_slot, slot, count)
        if self.counts:
            self.counts = _add_to(self.counts, slot, count)
        if terminating:
            _add_at(self.terminating_by_slot, slot, count)
        elif self.active_counts:
            self.active_counts = _add_to(self.active_counts, slot, count)

    def add_count(self, pod_count: PodCount, skip_terminating: bool) -> None:
        (self.active_counts if skip_terminating else self.counts).append(ref(pod_count))

    def remove_count(self, pod_count: PodCount, skip_terminating: bool) -> None:
        counts = self.active_counts if skip_terminating else self.counts
        counts[:] = [known for known in counts if known() is not pod_count]


def _add_to(pod_counts: list[ref[PodCount]], slot: int, count: int) -> list[ref[PodCount]]:
    """Add to the pod counts that are still in use; returns the list without those that are not."""
    unused = False
    for known in pod_counts:
        pod_count = known()
        if pod_count is None:
            unused = True
        else:
            pod_count.add(slot, count)
    return [known for known in pod_counts if known() is not None] if unused else pod_counts


def _add_at(counts: dict[int, int], slot: int, count: int) -> None:
    now = counts.get(slot, 0) + count
    if now:
        counts[slot] = now
    else:
        del counts[slot]


class PodCounts:
    """All label classes and pod counts of a cluster.

    A pod count exists as long as a shape or a footprint uses it, a label class as long as a pod or a shape does.
    """

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self._capacity = 64
        self.keys: frozenset[str] = frozenset()  # the label keys by which pods are told apart
        self._sorted_keys: list[str] = []
        self.version = 0  # grows when terms may select other pods, or when a new term, port or disk is carried
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self._classes: WeakValueDictionary[tuple[str, tuple[tuple[str, str], ...]], LabelClass] = WeakValueDictionary()
        self._matching: WeakValueDictionary[tuple[tuple[PodTerm, ...], bool], PodCount] = WeakValueDictionary()
        self._carrying: WeakValueDictionary[Hashable, PodCount] = WeakValueDictionary()
        self._subsets: WeakValueDictionary[bytes, NodeSubset] = WeakValueDictionary()

    def add_label_keys(self, keys: Iterable[str]) -> None:
        """Distinguish label classes by these keys too; the caller looks the class of each pod that has one up again."""
        self.keys = self.keys.union(keys)
        self._sorted_keys = sorted(self.keys)

    def class_of(self, namespace: str, labels: Mapping[str, str] | None) -> LabelClass:
        """The label class of a pod with these labels."""
        seen = tuple([(key, labels[key]) for key in self._sorted_keys if key in labels]) if labels else ()
        found = self._classes.get((namespace, seen))
        if found is None:
            found = self._classes[(namespace, seen)] = LabelClass(namespace, dict(seen))
            for (terms, skip_terminating), pod_count in self._matching.items():
                if self.selects_all(terms, found):
                    found.add_count(pod_count, skip_terminating)
        return found

    def selects(self, term: PodTerm, label_class: LabelClass) -> bool:
        namespace = label_class.namespace
        return term.selects(namespace, label_class.labels, self.namespaces.get(namespace))

    def selects_all(self, terms: tuple[PodTerm, ...], label_class: LabelClass) -> bool:
        return all(self.selects(term, label_class) for term in terms)

    def matching(self, terms: tuple[PodTerm, ...], *, skip_terminating: bool = False) -> PodCount:
        """The count of pods that all the terms select; with `skip_terminating`, without those being deleted."""
        pod_count = self._matching.get((terms, skip_terminating))
        if pod_count is None:
            pod_count = self._matching[(terms, skip_terminating)] = PodCount(self._columns, self._capacity)
            for found in self._classes.values():
                if self.selects_all(terms, found):
                    self._add_class(found, pod_count, skip_terminating)
        return pod_count

    def _add_class(self, label_class: LabelClass, pod_count: PodCount, skip_terminating: bool) -> None:
        """Add the present and the future pods of a label class to a pod count."""
        label_class.add_count(pod_count, skip_terminating)
        for slot, count in label_class.pods_by_slot.items():
            skipped = label_class.terminating_by_slot.get(slot, 0) if skip_terminating else 0
            pod_count.add(slot, count - skipped)

    def carrying(self, what: Hashable) -> PodCount:
        """The count of pods that carry a term, host port or disk; `Cluster.add_usage` adds to it."""
        pod_count = self._carrying.get(what)
        if pod_count is None:
            pod_count = self._carrying[what] = PodCount(self._columns, self._capacity)
            self.version += 1
        return pod_count

    def carried(self) -> Iterable[tuple[Hashable, PodCount]]:
        """Everything that pods carry, with its count."""
        return self._carrying.items() if self._carrying else ()

    def node_subset(self, mask: Bools) -> NodeSubset:
        """The nodes of a mask over all slots; equal masks give the same object."""
        key = mask.tobytes()
        found = self._subsets.get(key)
        if found is None:
            found = self._subsets[key] = NodeSubset(mask)
        return found

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Set the labels of a namespace, None if it was deleted; True if terms may select other pods now."""
        old = self.namespaces.get(name)
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        if old == labels:
            return False
        self._rematch()
        return True

    def _rematch(self) -> None:
        self.version += 1
        affected = [key for key in self._matching if any(term.namespace_requirements is not None for term in key[0])]
        for terms, skip_terminating in affected:
            pod_count = self._matching.get((terms, skip_terminating))
            if pod_count is None:
                continue
            pod_count.reset()
            for found in self._classes.values():
                found.remove_count(pod_count, skip_terminating)
                if self.selects_all(terms, found):
                    self._add_class(found, pod_count, skip_terminating)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for pod_count in (*self._matching.values(), *self._carrying.values()):
            pod_count.column = grown(pod_count.column, capacity)
