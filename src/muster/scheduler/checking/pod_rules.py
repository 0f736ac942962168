"""Rules between pods, checked on the API objects: affinity, anti-affinity both ways, hard spreading.

Pods are checked in the order in which they were placed, because required affinity is a rule about the moment of
placement: for the first pod of a group that requires pods like itself there is none to be near yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from muster.api.selectors import first_untolerated, matches, node_matches
from muster.api.types import Node, Pod, PodAffinityTerm, TopologySpreadConstraint
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import CarriedTerm

PodOnNode = tuple[Pod, Node]


def anti_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    side = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity else None
    return (side.required_during_scheduling_ignored_during_execution if side else None) or ()


def affinity_terms(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    side = pod.spec.affinity.pod_affinity if pod.spec.affinity else None
    return (side.required_during_scheduling_ignored_during_execution if side else None) or ()


def spread_terms(pod: Pod) -> tuple[TopologySpreadConstraint, ...]:
    return tuple(c for c in pod.spec.topology_spread_constraints or () if c.when_unsatisfiable == "DoNotSchedule")


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
        fault = _spread(running, placed)
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


def _spread(running: RunningPods, placed: Sequence[PodOnNode]) -> str | None:
    """Every placed pod stays within the maxSkew of its constraints at the moment it is placed."""
    before = [(pod, node) for pod, node in running.pods() if pod.metadata.deletion_timestamp is None]
    spreading = {id(pod): pod for pod, _ in placed if spread_terms(pod)}
    counts = {
        (key, at): _SpreadCount(running.cluster, pod, rule, before)
        for key, pod in spreading.items()
        for at, rule in enumerate(spread_terms(pod))
    }
    for pod, node in placed:
        for at, rule in enumerate(spread_terms(pod)):
            value = (node.metadata.labels or {}).get(rule.topology_key)
            if value is None:
                return f"{pod.metadata.name} on {node.metadata.name} lacks the label {rule.topology_key}"
            if not counts[id(pod), at].allows(value):
                return f"{pod.metadata.name} on {node.metadata.name} is spread too unevenly over {rule.topology_key}"
        for count in counts.values():
            count.add(pod, node)
    return None


class _SpreadCount:
    """The pods that one constraint of a pod selects, per eligible domain."""

    def __init__(self, cluster: Cluster, pod: Pod, rule: TopologySpreadConstraint, before: Sequence[PodOnNode]) -> None:
        self._pod, self._rule = pod, rule
        self._selected: dict[int, bool] = {}
        self._by_domain: dict[str, int] = {}
        self._eligible: set[str] = set()
        keys = [c.topology_key for c in spread_terms(pod)]
        for name, node in cluster.node_objects.items():
            labels = node.metadata.labels or {}
            if all(key in labels for key in keys) and _counted_node(pod, rule, node):
                self._eligible.add(name)
                self._by_domain.setdefault(labels[rule.topology_key], 0)
        for other, node in before:
            self.add(other, node)

    def allows(self, value: str) -> bool:
        """Whether one more pod like the owner may be placed in a domain."""
        domains, rule = self._by_domain, self._rule
        least = 0 if len(domains) < (rule.min_domains or 1) else min(domains.values(), default=0)
        return domains.get(value, 0) + self._selects(self._pod) - least <= rule.max_skew

    def add(self, other: Pod, node: Node) -> None:
        if node.metadata.name in self._eligible and self._selects(other):
            self._by_domain[(node.metadata.labels or {})[self._rule.topology_key]] += 1

    def _selects(self, other: Pod) -> bool:
        known = self._selected.get(id(other))
        if known is None:
            own, labels = self._pod.metadata.labels or {}, other.metadata.labels or {}
            same = all(labels.get(key) == own[key] for key in self._rule.match_label_keys or () if key in own)
            known = same and other.metadata.namespace == self._pod.metadata.namespace
            known = self._selected[id(other)] = known and matches(self._rule.label_selector, labels)
        return known


def _counted_node(pod: Pod, rule: TopologySpreadConstraint, node: Node) -> bool:
    """Whether a node counts for a spread constraint, by its nodeTaintsPolicy and nodeAffinityPolicy."""
    if (rule.node_taints_policy or "Ignore") == "Honor" and first_untolerated(node.spec.taints, pod.spec.tolerations):
        return False
    if (rule.node_affinity_policy or "Honor") != "Honor":
        return True
    labels = node.metadata.labels or {}
    if any(labels.get(key) != wanted for key, wanted in (pod.spec.node_selector or {}).items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or node_matches(required, node.metadata.name, labels)
