"""A read-only view of the scheduler: what commands, metrics and pages may read of its state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from muster.api.devices import DeviceClaim, DeviceRequest, ExactDeviceRequest
from muster.api.types import Pod
from muster.scheduler.cache.arrays import Bools, Ids, Ints
from muster.scheduler.cache.device_claims import Needs
from muster.scheduler.cycle import reserve
from muster.scheduler.devices.claim_request import ClaimRequest, claim_request
from muster.scheduler.devices.device import DeviceId
from muster.scheduler.groups.group import Group, Member
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import EntityState, QueuedEntity
from muster.scheduler.state.nominations import Nomination
from muster.scheduler.state.reservations import Reservation
from muster.scheduler.state.scheduler_state import SchedulerState

MOST_CONSUMERS = 256
"""As many pods as a node could ever serve with one claim each."""


class QueueEntry(NamedTuple):
    """A pod or a tree of groups in the scheduling queue."""

    state: EntityState
    type: str  # pod or podgroup
    pods: int  # pending pods
    gated: bool
    rejected_by: tuple[str, ...]  # the plugins that rejected an unschedulable entry


class CacheSizes(NamedTuple):
    """How many objects the scheduler's cache holds."""

    nodes: int
    pods: int
    assumed_pods: int


class SchedulerView:
    """Always shows the state of now; nothing is changed through it."""

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self._forest = state.forest
        self._cluster = state.cluster

    # --- groups and pods ---------------------------------------------------------------------------

    @property
    def groups(self) -> Mapping[EntityKey, Group]:
        """Every group that exists or that a pod or a child names."""
        return self._forest.groups

    @property
    def members(self) -> Mapping[str, Member]:
        """Every pod, by uid."""
        return self._forest.members

    # --- the queue ---------------------------------------------------------------------------------

    def queue(self) -> Iterable[QueuedEntity]:
        """The pending pods and trees of groups, in the order in which they are tried."""
        return self._state.queue.in_order()

    def queue_entries(self) -> Iterator[QueueEntry]:
        """The same in no order, in the terms of metrics."""
        for entity in self._state.queue.entities.values():
            rejected_by = tuple(entity.hints.rejected_by) if entity.state is EntityState.UNSCHEDULABLE else ()
            if entity.group is not None:
                gated = bool(entity.group.gated)
                yield QueueEntry(entity.state, "podgroup", entity.group.pending_below, gated, rejected_by)
            else:
                gated = entity.member is not None and entity.member.gated
                yield QueueEntry(entity.state, "pod", 1, gated, rejected_by)

    # --- reservations ------------------------------------------------------------------------------

    def reservations(self) -> list[Reservation]:
        """The room that is kept for groups, those of groups that come first first."""
        return list(self._state.reservations)

    def held_seats(self) -> list[Nomination]:
        """The seats that are held for members of groups that do not exist yet, tree by tree."""
        nominations = self._state.nominations
        return [seat for key in nominations.holding() for seat in nominations.held(key)]

    def expected_start(self, entity: QueuedEntity) -> float | None:
        """When an entity will fit, as far as it is known when the pods in its way end."""
        return reserve.expected_start(self._state, entity)

    # --- nodes -------------------------------------------------------------------------------------

    def cache_sizes(self) -> CacheSizes:
        return CacheSizes(len(self._cluster.index), len(self._cluster.pods), self._state.assumed.in_flight())

    @property
    def has_nodes(self) -> bool:
        return bool(self._cluster.index)

    @property
    def nodes(self) -> Bools:
        """Which slots of the arrays below are nodes; slots of removed nodes stay free for a while."""
        return self._cluster.alive[: self._cluster.size]

    @property
    def node_names(self) -> Sequence[str]:
        """The name of the node in each slot; empty where there is none."""
        return self._cluster.names

    def slot_of(self, node: str) -> int | None:
        """The slot of a node."""
        return self._cluster.index.get(node)

    def pods_on(self, node: str) -> Iterator[tuple[str, Mapping[str, int]]]:
        """The pods that count on a node: the uid of each, and what it requests (cpu in milli-units)."""
        slot = self._cluster.index.get(node)
        if slot is not None:
            for placed in self._cluster.pods_on(slot):
                yield placed.pod.metadata.uid, placed.footprint.requirements.amounts

    def labels(self, key: str) -> Ids:
        """The number of each node's label value; 0 for nodes without the label."""
        return self._cluster.labels(key)

    def label_value(self, key: str, number: int) -> str:
        """The label value that has this number."""
        return self._cluster.label_value(key, number)

    def domain_of(self, node: str, key: str) -> str:
        """The value of one node's label; empty without it."""
        return self._state.domain_of(node, key)

    def allocatable(self, resource: str) -> Ints | None:
        """Of one resource, how much each node has (cpu in milli-units); None for a resource that no node has."""
        row = self._cluster.row.get(resource)
        return self._cluster.alloc[row] if row is not None else None

    def requested(self, resource: str) -> Ints | None:
        """Of one resource, how much the pods on each node request."""
        row = self._cluster.row.get(resource)
        return self._cluster.used[row] if row is not None else None

    def device_classes(self) -> list[str]:
        """The names of the device classes."""
        return sorted(self._cluster.devices.claims.classes)

    def devices(self, device_class: str) -> tuple[Ints, Ints]:
        """Per node, how many devices of a class it has, and how many of them are in use.

        One that several nodes can use counts for the first of them.
        """
        devices, seen = self._cluster.devices, set[DeviceId]()
        (way,) = self._one_device(device_class).requests[0]
        kinds = devices.kinds.of(way) or frozenset[int]()
        there, used = np.zeros((2, self._cluster.size), dtype=np.int64)
        for slot in np.flatnonzero(self.nodes).tolist():
            for pool in devices.nodes.pools(slot):
                found = {device.id for device in pool.devices if device.twin in kinds} - seen
                seen |= found
                there[slot] += len(found)
                used[slot] += sum(devices.usage.taken(device) for device in found)
        return there, used

    def device_seats(self, device_class: str) -> Ints:
        """Per node, how many pods find one device of a class each."""
        there, used = self.devices(device_class)
        slots: list[int] = np.flatnonzero(self.nodes).tolist()
        needs = Needs((self._one_device(device_class),))
        seats = np.zeros(self._cluster.size, dtype=np.int64)
        seats[slots] = self._cluster.device_room.most_each(needs, slots, MOST_CONSUMERS)
        return np.where(there > 0, np.minimum(seats, np.maximum(there - used, 0)), 0)

    def _one_device(self, device_class: str) -> ClaimRequest:
        exactly = ExactDeviceRequest(device_class)
        asked = DeviceClaim((DeviceRequest("asked", exactly),))
        return claim_request(asked, self._cluster.devices.claims.classes)

    def seats(self, requests: Mapping[str, str]) -> Ints:
        """On each node, how many more pods with these requests would fit, by every plugin of the first profile."""
        body = {
            "metadata": {"name": "asked", "namespace": "default", "uid": "asked"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": dict(requests)}}]},
        }
        profile = next(iter(self._state.config.profiles.values()))
        shape = self._state.evaluator.shape(msgspec.convert(body, Pod), profile)
        with self._state.evaluator.trial() as trial:
            return trial.seats(shape)
