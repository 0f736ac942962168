"""Footprints: what a pod adds to its node (requests, label class, affinity terms, host ports, disks, claims).

Footprints are interned: pods with equal requirements and equal labels share one object. Labels whose key occurs in no
selector are left out, so all pods of an indexed Job have the same footprint.

Requests are computed as Kubernetes does: containers and sidecars run together, an init container runs together with
the sidecars started before it. The request is the larger of the two peaks, plus overhead. Pod-level resources replace
the sum of the containers where they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from muster.api.types import Affinity, Container, Pod, PodAffinityTerm, PodSpec, Quantities, Volume
from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.device_claims import Needs
from muster.scheduler.cache.node_columns import PODS, NodeColumns, amount, is_counted
from muster.scheduler.cache.pod_counts import LabelClass, PodCount, PodCounts
from muster.scheduler.cache.pod_terms import PodTerm, affinity_term, requirements_of

Amounts = dict[str, int]

# Used in scores for a container without a request: kube-scheduler's DefaultMilliCPURequest and DefaultMemoryRequest.
DEFAULT_REQUESTS: Amounts = {"cpu": 100, "memory": 200 * 1024 * 1024}

_SPREADING_OWNERS = ("ReplicationController", "ReplicaSet", "StatefulSet")

# Parts of a spec that are equal if the keys are (`_requirements_key`).
_SHARED_PARTS = (
    "containers",
    "init_containers",
    "node_selector",
    "affinity",
    "tolerations",
    "topology_spread_constraints",
)

_ENCODE = msgspec.msgpack.Encoder(order="deterministic").encode


class HostPort(NamedTuple):
    """A port of the node that a container takes; the address 0.0.0.0 conflicts with every address."""

    ip: str
    protocol: str
    number: int

    def conflicts(self, other: HostPort) -> bool:
        everywhere = "0.0.0.0" in (self.ip, other.ip)
        return self[1:] == other[1:] and (everywhere or self.ip == other.ip)


class InlineDisk(NamedTuple):
    """A disk in the pod spec itself. With `read_only_shareable` two pods may both mount it read-only."""

    kind: str
    name: str
    read_only: bool
    read_only_shareable: bool = True

    def conflicts(self, other: InlineDisk) -> bool:
        shared = self.read_only_shareable and self.read_only and other.read_only
        return self[:2] == other[:2] and not shared


class CarriedTerm(NamedTuple):
    """A pod affinity term of a pod on a node, which applies to pods that come later.

    `kind` is `anti` or `hard` (required) or `preferred`; the weight of preferred anti-affinity is below 0.
    """

    kind: str
    topology: str
    term: PodTerm
    weight: int = 0


class PodRequirements:
    """What a pod spec requires, computed once for all pods with an equal spec."""

    __slots__ = ("__weakref__", "_parts", "amounts", "disks", "key", "label_keys", "nonzero", "ports")

    def __init__(self, key: bytes, spec: PodSpec) -> None:
        self.key = key
        self._parts = [(name, part) for name in _SHARED_PARTS if (part := getattr(spec, name)) is not None]
        self.amounts: Amounts = requested(spec)
        self.nonzero = nonzero_requested(spec)
        self.ports = host_ports(spec)
        self.disks = tuple(sorted(set(_disks(spec))))
        self.label_keys = frozenset(label_keys(spec))

    def share_parts(self, spec: PodSpec) -> None:
        """Let a spec of this key refer to the parts of the first one, and free its own: it stays equal to itself."""
        for name, part in self._parts:
            force_setattr(spec, name, part)


class Footprint:
    """What one pod adds to its node. `vector` holds its request for each resource row, and 1 in the row of pods."""

    __slots__ = ("__weakref__", "carried", "claims", "label_class", "needs", "nonzero", "pod", "requirements", "vector")

    def __init__(
        self,
        requirements: PodRequirements,
        label_class: LabelClass,
        pod: Pod,
        columns: NodeColumns,
        counts: PodCounts,
        needs: Needs | None,
    ) -> None:
        self.requirements = requirements
        self.label_class = label_class
        self.pod = pod
        self.carried: tuple[PodCount, ...] = tuple(
            counts.carrying(what) for what in (*carried_terms(pod), *requirements.ports, *requirements.disks)
        )
        self.claims = claim_names(pod)
        self.needs = needs  # of devices
        rows = {columns.resource_row(name): size for name, size in requirements.amounts.items()}
        self.vector: Ints = np.zeros(max(PODS, *rows, PODS) + 1, dtype=np.int64)
        for row, size in rows.items():
            self.vector[row] = size
        self.vector[PODS] = 1
        self.nonzero: Ints = np.array(requirements.nonzero, dtype=np.int64)


class FootprintIndex:
    """Interns requirements and footprints for as long as they are in use.

    `add_label_keys` makes the pod counts distinguish pods by further label keys.
    """

    def __init__(
        self,
        columns: NodeColumns,
        counts: PodCounts,
        add_label_keys: Callable[[Iterable[str]], None],
        needs_of: Callable[[Pod], Needs | None],
    ) -> None:
        self._columns = columns
        self._counts = counts
        self._add_label_keys = add_label_keys
        self._needs_of = needs_of
        self._requirements: WeakValueDictionary[bytes, PodRequirements] = WeakValueDictionary()
        self._footprints: WeakValueDictionary[tuple[bytes, int, Needs | None], Footprint] = WeakValueDictionary()

    def requirements(self, pod: Pod) -> PodRequirements:
        key = _requirements_key(pod)
        found = self._requirements.get(key)
        if found is None:
            found = self._requirements[key] = PodRequirements(key, pod.spec)
        else:
            found.share_parts(pod.spec)
        return found

    def footprint(self, pod: Pod) -> Footprint:
        requirements = self.requirements(pod)
        if not requirements.label_keys <= self._counts.keys:
            self._add_label_keys(requirements.label_keys)
        return self._of(requirements, pod)

    def relabelled(self, footprint: Footprint, pod: Pod) -> Footprint:
        """The footprint of a pod that had this one before pods were told apart by more label keys."""
        return self._of(footprint.requirements, pod)

    def _of(self, requirements: PodRequirements, pod: Pod) -> Footprint:
        label_class = self._counts.class_of(pod.metadata.namespace, pod.metadata.labels)
        needs = self._needs_of(pod) if pod.spec.resource_claims else None
        key = (requirements.key, id(label_class), needs)
        found = self._footprints.get(key)
        if found is None:
            found = Footprint(requirements, label_class, pod, self._columns, self._counts, needs)
            self._footprints[key] = found
        return found


# --- requests -------------------------------------------------------------------------------------


def requested(spec: PodSpec) -> Amounts:
    """The requests of a pod, by resource."""
    return _requested(spec, {})


def nonzero_requested(spec: PodSpec) -> tuple[int, int]:
    """The cpu and memory requests with `DEFAULT_REQUESTS` for containers without any; used in scores only."""
    found = _requested(spec, DEFAULT_REQUESTS)
    return found.get("cpu", 0), found.get("memory", 0)


def _requested(spec: PodSpec, defaults: Amounts) -> Amounts:
    running: Amounts = {}
    for container in spec.containers or ():
        _add(running, _container_requests(container, defaults))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers or ():
        requests = _container_requests(container, defaults)
        if container.restart_policy == "Always":
            _add(sidecars, requests)
            _raise_to(peak, sidecars)
        else:
            _add(requests, sidecars)
            _raise_to(peak, requests)
    _add(running, sidecars)
    _raise_to(running, peak)
    for resource, size in _numbers(spec.resources.requests if spec.resources else None).items():
        if resource in ("cpu", "memory") or resource.startswith("hugepages-"):
            running[resource] = size
    _add(running, _numbers(spec.overhead))
    return {resource: size for resource, size in running.items() if is_counted(resource) and resource != "pods"}


def _container_requests(container: Container, defaults: Amounts) -> Amounts:
    requests = _numbers(container.resources.requests if container.resources else None)
    for resource, size in defaults.items():
        requests.setdefault(resource, size)
    return requests


def _numbers(quantities: Quantities | None) -> Amounts:
    return {resource: amount(resource, text) for resource, text in (quantities or {}).items()}


def _add(total: Amounts, more: Amounts) -> None:
    for resource, size in more.items():
        total[resource] = total.get(resource, 0) + size


def _raise_to(total: Amounts, other: Amounts) -> None:
    for resource, size in other.items():
        total[resource] = max(total.get(resource, 0), size)


# --- terms, ports, disks and claims ---------------------------------------------------------------


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The distinct host ports of the pod's containers and sidecars."""
    sidecars = [container for container in spec.init_containers or () if container.restart_policy == "Always"]
    found: set[HostPort] = set()
    for container in (*(spec.containers or ()), *sidecars):
        for port in container.ports or ():
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                found.add(HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", number))
    return tuple(sorted(found))


def carried_terms(pod: Pod) -> Iterable[CarriedTerm]:
    """The pod affinity terms of a pod that apply to pods scheduled after it."""
    affinity = pod.spec.affinity or Affinity()
    near, anti = affinity.pod_affinity, affinity.pod_anti_affinity
    if anti is not None:
        for term in anti.required_during_scheduling_ignored_during_execution or ():
            yield CarriedTerm("anti", term.topology_key, affinity_term(term, pod))
        for weighted in anti.preferred_during_scheduling_ignored_during_execution or ():
            term = weighted.pod_affinity_term
            yield CarriedTerm("preferred", term.topology_key, affinity_term(term, pod), -weighted.weight)
    if near is not None:
        for term in near.required_during_scheduling_ignored_during_execution or ():
            yield CarriedTerm("hard", term.topology_key, affinity_term(term, pod))
        for weighted in near.preferred_during_scheduling_ignored_during_execution or ():
            term = weighted.pod_affinity_term
            yield CarriedTerm("preferred", term.topology_key, affinity_term(term, pod), weighted.weight)


def _disks(spec: PodSpec) -> Iterable[InlineDisk]:
    for volume in spec.volumes or ():
        if (gce := volume.gce_persistent_disk) is not None:
            yield InlineDisk("GCEPersistentDisk", gce.pd_name, gce.read_only)
        if (aws := volume.aws_elastic_block_store) is not None:
            yield InlineDisk("AWSElasticBlockStore", aws.volume_id, aws.read_only, read_only_shareable=False)
        if (iscsi := volume.iscsi) is not None:
            yield InlineDisk("ISCSI", iscsi.iqn, iscsi.read_only)
        if (rbd := volume.rbd) is not None:
            for monitor in rbd.monitors or ():
                yield InlineDisk("RBD", f"{monitor}/{rbd.pool or 'rbd'}/{rbd.image}", rbd.read_only)


def claim_names(pod: Pod) -> tuple[str, ...]:
    """The names of the PersistentVolumeClaims of the pod, ephemeral ones included."""
    found: list[str] = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            found.append(f"{pod.metadata.name}-{volume.name}")
    return tuple(dict.fromkeys(found))


def spreading_owner(pod: Pod) -> tuple[str, str] | None:
    """The controller of the pod (kind and name) whose selector default topology spreading uses."""
    for owner in pod.metadata.owner_references or ():
        if owner.controller and owner.kind in _SPREADING_OWNERS:
            return owner.kind, owner.name
    return None


def label_keys(spec: PodSpec) -> Iterable[str]:
    """The keys of pod labels in the selectors of the pod's own affinity terms and spread constraints."""
    for constraint in spec.topology_spread_constraints or ():
        yield from constraint.match_label_keys or ()
        yield from (required.key for required in requirements_of(constraint.label_selector) or ())
    affinity = spec.affinity or Affinity()
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if side is not None:
            for term in side.required_during_scheduling_ignored_during_execution or ():
                yield from _term_keys(term)
            for weighted in side.preferred_during_scheduling_ignored_during_execution or ():
                yield from _term_keys(weighted.pod_affinity_term)


def topology_keys(spec: PodSpec) -> Iterable[str]:
    """The keys of node labels in the pod's own spread constraints and required affinity terms."""
    yield from (constraint.topology_key for constraint in spec.topology_spread_constraints or ())
    affinity = spec.affinity or Affinity()
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if side is not None:
            yield from (term.topology_key for term in side.required_during_scheduling_ignored_during_execution or ())


def _term_keys(term: PodAffinityTerm) -> Iterable[str]:
    yield from term.match_label_keys or ()
    yield from term.mismatch_label_keys or ()
    yield from (required.key for required in requirements_of(term.label_selector) or ())


# --- keys -----------------------------------------------------------------------------------------


def _requirements_key(pod: Pod) -> bytes:
    spec = pod.spec
    return _ENCODE(
        (
            spec.containers,
            spec.init_containers,
            spec.overhead,
            spec.resources,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            _volumes_key(pod) if spec.volumes else None,
            spec.host_network,
            spec.resource_claims,
        )
    )


def _volumes_key(pod: Pod) -> tuple[Any, ...]:
    # Most volumes (tokens, ConfigMaps, emptyDir) do not affect scheduling, and some have random names.
    return (claim_names(pod), *filter(None, (_disk_key(volume) for volume in pod.spec.volumes or ())))


def _disk_key(volume: Volume) -> tuple[Any, ...] | None:
    parts = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd, volume.image)
    return parts if any(part is not None for part in parts) else None
