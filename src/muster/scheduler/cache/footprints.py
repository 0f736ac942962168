"""What a pod adds to its node: resource amounts, label class, affinity terms, host ports, disks and claims.

A `Footprint` is interned: pods with equal requirements and equal labels share one object. Labels that no
selector mentions are no part of it, so the pods of an indexed Job have one footprint.

Requests follow Kubernetes: app containers and sidecars run together; an init container runs beside the
sidecars started before it. The request is the larger of the two peaks, plus overhead. Pod-level resources
replace the sum of the containers where they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from muster.api.types import Affinity, Container, Pod, PodAffinityTerm, PodSpec, Quantities, Volume
from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.node_columns import PODS, NodeColumns, amount, counted
from muster.scheduler.cache.pod_counts import LabelClass, PodCount, PodCounts
from muster.scheduler.cache.pod_terms import PodTerm, affinity_term, conditions_of

Amounts = dict[str, int]


# What a container without a request is taken to use when nodes are compared.
FILLER: Amounts = {"cpu": 100, "memory": 200 * 1024 * 1024}


def requested(spec: PodSpec) -> Amounts:
    """What the pod requests, by resource."""
    return _requested(spec, {})


def assumed(spec: PodSpec) -> tuple[int, int]:
    """cpu and memory with the filler for containers that name none; used in scores only."""
    found = _requested(spec, FILLER)
    return found.get("cpu", 0), found.get("memory", 0)


def _requested(spec: PodSpec, filler: Amounts) -> Amounts:
    running: Amounts = {}
    for container in spec.containers or ():
        _add(running, _of(container, filler))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers or ():
        wanted = _of(container, filler)
        if container.restart_policy == "Always":
            _add(sidecars, wanted)
            _raise(peak, sidecars)
        else:
            _add(wanted, sidecars)
            _raise(peak, wanted)
    _add(running, sidecars)
    _raise(running, peak)
    for resource, size in _numbers(spec.resources.requests if spec.resources else None).items():
        if resource in ("cpu", "memory") or resource.startswith("hugepages-"):
            running[resource] = size
    _add(running, _numbers(spec.overhead))
    return {resource: size for resource, size in running.items() if counted(resource) and resource != "pods"}


def _of(container: Container, filler: Amounts) -> Amounts:
    wanted = _numbers(container.resources.requests if container.resources else None)
    for resource, size in filler.items():
        wanted.setdefault(resource, size)
    return wanted


def _numbers(quantities: Quantities | None) -> Amounts:
    return {resource: amount(resource, text) for resource, text in (quantities or {}).items()}


def _add(total: Amounts, more: Amounts) -> None:
    for resource, size in more.items():
        total[resource] = total.get(resource, 0) + size


def _raise(total: Amounts, other: Amounts) -> None:
    for resource, size in other.items():
        total[resource] = max(total.get(resource, 0), size)


_ENCODE = msgspec.msgpack.Encoder(order="deterministic").encode


_SPREADING_OWNERS = ("ReplicationController", "ReplicaSet", "StatefulSet")


class HostPort(NamedTuple):
    ip: str
    protocol: str
    number: int

    def clashes(self, other: HostPort) -> bool:
        everywhere = "0.0.0.0" in (self.ip, other.ip)
        return self[1:] == other[1:] and (everywhere or self.ip == other.ip)


class InlineDisk(NamedTuple):
    """A disk named in the pod itself. `shared` says that readers get along with each other."""

    kind: str
    name: str
    read_only: bool
    shared: bool = True

    def clashes(self, other: InlineDisk) -> bool:
        readers = self.shared and self.read_only and other.read_only
        return self[:2] == other[:2] and not readers


class CarriedTerm(NamedTuple):
    """An affinity term that pods carry with them. `kind` is anti, hard or preferred; weight is below 0 for anti."""

    kind: str
    topology: str
    term: PodTerm
    weight: int = 0


class PodRequirements:
    """What the spec alone says, worked out once for all pods with the same spec."""

    __slots__ = ("__weakref__", "amounts", "assumed", "disks", "key", "label_keys", "ports")

    def __init__(self, key: bytes, spec: PodSpec) -> None:
        self.key = key
        self.amounts: Amounts = requested(spec)
        self.assumed = assumed(spec)
        self.ports = host_ports(spec)
        self.disks = tuple(sorted(set(_disks(spec))))
        self.label_keys = frozenset(label_keys(spec))


class Footprint:
    """What one pod adds to the node it runs on."""

    __slots__ = ("__weakref__", "carried", "claims", "label_class", "nonzero", "pod", "requirements", "vector")

    def __init__(
        self, needs: PodRequirements, label_class: LabelClass, pod: Pod, columns: NodeColumns, counts: PodCounts
    ) -> None:
        self.requirements = needs
        self.label_class = label_class
        self.pod = pod
        self.carried: tuple[PodCount, ...] = tuple(
            counts.carrying(what) for what in (*carried_terms(pod), *needs.ports, *needs.disks)
        )
        self.claims = claim_names(pod)
        rows = {columns.resource_row(name): size for name, size in needs.amounts.items()}
        self.vector: Ints = np.zeros(max(PODS, *rows, PODS) + 1, dtype=np.int64)
        for row, size in rows.items():
            self.vector[row] = size
        self.vector[PODS] = 1
        self.nonzero: Ints = np.array(needs.assumed, dtype=np.int64)


class FootprintIndex:
    """Interns requirements and footprints; nothing stays that no pod, queue or cache uses.

    `mention` makes the pod counts tell pods apart by further label keys.
    """

    def __init__(self, columns: NodeColumns, counts: PodCounts, mention: Callable[[Iterable[str]], None]) -> None:
        self._columns = columns
        self._counts = counts
        self._mention = mention
        self._requirements: WeakValueDictionary[bytes, PodRequirements] = WeakValueDictionary()
        self._footprints: WeakValueDictionary[tuple[bytes, int], Footprint] = WeakValueDictionary()

    def requirements(self, pod: Pod) -> PodRequirements:
        key = _needs_key(pod)
        found = self._requirements.get(key)
        if found is None:
            found = self._requirements[key] = PodRequirements(key, pod.spec)
        return found

    def footprint(self, pod: Pod) -> Footprint:
        needs = self.requirements(pod)
        if not needs.label_keys <= self._counts.keys:
            self._mention(needs.label_keys)
        label_class = self._counts.class_of(pod.metadata.namespace, pod.metadata.labels)
        key = (needs.key, id(label_class))
        found = self._footprints.get(key)
        if found is None:
            found = self._footprints[key] = Footprint(needs, label_class, pod, self._columns, self._counts)
        return found


def spreading_owner(pod: Pod) -> tuple[str, str] | None:
    """The controller whose selector takes part in default spreading."""
    for owner in pod.metadata.owner_references or ():
        if owner.controller and owner.kind in _SPREADING_OWNERS:
            return owner.kind, owner.name
    return None


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The distinct ports of the node that the pod's containers and sidecars take."""
    sidecars = [container for container in spec.init_containers or () if container.restart_policy == "Always"]
    found: set[HostPort] = set()
    for container in (*(spec.containers or ()), *sidecars):
        for port in container.ports or ():
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                found.add(HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", number))
    return tuple(sorted(found))


def carried_terms(pod: Pod) -> Iterable[CarriedTerm]:
    """The affinity terms that a running pod brings into play for others."""
    affinity = pod.spec.affinity or Affinity()
    together, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    if apart is not None:
        for term in apart.required_during_scheduling_ignored_during_execution or ():
            yield CarriedTerm("anti", term.topology_key, affinity_term(term, pod))
        for weighted in apart.preferred_during_scheduling_ignored_during_execution or ():
            term = weighted.pod_affinity_term
            yield CarriedTerm("preferred", term.topology_key, affinity_term(term, pod), -weighted.weight)
    if together is not None:
        for term in together.required_during_scheduling_ignored_during_execution or ():
            yield CarriedTerm("hard", term.topology_key, affinity_term(term, pod))
        for weighted in together.preferred_during_scheduling_ignored_during_execution or ():
            term = weighted.pod_affinity_term
            yield CarriedTerm("preferred", term.topology_key, affinity_term(term, pod), weighted.weight)


def _disks(spec: PodSpec) -> Iterable[InlineDisk]:
    for volume in spec.volumes or ():
        if (gce := volume.gce_persistent_disk) is not None:
            yield InlineDisk("GCEPersistentDisk", gce.pd_name, gce.read_only)
        if (aws := volume.aws_elastic_block_store) is not None:
            yield InlineDisk("AWSElasticBlockStore", aws.volume_id, aws.read_only, shared=False)
        if (iscsi := volume.iscsi) is not None:
            yield InlineDisk("ISCSI", iscsi.iqn, iscsi.read_only)
        if (rbd := volume.rbd) is not None:
            for monitor in rbd.monitors or ():
                yield InlineDisk("RBD", f"{monitor}/{rbd.pool or 'rbd'}/{rbd.image}", rbd.read_only)


def claim_names(pod: Pod) -> tuple[str, ...]:
    """The names of the claims the pod uses, its own ephemeral ones included."""
    found: list[str] = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            found.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            found.append(f"{pod.metadata.name}-{volume.name}")
    return tuple(dict.fromkeys(found))


def _needs_key(pod: Pod) -> bytes:
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
    # Most volumes (tokens, config, scratch) mean nothing to scheduling, and some have random names.
    return (claim_names(pod), *filter(None, (_disk_key(volume) for volume in pod.spec.volumes or ())))


def _disk_key(volume: Volume) -> tuple[Any, ...] | None:
    parts = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd, volume.image)
    return parts if any(part is not None for part in parts) else None


def label_keys(spec: PodSpec) -> Iterable[str]:
    """The label keys of pods that the pod's own rules look at."""
    for constraint in spec.topology_spread_constraints or ():
        yield from constraint.match_label_keys or ()
        yield from (condition.key for condition in conditions_of(constraint.label_selector) or ())
    affinity = spec.affinity or Affinity()
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if side is not None:
            for term in side.required_during_scheduling_ignored_during_execution or ():
                yield from _term_keys(term)
            for weighted in side.preferred_during_scheduling_ignored_during_execution or ():
                yield from _term_keys(weighted.pod_affinity_term)


def _term_keys(term: PodAffinityTerm) -> Iterable[str]:
    yield from term.match_label_keys or ()
    yield from term.mismatch_label_keys or ()
    yield from (condition.key for condition in conditions_of(term.label_selector) or ())
