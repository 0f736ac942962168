"""Rules between pods, checked on the API objects: affinity, anti-affinity both ways, hard spreading.

Pods are checked in the order in which they were placed, because required affinity is a rule about the moment of
placement: for the first pod of a group that requires pods like itself there is none to be near yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from muster.api.selectors import matches
from muster.api.types import Node, Pod, PodAffinityTerm
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import CarriedTerm
from muster.scheduler.checking.spread_rules import spread_fault, spread_terms

PodOnNode = tuple[Pod, Node]


def anti_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    side = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    return (side.required_during_scheduling_ignored_during_execution if side else None) or ()


def affinity_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    side = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    return (side.required_during_scheduling_ignored_during_execution if side else None) or ()


class RunningPods:
    """The pods that run already, and whether a term selects a pod."""

    def __init__(self, cluster: Cluster, evicted: frozenset[str]) -> None:
        self.cluster = cluster
        self.evicted = evicted

    def pods(self) -> Iterator[PodOnNode]:
        """Every running pod with its node."""
        nodes, names = self.cluster.node_objects, self.cluster.names
        for uid, entry in self.cluster.pods.items():
            if entry.slot >= 0 and uid not in self.evicted:
                yield entry.pod, nodes[names[entry.slot]]

    def repelling(self, near: Collection[int] | None = None, others: Iterable[Pod] = ()) -> Iterator[PodOnNode]:
        """The running pods with required anti-affinity: all, or those in one domain with the slots of `near`.

        The cluster's pod counts only show which nodes to read; the pods there are checked by themselves.
        """
        slots: set[int] = set()
        namespaces = {pod.metadata.namespace for pod in others}
        for carried, count in self.cluster.pod_counts.carried():
            if not isinstance(carried, CarriedTerm) or carried.kind != "anti" or not count.total:
                continue
            if (
                near is not None
                and carried.term.namespace_requirements is None
                and namespaces.isdisjoint(carried.term.namespaces)
            ):
                continue
            there = count.column[: self.cluster.size] > 0
            if near is not None:
                values = self.cluster.labels(carried.topology)
                shared = np.zeros(int(values.max(initial=0)) + 1, dtype=bool)
                shared[values[list(near)]] = True
                there &= shared[values] & (values > 0)
            slots.update(there.nonzero()[0].tolist())
        for slot in sorted(slots):
            node = self.cluster.node_objects[self.cluster.names[slot]]
            for entry in self.cluster.pods_on(slot):
                if entry.pod.metadata.uid not in self.evicted and anti_terms(entry.pod):
                    yield entry.pod, node

    def selects(self, term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
        """Whether a term of `owner` selects `other`."""
        if not self._selects_namespace(term, owner, other.metadata.namespace):
            return False
        labels, own = other.metadata.labels or {}, owner.metadata.labels or {}
        for key in term.match_label_keys or ():
            if key in own and labels.get(key) != own[key]:
                return False
        for key in term.mismatch_label_keys or ():
            if key in own and labels.get(key) == own[key]:
                return False
        return matches(term.label_selector, labels)

    def _selects_namespace(self, term: PodAffinityTerm, owner: Pod, namespace: str) -> bool:
        if not term.namespaces and term.namespace_selector is None:
            return namespace == owner.metadata.namespace
        if namespace in (term.namespaces or ()):
            return True
        labels = self.cluster.pod_counts.namespaces.get(namespace)
        return term.namespace_selector is not None and matches(term.namespace_selector, labels)


def same_domain(key: str, one: Node, other: Node) -> bool:
    value = (one.metadata.labels or {}).get(key)
    return value is not None and value == (other.metadata.labels or {}).get(key)


def between_pods(
    running: RunningPods, placed: Sequence[PodOnNode], distinct: Mapping[int, Pod], repelling: Sequence[PodOnNode]
) -> str | None:
    """The first rule between pods that a placement breaks, in words.

    `distinct` are the different pod objects among the placed, by id(); `repelling` the running pods nearby with
    required anti-affinity.
    """
    fault = _repelled_by_running(running, placed, distinct, repelling)
    if fault is None and any(anti_terms(pod) for pod in distinct.values()):
        fault = _anti_affinity(running, placed)
    if fault is None and any(affinity_terms(pod) for pod in distinct.values()):
        fault = _affinity(running, placed)
    if fault is None and any(spread_terms(pod) for pod in distinct.values()):
        fault = spread_fault(running.cluster, running.evicted, placed)
    return fault


def _repelled_by_running(
    running: RunningPods, placed: Sequence[PodOnNode], distinct: Mapping[int, Pod], repelling: Sequence[PodOnNode]
) -> str | None:
    """The required anti-affinity of running pods selects none of the placed in their domain."""
    for pod, node in repelling:
        for term in anti_terms(pod):
            selected = {key for key, other in distinct.items() if running.selects(term, pod, other)}
            if not selected:
                continue
            for new, where in placed:
                if id(new) in selected and same_domain(term.topology_key, node, where):
                    return f"{new.metadata.name} on {where.metadata.name} is kept away by {pod.metadata.name}"
    return None


def _anti_affinity(running: RunningPods, placed: Sequence[PodOnNode]) -> str | None:
    """The required anti-affinity of placed pods selects no other pod, running or placed, in their domain."""
    others = [*running.pods(), *placed]
    taken: dict[tuple[str, str, int], Counter[str]] = {}
    for index, (pod, node) in enumerate(placed):
        for at, term in enumerate(anti_terms(pod)):
            value = (node.metadata.labels or {}).get(term.topology_key)
            if value is None:
                continue
            key = (str(id(pod)), term.topology_key, at)
            if key not in taken:
                taken[key] = _counts(running, term, pod, others)
            itself = 1 if running.selects(term, pod, pod) else 0
            if taken[key][value] > itself:
                return f"{pod.metadata.name} in seat {index} on {node.metadata.name} is too near to a pod it avoids"
    return None


def _counts(running: RunningPods, term: PodAffinityTerm, owner: Pod, pods: Sequence[PodOnNode]) -> Counter[str]:
    """How many pods a term selects, per value of its topology key."""
    found: Counter[str] = Counter()
    for other, node in pods:
        value = (node.metadata.labels or {}).get(term.topology_key)
        if value is not None and running.selects(term, owner, other):
            found[value] += 1
    return found


def _affinity(running: RunningPods, placed: Sequence[PodOnNode]) -> str | None:
    """The required affinity of every placed pod holds in its domain at the moment it is placed."""
    before = list(running.pods())
    requiring = {id(pod): pod for pod, _ in placed if affinity_terms(pod)}
    near: dict[int, list[Counter[str]]] = {}
    anywhere: dict[int, int] = {}
    for key, pod in requiring.items():
        selected = [node for other, node in before if _selected(running, pod, other)]
        near[key] = [
            Counter((node.metadata.labels or {}).get(term.topology_key, "") for node in selected)
            for term in affinity_terms(pod)
        ]
        anywhere[key] = sum(sum(1 for value in count.elements() if value) for count in near[key])
    for pod, node in placed:
        key, labels = id(pod), node.metadata.labels or {}
        if key in requiring:
            values = [labels.get(term.topology_key) for term in affinity_terms(pod)]
            if any(value is None for value in values):
                return f"{pod.metadata.name} on {node.metadata.name} lacks the label its affinity speaks of"
            first = not anywhere[key] and _selected(running, pod, pod)
            if not first and any(not near[key][at][value or ""] for at, value in enumerate(values)):
                return f"{pod.metadata.name} on {node.metadata.name} is not near the pods it needs"
        for other, owner in requiring.items():
            if _selected(running, owner, pod):
                for at, term in enumerate(affinity_terms(owner)):
                    value = labels.get(term.topology_key)
                    if value:
                        near[other][at][value] += 1
                        anywhere[other] += 1
    return None


def _selected(running: RunningPods, owner: Pod, other: Pod) -> bool:
    """Whether all affinity terms of a pod select another."""
    return all(running.selects(term, owner, other) for term in affinity_terms(owner))
