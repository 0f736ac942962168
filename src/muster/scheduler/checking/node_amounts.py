"""What pods request and nodes have, added up from the API objects.

Nothing here comes from the columns of the cluster. A node's sum is kept until one of its pods is another object, so
checking a plan costs as much as the plan is large, not as the cluster is full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

from muster.api import quantity
from muster.api.types import Container, Node, Pod, Quantities
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.node_rules import NodeRules, ports_of

Amounts = dict[str, int]


MOST_SHAPES = 4096  # kept; all are dropped when there are more


_PLAIN = frozenset(("cpu", "memory", "ephemeral-storage"))


_of_cluster: WeakKeyDictionary[Cluster, NodeAmounts] = WeakKeyDictionary()


def amounts_of(cluster: Cluster) -> NodeAmounts:
    """The sums of a cluster, kept for as long as the cluster is."""
    found = _of_cluster.get(cluster)
    if found is None:
        found = _of_cluster[cluster] = NodeAmounts(cluster)
    return found


class ShapeAmounts:
    """What the checker needs to know about one pod, computed once."""

    __slots__ = ("depends_on_pods", "has_volumes", "pod", "ports", "requests", "rules")

    def __init__(self, pod: Pod) -> None:
        affinity = pod.spec.affinity
        self.pod = pod
        self.requests = requests(pod)
        self.rules = NodeRules(pod)
        self.ports = tuple(ports_of(pod))
        self.has_volumes = bool(pod.spec.volumes)
        together, apart = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else (None, None)
        self.depends_on_pods = bool(together or apart or pod.spec.topology_spread_constraints)


class NodeAmounts:
    """Requested and allocatable amounts of every node of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        # The cluster's own collection, not the cluster: this object must not keep the cluster alive.
        self._pods_by_slot = cluster.pods_by_slot
        self._requested: dict[int, tuple[list[Pod], Amounts]] = {}
        self._allocatable: dict[str, tuple[Node, Amounts]] = {}
        self._shapes: dict[int, ShapeAmounts] = {}
        self._of_containers: dict[int, tuple[object, Amounts]] = {}  # by id(), of pods that are nothing but containers

    def shape(self, pod: Pod) -> ShapeAmounts:
        """The amounts of a pod. Plans name one pod per shape, so the same objects come again and again."""
        found = self._shapes.get(id(pod))
        if found is None or found.pod is not pod:
            if len(self._shapes) > MOST_SHAPES:
                self._shapes.clear()
            found = self._shapes[id(pod)] = ShapeAmounts(pod)
        return found

    def requested(self, slot: int, evicted: frozenset[str] | set[str]) -> Amounts:
        """What the pods on a node request together, and their number as `pods`."""
        here = self._pods_by_slot.get(slot)
        if not here:
            return {"pods": 0}
        pods = [entry.pod for entry in here.values()]
        if evicted and not evicted.isdisjoint(here):
            return self._add({"pods": 0}, (entry.pod for uid, entry in here.items() if uid not in evicted))
        known = self._requested.get(slot)
        if known is not None and known[0] == pods:
            return known[1]
        # Pods mostly come one after the other: continue from the sum of those that were there.
        before = len(known[0]) if known is not None and known[0] == pods[: len(known[0])] else 0
        total = dict(known[1]) if known is not None and before else {"pods": 0}
        self._requested[slot] = (pods, self._add(total, pods[before:]))
        return total

    def _add(self, total: Amounts, pods: Iterable[Pod]) -> Amounts:
        for pod in pods:
            total["pods"] += 1
            for name, amount in self._requests(pod).items():
                total[name] = total.get(name, 0) + amount
        return total

    def _requests(self, pod: Pod) -> Amounts:
        """`requests`, computed once for all pods that refer to the very same containers."""
        containers = pod.spec.containers
        if pod.spec.init_containers or pod.spec.resources or pod.spec.overhead:
            return requests(pod)
        known = self._of_containers.get(id(containers))
        if known is None or known[0] is not containers:
            if len(self._of_containers) > MOST_SHAPES:
                self._of_containers.clear()
            known = self._of_containers[id(containers)] = (containers, requests(pod))
        return known[1]

    def allocatable(self, node: Node) -> Amounts:
        """What a node has for pods."""
        known = self._allocatable.get(node.metadata.name)
        if known is None or known[0] is not node:
            known = self._allocatable[node.metadata.name] = (node, numbers(node.status.allocatable))
        return known[1]


def requests(pod: Pod) -> Amounts:
    """What a pod requests of its node: the larger of its start and its steady state, plus overhead."""
    spec = pod.spec
    containers = spec.containers or ()
    if len(containers) == 1 and not (spec.init_containers or spec.resources or spec.overhead):
        return _counted(_requested(containers[0]))  # most pods are like this
    steady: Amounts = {}
    for container in containers:
        steady = _plus(steady, _requested(container))
    started: Amounts = {}  # sidecars that run already while later init containers do
    start: Amounts = {}
    for container in spec.init_containers or ():
        if container.restart_policy == "Always":
            started = _plus(started, _requested(container))
            start = _larger(start, started)
        else:
            start = _larger(start, _plus(started, _requested(container)))
    found = _larger(_plus(steady, started), start)
    if spec.resources is not None and spec.resources.requests:
        whole = numbers(spec.resources.requests)
        found |= {name: size for name, size in whole.items() if name in ("cpu", "memory") or "hugepages-" in name}
    if spec.overhead:
        found = _plus(found, numbers(spec.overhead))
    return _counted(found)


def _counted(found: Amounts) -> Amounts:
    return {name: size for name, size in found.items() if size and _counts(name)}


def _requested(container: Container) -> Amounts:
    return numbers(container.resources.requests if container.resources else None)


def numbers(quantities: Quantities | None) -> Amounts:
    """Quantities as whole numbers, cpu in thousandths."""
    return {
        name: quantity.milli(text) if name == "cpu" else quantity.value(text)
        for name, text in (quantities or {}).items()
    }


def _plus(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in one.keys() | other.keys()}


def _larger(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in one.keys() | other.keys()}


def _counts(name: str) -> bool:
    """Whether the scheduler compares requests of this resource with what a node has."""
    return name in _PLAIN or "/" in name or name.startswith(("hugepages-", "attachable-volumes-"))
