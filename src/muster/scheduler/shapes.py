"""Equivalence classes of pods: what they take up where they run, and what they need to go somewhere.

A `Footprint` is what a pod adds to its node: amounts, its label class, the terms and ports it
carries. A `Shape` is a footprint plus everything that decides where the next such pod may go under
one profile. Both are interned: equal needs share one object, however many pods have them. Labels
that no selector mentions are no part of it, so the pods of an indexed Job have one shape.

When a selector mentions a label key for the first time, shapes have to be told apart anew: a shape
that was asked for while `len(tallies.keys)` was another must be asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from muster.api.types import Affinity, Pod, PodAffinityTerm, PodSpec, Volume
from muster.scheduler.amounts import Amounts, assumed, requested
from muster.scheduler.arrays import Ints
from muster.scheduler.columns import PODS
from muster.scheduler.tallies import LabelClass, Tally
from muster.scheduler.terms import Term, affinity_term, conditions_of

if TYPE_CHECKING:
    from muster.scheduler.cluster import Cluster
    from muster.scheduler.profile import Profile

T = TypeVar("T")
_ENCODE = msgspec.msgpack.Encoder(order="deterministic").encode
_SPREADING_OWNERS = ("ReplicationController", "ReplicaSet", "StatefulSet")


class Port(NamedTuple):
    ip: str
    protocol: str
    number: int

    def clashes(self, other: Port) -> bool:
        everywhere = "0.0.0.0" in (self.ip, other.ip)
        return self[1:] == other[1:] and (everywhere or self.ip == other.ip)


class Disk(NamedTuple):
    """A disk named in the pod itself. `shared` says that readers get along with each other."""

    kind: str
    name: str
    read_only: bool
    shared: bool = True

    def clashes(self, other: Disk) -> bool:
        readers = self.shared and self.read_only and other.read_only
        return self[:2] == other[:2] and not readers


class Carried(NamedTuple):
    """An affinity term that pods carry with them. `kind` is anti, hard or preferred; weight is below 0 for anti."""

    kind: str
    topology: str
    term: Term
    weight: int = 0


class Needs:
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

    __slots__ = ("__weakref__", "carried", "claims", "label_class", "needs", "nonzero", "pod", "vector")

    def __init__(self, needs: Needs, label_class: LabelClass, pod: Pod, cluster: Cluster) -> None:
        self.needs = needs
        self.label_class = label_class
        self.pod = pod
        self.carried: tuple[Tally, ...] = tuple(
            cluster.tallies.carrying(what) for what in (*carried_terms(pod), *needs.ports, *needs.disks)
        )
        self.claims = claim_names(pod)
        rows = {cluster.resource_row(name): size for name, size in needs.amounts.items()}
        self.vector: Ints = np.zeros(max(PODS, *rows, PODS) + 1, dtype=np.int64)
        for row, size in rows.items():
            self.vector[row] = size
        self.vector[PODS] = 1
        self.nonzero: Ints = np.array(needs.assumed, dtype=np.int64)


class Shape:
    """Pods that are alike to the scheduler under one profile. `pod` is one of them."""

    __slots__ = ("__weakref__", "_memo", "cluster", "footprint", "id", "pod", "profile", "wants")

    def __init__(self, number: int, pod: Pod, profile: Profile, footprint: Footprint, cluster: Cluster) -> None:
        self.id = number
        self.pod = pod
        self.profile = profile
        self.footprint = footprint
        self.cluster = cluster
        self._memo: dict[Hashable, Any] = {}
        # The rows it asks something of, as plain numbers for the one-node path.
        self.wants: tuple[tuple[int, int], ...] = tuple(
            (row, int(size)) for row, size in enumerate(footprint.vector) if size and row != PODS
        )

    @property
    def requests(self) -> Ints:
        return self.request_vector(self.cluster)

    def request_vector(self, cluster: Cluster) -> Ints:
        """The request over all rows the cluster has now, nought where its profile does not look."""
        vector = np.zeros(len(cluster.resources), dtype=np.int64)
        vector[: len(self.footprint.vector)] = self.footprint.vector
        for row, _ in () if self.profile.judges_all else self.wants:
            if self.profile.ignores(cluster.resources[row]):
                vector[row] = 0
        return vector

    @property
    def amounts(self) -> Amounts:
        return self.footprint.needs.amounts

    @property
    def label_class(self) -> LabelClass:
        return self.footprint.label_class

    @property
    def independent(self) -> bool:
        """Whether only the node itself decides if one more pod of the shape fits there."""
        return self.cluster.standing(self).independent

    def memo(self, key: Hashable, build: Callable[[], T]) -> T:
        """A rule's own compiled form of the shape, worked out once."""
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = build()
        return found

    def fresh(self, key: Hashable, version: Hashable, build: Callable[[], T]) -> T:
        """Like `memo`, but worked out again whenever the version is another."""
        found = self._memo.get(key)
        if found is None or found[0] != version:
            found = self._memo[key] = (version, build())
        return found[1]

    def __repr__(self) -> str:
        meta = self.pod.metadata
        return f"<Shape {self.id} like {meta.namespace}/{meta.name}>"


