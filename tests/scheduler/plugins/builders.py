"""Small objects by sentence, for tests of single rules: nodes, pods and a cluster that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np

from muster.api import types
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.runtime.profile import Profile, default_profile
from tests.build.cluster import evaluator_of

T = TypeVar("T")
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def a_node(
    name: str = "n0",
    cpu: str | int = 4,
    memory: str = "32Gi",
    pods: int = 110,
    *,
    zone: str | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    **extended: int,
) -> types.Node:
    """A node; taints are written `key=value:Effect`, extended resources `gpu=8` become example.com/gpu."""
    has = {HOST: name} | ({ZONE: zone} if zone else {}) | dict(labels or {})
    room = {"cpu": str(cpu), "memory": memory, "pods": str(pods)}
    room |= {f"example.com/{resource}": str(count) for resource, count in extended.items()}
    return of(
        types.Node,
        {
            "metadata": {"name": name, "labels": has},
            "spec": {"unschedulable": unschedulable, "taints": [_taint(text) for text in taints]},
            "status": {
                "allocatable": room,
                "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
            },
        },
    )


def a_pod(
    name: str = "pod",
    cpu: str | int | None = 1,
    memory: str | None = "1Gi",
    *,
    on: str = "",
    labels: Mapping[str, str] | None = None,
    namespace: str = "ns",
    phase: str = "",
    deleting: bool = False,
    owner: str = "",
    requests: Mapping[str, Any] | None = None,
    container: Mapping[str, Any] | None = None,
    **spec: Any,
) -> types.Pod:
    """A pod with one container; other fields of the spec are given as they are on the wire."""
    wanted = {"cpu": cpu, "memory": memory} | dict(requests or {})
    wanted = {resource: str(size) for resource, size in wanted.items() if size is not None}
    only = {"name": "c", "image": "app", "resources": {"requests": wanted}} | dict(container or {})
    meta: dict[str, Any] = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "labels": labels or {}}
    if deleting:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    if owner:
        kind, _, owner_name = owner.partition("/")
        meta["ownerReferences"] = [{"kind": kind, "name": owner_name, "uid": owner, "controller": True}]
    return of(
        types.Pod,
        {"metadata": meta, "spec": {"containers": [only], "nodeName": on} | spec, "status": {"phase": phase}},
    )


def a_claim(name="data", volume="", storage_class="fast", modes=("ReadWriteOnce",), phase=None, **meta):
    return of(
        types.PersistentVolumeClaim,
        {
            "metadata": {"name": name, "namespace": "ns", "uid": name} | meta,
            "spec": {
                "volumeName": volume,
                "storageClassName": storage_class,
                "accessModes": list(modes),
                "resources": {"requests": {"storage": "10Gi"}},
            },
            "status": {"phase": phase if phase is not None else ("Bound" if volume else "Pending")},
        },
    )


def a_volume(name="pv", zone=None, labels=None, driver="", size="10Gi", ref=None, storage_class="fast", phase=""):
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class}
    if zone:
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if driver:
        spec["csi"] = {"driver": driver, "volumeHandle": f"handle-{name}"}
    if ref:
        spec["claimRef"] = {"namespace": "ns", "name": ref}
    body = {"metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": {"phase": phase}}
    return of(types.PersistentVolume, body)


def a_class(name="fast", provisioner="example.com/disk", waits=True, zones=()):
    body = {"metadata": {"name": name}, "provisioner": provisioner}
    body["volumeBindingMode"] = "WaitForFirstConsumer" if waits else "Immediate"
    if zones:
        body["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": list(zones)}]}]
    return of(types.StorageClass, body)


def using(*claims, name="pod", **fields):
    volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    return a_pod(name, volumes=volumes, **fields)


def of(kind: type[T], body: Mapping[str, Any]) -> T:
    return msgspec.convert(body, kind)


def _taint(text: str) -> dict[str, str]:
    head, _, effect = text.partition(":")
    key, _, value = head.partition("=")
    return {"key": key, "value": value, "effect": effect}


def a_cluster(*objects: Any, seed: int = 0) -> Cluster:
    cluster = Cluster(seed=seed)
    for obj in objects:
        cluster.change(type(obj).__name__, obj)
    return cluster


class Asked:
    """One pod against one cluster."""

    def __init__(self, cluster: Cluster, pod: types.Pod, profile: Profile | None = None) -> None:
        self.cluster = cluster
        self.shape: Shape = evaluator_of(cluster).shape(pod, profile or default_profile())
        self.trial = evaluator_of(cluster).trial()

    @property
    def nodes(self) -> set[str]:
        """The names of the nodes that take the pod."""
        return {self.cluster.names[slot] for slot in np.flatnonzero(self.trial.feasible(self.shape))}

    @property
    def text(self) -> str:
        return self.trial.diagnose(self.shape).message_text()

    @property
    def counts(self) -> dict[str, int]:
        return self.trial.diagnose(self.shape).counts

    @property
    def final(self) -> set[str]:
        """The names of the nodes where no eviction could help."""
        return {self.cluster.names[slot] for slot in np.flatnonzero(self.trial.diagnose(self.shape).unresolvable)}

    @property
    def best(self) -> str:
        slot = self.trial.best(self.shape)
        return self.cluster.names[slot] if slot >= 0 else ""

    def scores(self, *names: str) -> dict[str, int]:
        """The weighted totals of the named nodes (all feasible ones by default)."""
        chosen = [self.cluster.index[name] for name in names or sorted(self.nodes)]
        found = self.trial.score(self.shape, chosen)
        return {self.cluster.names[slot]: int(score) for slot, score in zip(chosen, found, strict=True)}


def asked(cluster: Cluster, pod: types.Pod, *rules: Plugin) -> Asked:
    """The pod under just these rules, each with weight 1; under the default profile if none are given."""
    profile = Profile("test", rules, weights={plugin.name: 1 for plugin in rules}) if rules else None
    return Asked(cluster, pod, profile)
