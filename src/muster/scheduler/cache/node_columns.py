"""Nodes as NumPy arrays: one slot for each node, one row for each resource; label values and taint sets as ids.

The slot of a removed node is reused; until then its `alive` is False and its other entries are 0. Columns of labels and
images exist only for the keys and images that a plugin has read. The public arrays are views of the first `size`
slots; they are replaced, not resized, when nodes are added.

`rank` breaks ties between nodes: a seeded hash of the name, unique, independent of the order in which nodes were added.
"""

from __future__ import annotations

from collections.abc import Set
from hashlib import blake2b

import numpy as np
from msgspec.structs import force_setattr

from muster.api import quantity, selectors
from muster.api.types import ContainerImage, Node, Quantities, Taint
from muster.scheduler.cache.arrays import Bools, Ids, Ints, grown, with_rows
from muster.scheduler.cache.known_images import KnownImages, image_name
from muster.scheduler.interface import cluster_events

CPU, MEMORY, PODS = 0, 1, 2  # the rows that always exist

RANK_BITS = 40

# Sums of a few hundred such amounts, and one of them times 100 (a score), still fit an int64.
MAX_AMOUNT = 2**55

_FIRST_CAPACITY = 64


def is_counted(resource: str) -> bool:
    """Whether the scheduler takes a resource of this name into account."""
    return (
        resource in ("cpu", "memory", "pods", "ephemeral-storage")
        or "/" in resource
        or resource.startswith(("hugepages-", "attachable-volumes-"))
    )


def is_scalar(resource: str) -> bool:
    """Whether it is an extended or otherwise special resource, scored only for pods that request it."""
    return resource not in ("cpu", "memory", "pods", "ephemeral-storage")


def amount(resource: str, text: str | int | float) -> int:
    """A quantity as a whole number: milli-units for cpu, units for every other resource."""
    size = quantity.milli(text) if resource == "cpu" else quantity.value(text)
    return max(0, min(size, MAX_AMOUNT))


class LabelColumn:
    """The values of one label key: an id per slot, 0 where the label is missing."""

    def __init__(self, capacity: int) -> None:
        self.ids: Ids = np.zeros(capacity, dtype=np.int32)
        self.values: list[str] = [""]
        self.value_ids: dict[str, int] = {}  # the reverse of `values`
        self.version = 0
        self._tables: dict[tuple[str, tuple[str, ...]], Bools] = {}

    def set(self, slot: int, value: str | None) -> None:
        number = 0 if value is None else self.intern(value)
        if self.ids[slot] != number:
            self.ids[slot] = number
            self.version += 1

    def intern(self, value: str) -> int:
        number = self.value_ids.get(value)
        if number is None:
            number = self.value_ids[value] = len(self.values)
            self.values.append(value)
        return number

    def matching(self, key: str, operator: str, values: tuple[str, ...]) -> Bools:
        """Per value id: whether a node with that value matches the requirement. Each value is evaluated once."""
        table = self._tables.get((operator, values))
        have = 0 if table is None else len(table)
        if table is None or have < len(self.values):
            required = selectors.Requirement(key, operator, values)
            added = [selectors.satisfies(required, {key: value} if i else {}) for i, value in self._from(have)]
            table = np.array([*(() if table is None else table), *added], dtype=np.bool_)
            self._tables[(operator, values)] = table
        return table

    def _from(self, start: int) -> list[tuple[int, str]]:
        return list(enumerate(self.values))[start:]