class ShapeBook:
    """Interns needs, footprints and shapes; nothing stays that no pod, queue or cache uses."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._needs: WeakValueDictionary[bytes, Needs] = WeakValueDictionary()
        self._footprints: WeakValueDictionary[tuple[bytes, int], Footprint] = WeakValueDictionary()
        self._shapes: WeakValueDictionary[Hashable, Shape] = WeakValueDictionary()
        self._next = 0

    def needs(self, pod: Pod) -> Needs:
        key = _needs_key(pod)
        found = self._needs.get(key)
        if found is None:
            found = self._needs[key] = Needs(key, pod.spec)
        return found

    def footprint(self, pod: Pod) -> Footprint:
        needs = self.needs(pod)
        cluster = self._cluster
        if not needs.label_keys <= cluster.tallies.keys:
            cluster.mention(needs.label_keys)
        label_class = cluster.tallies.class_of(pod.metadata.namespace, pod.metadata.labels)
        key = (needs.key, id(label_class))
        found = self._footprints.get(key)
        if found is None:
            found = self._footprints[key] = Footprint(needs, label_class, pod, cluster)
        return found

    def shape(self, pod: Pod, profile: Profile) -> Shape:
        if not profile.pod_labels <= self._cluster.tallies.keys:
            self._cluster.mention(profile.pod_labels)
        footprint = self.footprint(pod)
        key = (footprint, profile, pod.spec.node_name, spreading_owner(pod))
        found = self._shapes.get(key)
        if found is None:
            self._next += 1
            found = self._shapes[key] = Shape(self._next, pod, profile, footprint, self._cluster)
        return found


def spreading_owner(pod: Pod) -> tuple[str, str] | None:
    """The controller whose selector takes part in default spreading."""
    for owner in pod.metadata.owner_references or ():
        if owner.controller and owner.kind in _SPREADING_OWNERS:
            return owner.kind, owner.name
    return None


def host_ports(spec: PodSpec) -> tuple[Port, ...]:
    """The distinct ports of the node that the pod's containers and sidecars take."""
    sidecars = [container for container in spec.init_containers or () if container.restart_policy == "Always"]
    found: set[Port] = set()
    for container in (*(spec.containers or ()), *sidecars):
        for port in container.ports or ():
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                found.add(Port(port.host_ip or "0.0.0.0", port.protocol or "TCP", number))
    return tuple(sorted(found))


def carried_terms(pod: Pod) -> Iterable[Carried]:
    """The affinity terms that a running pod brings into play for others."""
    affinity = pod.spec.affinity or Affinity()
    together, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    if apart is not None:
        for term in apart.required_during_scheduling_ignored_during_execution or ():
            yield Carried("anti", term.topology_key, affinity_term(term, pod))
        for weighted in apart.preferred_during_scheduling_ignored_during_execution or ():
            term = weighted.pod_affinity_term
            yield Carried("preferred", term.topology_key, affinity_term(term, pod), -weighted.weight)
    if together is not None:
        for term in together.required_during_scheduling_ignored_during_execution or ():
            yield Carried("hard", term.topology_key, affinity_term(term, pod))
        for weighted in together.preferred_during_scheduling_ignored_during_execution or ():
            term = weighted.pod_affinity_term
            yield Carried("preferred", term.topology_key, affinity_term(term, pod), weighted.weight)


def _disks(spec: PodSpec) -> Iterable[Disk]:
    for volume in spec.volumes or ():
        if (gce := volume.gce_persistent_disk) is not None:
            yield Disk("GCEPersistentDisk", gce.pd_name, gce.read_only)
        if (aws := volume.aws_elastic_block_store) is not None:
            yield Disk("AWSElasticBlockStore", aws.volume_id, aws.read_only, shared=False)
        if (iscsi := volume.iscsi) is not None:
            yield Disk("ISCSI", iscsi.iqn, iscsi.read_only)
        if (rbd := volume.rbd) is not None:
            for monitor in rbd.monitors or ():
                yield Disk("RBD", f"{monitor}/{rbd.pool or 'rbd'}/{rbd.image}", rbd.read_only)


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
