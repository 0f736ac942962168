"""Nodes as NumPy columns: one slot a node, resources as rows, labels, taints and images as interned numbers.

A removed node's slot is used again; a dead slot has `alive` False and nothing else that a rule would
read. Label and image columns exist only for the keys and images that some rule has asked for. The
public arrays are views of the first `size` slots and are replaced, not resized, when nodes come.

`rank` orders nodes for ties: a seeded hash of the name, unique, whatever the order of arrival.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import cast

import numpy as np

from muster.api import quantity, selectors
from muster.api.types import Node, Quantities, Taint
from muster.scheduler.cache.arrays import Bools, Ids, Ints, grown, with_rows
from muster.scheduler.interface import cluster_events

CPU, MEMORY, PODS = 0, 1, 2


RANK_BITS = 40


# Sums of a few hundred such amounts, and one of them times 100, still fit an int64.
LARGEST = 2**55


_FIRST_CAPACITY = 64


def counted(resource: str) -> bool:
    """Whether the scheduler counts a resource of this name at all."""
    return (
        resource in ("cpu", "memory", "pods", "ephemeral-storage")
        or "/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )


def scalar(resource: str) -> bool:
    """Whether it is an extended (or otherwise special) resource, counted only for pods that ask for it."""
    return resource not in ("cpu", "memory", "pods", "ephemeral-storage")


def amount(resource: str, text: str | int | float) -> int:
    """A quantity as a whole number: thousandths for cpu, units for everything else."""
    size = quantity.milli(text) if resource == "cpu" else quantity.value(text)
    return max(0, min(size, LARGEST))


def image_name(name: str) -> str:
    """An image's name with its tag; the tag is `latest` when none is given."""
    return name if name.rfind(":") > name.rfind("/") else name + ":latest"


class LabelColumn:
    """The values of one label key: an id per slot, 0 where the label is missing."""

    def __init__(self, capacity: int) -> None:
        self.ids: Ids = np.zeros(capacity, dtype=np.int32)
        self.values: list[str] = [""]
        self.known: dict[str, int] = {}
        self.version = 0
        self._tables: dict[tuple[str, tuple[str, ...]], Bools] = {}

    def put(self, slot: int, value: str | None) -> None:
        number = 0 if value is None else self.intern(value)
        if self.ids[slot] != number:
            self.ids[slot] = number
            self.version += 1

    def intern(self, value: str) -> int:
        number = self.known.get(value)
        if number is None:
            number = self.known[value] = len(self.values)
            self.values.append(value)
        return number

    def satisfying(self, key: str, operator: str, values: tuple[str, ...]) -> Bools:
        """Per value id: whether a node with that value meets the requirement. Each value is judged once."""
        table = self._tables.get((operator, values))
        have = 0 if table is None else len(table)
        if table is None or have < len(self.values):
            wanted = selectors.Requirement(key, operator, values)
            fresh = [selectors.satisfies(wanted, {key: value} if i else {}) for i, value in self._from(have)]
            table = np.array([*(() if table is None else table), *fresh], dtype=np.bool_)
            self._tables[(operator, values)] = table
        return table

    def _from(self, start: int) -> list[tuple[int, str]]:
        return list(enumerate(self.values))[start:]


