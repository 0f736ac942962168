"""How many pods of a kind are on each node, kept up to date pod by pod.

A tally counts either the pods that a term selects or the pods that carry something themselves (an
anti-affinity term, a host port). Pods are sorted into label classes: namespace plus the labels that
some selector mentions, so that a label nobody asks about never splits anything. A class knows the
tallies its pods belong to; one pod more is one addition per tally, and its sums per label value
follow at the same time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import cast
from weakref import WeakValueDictionary, ref

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ids, Ints, grown
from muster.scheduler.cache.node_columns import LabelColumn, NodeColumns
from muster.scheduler.cache.pod_terms import PodTerm


class NodeSubset:
    """Some of the nodes; the same ones are the same object, so that sums over them can be shared."""

    __slots__ = ("__weakref__", "mask")

    def __init__(self, mask: Bools) -> None:
        self.mask = mask


class _Sums:
    __slots__ = ("columns", "labels", "values", "version", "where")

    def __init__(self, columns: NodeColumns, labels: LabelColumn, where: NodeSubset | None, column: Ids) -> None:
        self.columns = columns
        self.labels = labels
        self.where = where
        self.version = columns.node_version
        size = columns.size
        weights = column[:size] if where is None else column[:size] * where.mask
        sums = np.bincount(labels.ids[:size], weights=weights, minlength=len(labels.values))
        sums[0] = 0  # nodes without the label are in no domain
        self.values: Ints = sums.astype(np.int64)

    def add(self, slot: int, count: int) -> None:
        # Sums of an older set of nodes are built anew when somebody asks for them.
        if self.version == self.columns.node_version and (self.where is None or self.where.mask[slot]):
            number = self.labels.ids[slot]
            if number:
                self.values[number] += count


class PodCount:
    """Pods per slot, their total, and their sums per value of the label keys asked about."""

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

    def by(self, key: str, where: NodeSubset | None = None) -> Ints:
        """Pods per value id of a label, on the nodes of `where`; entry 0 (no label) is always 0."""
        if self._version != self._columns.node_version:
            self._sums.clear()
            self._version = self._columns.node_version
        sums = self._sums.get((key, where))
        if sums is None:
            sums = self._sums[(key, where)] = _Sums(self._columns, self._columns.label_column(key), where, self.column)
        return sums.values

    def reset(self) -> None:
        self.column[:] = 0
        self.total = 0
        self._sums.clear()


class LabelClass:
    """Pods that no selector in play can tell apart."""

    __slots__ = ("__weakref__", "counts", "dying", "labels", "living", "namespace", "seats")

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels
        self.seats: dict[int, int] = {}
        self.dying: dict[int, int] = {}
        self.counts: list[ref[PodCount]] = []  # count every pod
        self.living: list[ref[PodCount]] = []  # do not count pods that are being deleted

    def add(self, slot: int, count: int, dying: bool) -> None:
        _shift(self.seats, slot, count)
        if self.counts:
            self.counts = _add_to(self.counts, slot, count)
        if dying:
            _shift(self.dying, slot, count)
        elif self.living:
            self.living = _add_to(self.living, slot, count)

    def join(self, tally: PodCount, living: bool) -> None:
        (self.living if living else self.counts).append(ref(tally))

    def quit(self, tally: PodCount, living: bool) -> None:
        members = self.living if living else self.counts
        members[:] = [held for held in members if held() is not tally]


def _add_to(tallies: list[ref[PodCount]], slot: int, count: int) -> list[ref[PodCount]]:
    """Count into those tallies that somebody still reads; the others are left out from now on."""
    gone = False
    for held in tallies:
        tally = held()
        if tally is None:
            gone = True
        else:
            tally.add(slot, count)
    return [held for held in tallies if held() is not None] if gone else tallies


def _shift(counts: dict[int, int], slot: int, count: int) -> None:
    now = counts.get(slot, 0) + count
    if now:
        counts[slot] = now
    else:
        del counts[slot]


class PodCounts:
    """All label classes and tallies of a cluster."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self._capacity = 64
        self.keys: frozenset[str] = frozenset()
        self._in_order: list[str] = []
        self.version = 0  # grows when a tally, a class or a namespace could change who counts where
        self.namespaces: dict[str, Mapping[str, str]] = {}
        # A class lives as long as a pod or a shape uses it.
        self._classes: WeakValueDictionary[tuple[str, tuple[tuple[str, str], ...]], LabelClass] = WeakValueDictionary()
        # A tally lives as long as a shape reads it or a footprint counts in it.
        self._matching: WeakValueDictionary[tuple[tuple[PodTerm, ...], bool], PodCount] = WeakValueDictionary()
        self._carrying: WeakValueDictionary[Hashable, PodCount] = WeakValueDictionary()
        self._wheres: WeakValueDictionary[bytes, NodeSubset] = WeakValueDictionary()

    def add_label_keys(self, keys: Iterable[str]) -> None:
        """Tell classes apart by these label keys too; those of pods that have one must be looked up again."""
        self.keys = self.keys.union(keys)
        self._in_order = sorted(self.keys)

    def class_of(self, namespace: str, labels: Mapping[str, str] | None) -> LabelClass:
        seen = tuple([(key, labels[key]) for key in self._in_order if key in labels]) if labels else ()
        found = self._classes.get((namespace, seen))
        if found is None:
            found = self._classes[(namespace, seen)] = LabelClass(namespace, dict(seen))
            for (terms, living), tally in self._matching.items():
                if self.selects_all(terms, found):
                    found.join(tally, living)
        return found

    def selects(self, term: PodTerm, label_class: LabelClass) -> bool:
        namespace = label_class.namespace
        return term.selects(namespace, label_class.labels, self.namespaces.get(namespace))

    def selects_all(self, terms: tuple[PodTerm, ...], label_class: LabelClass) -> bool:
        return all(self.selects(term, label_class) for term in terms)

    def matching(self, terms: tuple[PodTerm, ...], *, living: bool = False) -> PodCount:
        """The tally of pods that all the terms select; with `living`, only those not being deleted."""
        tally = self._matching.get((terms, living))
        if tally is None:
            tally = self._matching[(terms, living)] = PodCount(self._columns, self._capacity)
            for found in self._classes.values():
                if self.selects_all(terms, found):
                    self._count_in(found, tally, living)
        return tally

    def _count_in(self, found: LabelClass, tally: PodCount, living: bool) -> None:
        found.join(tally, living)
        for slot, count in found.seats.items():
            tally.add(slot, count - (found.dying.get(slot, 0) if living else 0))

    def carrying(self, what: Hashable) -> PodCount:
        """The tally of pods that carry something; who carries it counts itself in."""
        tally = self._carrying.get(what)
        if tally is None:
            tally = self._carrying[what] = PodCount(self._columns, self._capacity)
            self.version += 1
        return tally

    def carried(self) -> Iterable[tuple[Hashable, PodCount]]:
        return self._carrying.items()

    def where(self, mask: Bools) -> NodeSubset:
        """These nodes, as an object that sums can be kept by."""
        key = mask.tobytes()
        found = self._wheres.get(key)
        if found is None:
            found = self._wheres[key] = NodeSubset(mask)
        return found

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """Note a namespace's labels (None: it is gone); True if that changed whom terms select."""
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
        concerned = [key for key in self._matching if any(term.namespace_conditions is not None for term in key[0])]
        for terms, living in concerned:
            tally = self._matching.get((terms, living))
            if tally is None:
                continue
            tally.reset()
            for found in self._classes.values():
                found.quit(tally, living)
                if self.selects_all(terms, found):
                    self._count_in(found, tally, living)

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for tally in (*self._matching.values(), *self._carrying.values()):
            tally.column = cast(Ids, grown(tally.column, capacity))