class NodeColumns:
    """The arrays of all nodes, and how a node is added, updated and removed."""

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
        self._known_images = KnownImages()
        self._images_on_nodes = 0  # pairs of a node and an image that has a column
        self._free_slots: list[int] = []
        self._name_of_rank: dict[int, str] = {}
        self._capacity = _FIRST_CAPACITY
        self._all_alive: Bools = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._all_rank: Ints = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._all_alloc: Ints = np.zeros((3, _FIRST_CAPACITY), dtype=np.int64)
        self._all_used: Ints = np.zeros((3, _FIRST_CAPACITY), dtype=np.int64)
        self._all_nonzero: Ints = np.zeros((2, _FIRST_CAPACITY), dtype=np.int64)
        self._all_unschedulable: Bools = np.zeros(_FIRST_CAPACITY, dtype=np.bool_)
        self._all_taint_set: Ids = np.zeros(_FIRST_CAPACITY, dtype=np.int32)
        self._renew_views()

    # --- reading -----------------------------------------------------------------------------------

    def labels(self, key: str) -> Ids:
        """The value id of a label per slot; 0 where the node has no such label."""
        return self.label_column(key).ids[: self.size]

    def label_column(self, key: str) -> LabelColumn:
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(self._capacity)
            self._fill(column, key)
        return column

    def _fill(self, column: LabelColumn, key: str) -> None:
        """Set the values of all nodes; ids are given in the order of the names of the nodes."""
        values: dict[str, str] = {}
        for name, node in self.node_objects.items():
            labels = node.metadata.labels
            if labels is not None and key in labels:
                values[name] = labels[key]
        first: dict[str, str] = {}  # value -> the smallest name of a node that has it
        for name, value in values.items():
            known = first.get(value)
            if known is None or name < known:
                first[value] = name
        for value in sorted(first, key=first.__getitem__):
            column.intern(value)
        slots = np.fromiter(map(self.index.__getitem__, values), np.int64, len(values))
        column.ids[slots] = np.fromiter(map(column.value_ids.__getitem__, values.values()), np.int32, len(values))
        column.version += len(values)

    def label_value(self, key: str, number: int) -> str:
        return self.label_column(key).values[number]

    def label_id(self, key: str, value: str) -> int:
        """The id of a label value; 0 if no node ever had it."""
        return self.label_column(key).value_ids.get(value, 0)

    def image_sizes(self, image: str) -> Ints:
        """Bytes of an image per slot; 0 where the node does not have it."""
        column = self._images.get(image)
        if column is None:
            column = self._images[image] = np.zeros(self._capacity, dtype=np.int64)
            self._fill_sizes(column, self._known_images.named(image))
            self._images_on_nodes += int(np.count_nonzero(column))
        return column[: self.size]

    def _fill_sizes(self, column: Ints, wanted: Set[ContainerImage]) -> None:
        """The size of the first of these images on each node."""
        for name, slot in self.index.items() if wanted else ():
            for image in self.node_objects[name].status.images or ():
                if image in wanted:
                    column[slot] = image.size_bytes
                    break

    # --- writing -----------------------------------------------------------------------------------

    def resource_row(self, resource: str) -> int:
        """The row of a resource; it is added if the name is new."""
        row = self.row.get(resource)
        if row is None:
            row = self.row[resource] = len(self.resources)
            self.resources.append(resource)
            self._all_alloc = with_rows(self._all_alloc, row + 1)
            self._all_used = with_rows(self._all_used, row + 1)
            self._renew_views()
        return row

    def set_node(self, node: Node) -> cluster_events.ClusterEvents:
        """Add or update a node; returns what is different from before."""
        name = node.metadata.name
        slot = self.index.get(name)
        old = self.node_objects.get(name)
        self._share_parts(node, old)
        self.node_objects[name] = node
        if slot is None or old is None:
            self._set_columns(self._new_slot(name), node)
            self.node_version += 1
            self._bump_images_version()
            return frozenset((cluster_events.NODE_ADDED,))
        found = _differences(old, node)
        if cluster_events.NODE_IMAGES in found:
            self._bump_images_version()
        if found:
            self._set_columns(slot, node)
        if cluster_events.NODE_IMAGES in found:
            self._bump_images_version()
        if found - {cluster_events.NODE_IMAGES, cluster_events.NODE_ALLOCATABLE}:
            self.node_version += 1
        return found

    def _share_parts(self, node: Node, old: Node | None) -> None:
        """Let a node refer to equal parts that are known already, and free its own: it stays equal to what it was."""
        before = old.status.images if old is not None else None
        images = node.status.images
        if images and images == before:
            force_setattr(node.status, "images", before)
        else:
            if images:
                force_setattr(node.status, "images", self._known_images.add(images))
            if before:
                self._known_images.remove(before)
        if old is not None and old.metadata.labels and old.metadata.labels == node.metadata.labels:
            force_setattr(node.metadata, "labels", old.metadata.labels)

    def remove_node(self, name: str) -> int:
        """Remove a node; its slot may be reused. Returns the slot, or -1 if the node is unknown."""
        slot = self.index.pop(name, None)
        if slot is None:
            return -1
        self._known_images.remove(self.node_objects.pop(name).status.images or ())
        self._name_of_rank.pop(int(self._all_rank[slot]), None)
        self.names[slot] = ""
        self.count -= 1
        self._bump_images_version()
        self._clear(slot)
        self._free_slots.append(slot)
        self.node_version += 1
        return slot

    def _bump_images_version(self) -> None:
        # While no node has an image that a plugin has read, the number of nodes changes no score.
        if self._images_on_nodes:
            self.images_version += 1

    def _clear(self, slot: int) -> None:
        self._all_alive[slot] = False
        self._all_alloc[:, slot] = 0
        self._all_unschedulable[slot] = False
        self._all_taint_set[slot] = 0
        for column in self._labels.values():
            column.set(slot, None)
        for sizes in self._images.values():
            self._images_on_nodes -= bool(sizes[slot])
            sizes[slot] = 0

    def _new_slot(self, name: str) -> int:
        if self._free_slots:
            slot = self._free_slots.pop()
            self.names[slot] = name
        else:
            slot = self.size
            if slot == self._capacity:
                self._grow()
            self.size += 1
            self.names.append(name)
            self._renew_views()
        self.index[name] = slot
        self.count += 1
        self._all_alive[slot] = True
        self._assign_rank(name)
        return slot

    def _assign_rank(self, name: str) -> None:
        """Assign each name its first free rank, smaller names first, so that the order of arrival does not matter."""
        salt = 0
        while True:
            text = f"{self.seed}/{salt}/{name}".encode()
            rank = int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> (64 - RANK_BITS)
            owner = self._name_of_rank.get(rank)
            if owner is None or owner > name:
                self._name_of_rank[rank] = name
                self._all_rank[self.index[name]] = rank
                if owner is None:
                    return
                name, salt = owner, 0
            else:
                salt += 1

    def _set_columns(self, slot: int, node: Node) -> None:
        for resource in node.status.allocatable or {}:
            if is_counted(resource):
                self.resource_row(resource)
        self._all_alloc[:, slot] = 0
        for resource, size in _amounts(node.status.allocatable).items():
            self._all_alloc[self.row[resource], slot] = size
        self._all_unschedulable[slot] = node.spec.unschedulable
        self._all_taint_set[slot] = self._taint_id(node.spec.taints or ())
        labels = node.metadata.labels or {}
        for key, column in self._labels.items():
            column.set(slot, labels.get(key))
        for image, sizes in self._images.items():
            size = _image_size(node, image)
            self._images_on_nodes += bool(size) - bool(sizes[slot])
            sizes[slot] = size

    def _taint_id(self, taints: tuple[Taint, ...]) -> int:
        number = self._taint_ids.get(taints)
        if number is None:
            number = self._taint_ids[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        return number

    def _grow(self) -> None:
        capacity = self._capacity = self._capacity * 2
        self._all_alive = grown(self._all_alive, capacity)
        self._all_rank = grown(self._all_rank, capacity)
        self._all_alloc = grown(self._all_alloc, capacity)
        self._all_used = grown(self._all_used, capacity)
        self._all_nonzero = grown(self._all_nonzero, capacity)
        self._all_unschedulable = grown(self._all_unschedulable, capacity)
        self._all_taint_set = grown(self._all_taint_set, capacity)
        for column in self._labels.values():
            column.ids = grown(column.ids, capacity)
        for image, sizes in self._images.items():
            self._images[image] = grown(sizes, capacity)

    def _renew_views(self) -> None:
        """Replace the public views after a change of size, capacity or rows."""
        self.alive = self._all_alive[: self.size]
        self.rank = self._all_rank[: self.size]
        self.alloc = self._all_alloc[:, : self.size]
        self.used = self._all_used[:, : self.size]
        self.nonzero = self._all_nonzero[:, : self.size]
        self.unschedulable = self._all_unschedulable[: self.size]
        self.taint_set = self._all_taint_set[: self.size]


def _amounts(quantities: Quantities | None) -> dict[str, int]:
    return {name: amount(name, text) for name, text in (quantities or {}).items() if is_counted(name)}


def _image_size(node: Node, image: str) -> int:
    for present in node.status.images or ():
        if any(image_name(name) == image for name in present.names or ()):
            return present.size_bytes
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