class NodeColumns:
    """The columns of all nodes and how a node enters, changes and leaves them."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.size = 0
        self.count = 0
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.node_objects: dict[str, Node] = {}
        self.resources: list[str] = ["cpu", "memory", "pods"]
        self.row: dict[str, int] = {name: i for i, name in enumerate(self.resources)}
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self.node_version = 0
        self.images_version = 0
        self._taint_ids: dict[tuple[Taint, ...], int] = {(): 0}
        self._labels: dict[str, LabelColumn] = {}
        self._images: dict[str, Ints] = {}
        self._held_images = 0  # pairs of a node and an image asked about that it holds
        self._free: list[int] = []
        self._ranked: dict[int, str] = {}
        self._capacity = _FIRST_CAPACITY
        self._all_alive: Bools = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._all_rank: Ints = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._all_alloc: Ints = np.zeros((3, _FIRST_CAPACITY), dtype=np.int64)
        self._all_used: Ints = np.zeros((3, _FIRST_CAPACITY), dtype=np.int64)
        self._all_nonzero: Ints = np.zeros((2, _FIRST_CAPACITY), dtype=np.int64)
        self._all_unschedulable: Bools = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._all_taint_set: Ids = np.zeros(_FIRST_CAPACITY, dtype=np.int32)
        self._review()

    # --- reading -----------------------------------------------------------------------------------

    def labels(self, key: str) -> Ids:
        """The value id of a label per slot; 0 where the node has no such label."""
        return self.label_column(key).ids[: self.size]

    def label_column(self, key: str) -> LabelColumn:
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(self._capacity)
            for name, slot in sorted(self.index.items()):
                column.put(slot, (self.node_objects[name].metadata.labels or {}).get(key))
        return column

    def label_value(self, key: str, number: int) -> str:
        return self.label_column(key).values[number]

    def label_id(self, key: str, value: str) -> int:
        """The id of a label's value; 0 when no node ever had it."""
        return self.label_column(key).known.get(value, 0)

    def image_sizes(self, image: str) -> Ints:
        """Bytes of an image per slot; 0 where the node does not have it."""
        column = self._images.get(image)
        if column is None:
            column = self._images[image] = np.zeros(self._capacity, dtype=np.int64)
            for name, slot in self.index.items():
                column[slot] = _image_size(self.node_objects[name], image)
            self._held_images += int(np.count_nonzero(column))
        return column[: self.size]

    # --- writing -----------------------------------------------------------------------------------

    def resource_row(self, resource: str) -> int:
        """The row of a resource; a new one is made for a name not met before."""
        row = self.row.get(resource)
        if row is None:
            row = self.row[resource] = len(self.resources)
            self.resources.append(resource)
            self._all_alloc = with_rows(self._all_alloc, row + 1)
            self._all_used = with_rows(self._all_used, row + 1)
            self._review()
        return row

    def put_node(self, node: Node) -> cluster_events.ClusterEvents:
        """Take a node in as it is now; says what is different from before."""
        name = node.metadata.name
        slot = self.index.get(name)
        old = self.node_objects.get(name)
        self.node_objects[name] = node
        if slot is None or old is None:
            self._fill(self._new_slot(name), node)
            self.node_version += 1
            self._note_images()
            return frozenset((cluster_events.NODE_ADDED,))
        found = _differences(old, node)
        if cluster_events.NODE_IMAGES in found:
            self._note_images()
        if found:
            self._fill(slot, node)
        if cluster_events.NODE_IMAGES in found:
            self._note_images()
        if found - {cluster_events.NODE_IMAGES, cluster_events.NODE_ALLOCATABLE}:
            self.node_version += 1
        return found

    def drop_node(self, name: str) -> int:
        """Take a node out; its slot may be used again. Returns the slot, or -1 if the node is unknown."""
        slot = self.index.pop(name, None)
        if slot is None:
            return -1
        del self.node_objects[name]
        self._ranked.pop(int(self._all_rank[slot]), None)
        self.names[slot] = ""
        self.count -= 1
        self._note_images()
        self._clear(slot)
        self._free.append(slot)
        self.node_version += 1
        return slot

    def _note_images(self) -> None:
        # Where no node holds an image that anybody asks about, more or fewer nodes change no score.
        if self._held_images:
            self.images_version += 1

    def _clear(self, slot: int) -> None:
        self._all_alive[slot] = False
        self._all_alloc[:, slot] = 0
        self._all_unschedulable[slot] = False
        self._all_taint_set[slot] = 0
        for column in self._labels.values():
            column.put(slot, None)
        for sizes in self._images.values():
            self._held_images -= bool(sizes[slot])
            sizes[slot] = 0

    def _new_slot(self, name: str) -> int:
        if self._free:
            slot = self._free.pop()
            self.names[slot] = name
        else:
            slot = self.size
            if slot == self._capacity:
                self._grow()
            self.size += 1
            self.names.append(name)
            self._review()
        self.index[name] = slot
        self.count += 1
        self._all_alive[slot] = True
        self._rank(name)
        return slot

    def _rank(self, name: str) -> None:
        """Give each name its first free rank, smaller names first; who came first does not matter."""
        salt = 0
        while True:
            text = f"{self.seed}/{salt}/{name}".encode()
            rank = int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> (64 - RANK_BITS)
            holder = self._ranked.get(rank)
            if holder is None or holder > name:
                self._ranked[rank] = name
                self._all_rank[self.index[name]] = rank
                if holder is None:
                    return
                name, salt = holder, 0
            else:
                salt += 1

    def _fill(self, slot: int, node: Node) -> None:
        for resource in node.status.allocatable or {}:
            if counted(resource):
                self.resource_row(resource)
        self._all_alloc[:, slot] = 0
        for resource, size in _amounts(node.status.allocatable).items():
            self._all_alloc[self.row[resource], slot] = size
        self._all_unschedulable[slot] = node.spec.unschedulable
        self._all_taint_set[slot] = self._taint_id(node.spec.taints or ())
        labels = node.metadata.labels or {}
        for key, column in self._labels.items():
            column.put(slot, labels.get(key))
        for image, sizes in self._images.items():
            held = _image_size(node, image)
            self._held_images += bool(held) - bool(sizes[slot])
            sizes[slot] = held

    def _taint_id(self, taints: tuple[Taint, ...]) -> int:
        number = self._taint_ids.get(taints)
        if number is None:
            number = self._taint_ids[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return number

    def _grow(self) -> None:
        capacity = self._capacity = self._capacity * 2
        self._all_alive = cast(Bools, grown(self._all_alive, capacity))
        self._all_rank = cast(Ints, grown(self._all_rank, capacity))
        self._all_alloc = cast(Ints, grown(self._all_alloc, capacity))
        self._all_used = cast(Ints, grown(self._all_used, capacity))
        self._all_nonzero = cast(Ints, grown(self._all_nonzero, capacity))
        self._all_unschedulable = cast(Bools, grown(self._all_unschedulable, capacity))
        self._all_taint_set = cast(Ids, grown(self._all_taint_set, capacity))
        for column in self._labels.values():
            column.ids = cast(Ids, grown(column.ids, capacity))
        for image, sizes in self._images.items():
            self._images[image] = cast(Ints, grown(sizes, capacity))

    def _review(self) -> None:
        """Renew the public views after a change of size, capacity or rows."""
        self.alive = self._all_alive[: self.size]
        self.rank = self._all_rank[: self.size]
        self.alloc = self._all_alloc[:, : self.size]
        self.used = self._all_used[:, : self.size]
        self.nonzero = self._all_nonzero[:, : self.size]
        self.unschedulable = self._all_unschedulable[: self.size]
        self.taint_set = self._all_taint_set[: self.size]


def _amounts(quantities: Quantities | None) -> dict[str, int]:
    return {name: amount(name, text) for name, text in (quantities or {}).items() if counted(name)}


def _image_size(node: Node, image: str) -> int:
    for held in node.status.images or ():
        if any(image_name(name) == image for name in held.names or ()):
            return held.size_bytes
    return 0


def _differences(old: Node, new: Node) -> cluster_events.ClusterEvents:
    found: list[str] = []
    if (old.metadata.labels or {}) != (new.metadata.labels or {}):
        found.append(cluster_events.NODE_LABELS)
    if (old.spec.taints or ()) != (new.spec.taints or ()):
        found.append(cluster_events.NODE_TAINTS)
    if old.spec.unschedulable != new.spec.unschedulable:
        found.append(cluster_events.NODE_UNSCHEDULABLE)
    if (old.status.allocatable or {}) != (new.status.allocatable or {}):
        found.append(cluster_events.NODE_ALLOCATABLE)
    if (old.status.images or ()) != (new.status.images or ()):
        found.append(cluster_events.NODE_IMAGES)
    return frozenset(found)
