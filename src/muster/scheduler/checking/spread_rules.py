"""Hard spreading, checked on the API objects: no domain has more than maxSkew pods above the one with the fewest.

It is a rule about the moment of placement, so pods are checked in the order in which they were placed. Which domains
there are and which nodes count is read from the columns of labels and taints, each distinct value judged once; the pods
are counted one by one from their own labels, not with the pod counts that the plugins use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from muster.api.selectors import first_untolerated, matches, node_matches
from muster.api.types import Node, Pod, TopologySpreadConstraint
from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.cluster import Cluster


def spread_terms(pod: Pod) -> tuple[TopologySpreadConstraint, ...]:
    """The constraints that a placement must not break."""
    return tuple(c for c in pod.spec.topology_spread_constraints or () if c.when_unsatisfiable == "DoNotSchedule")


class _Counts:
    """Matching pods per value of the topology key of one constraint, while further pods are placed."""

    def __init__(self, cluster: Cluster, evicted: frozenset[str], pod: Pod, rule: TopologySpreadConstraint) -> None:
        self._rule = rule
        self._cluster = cluster
        self._namespace = pod.metadata.namespace
        self._selected = _selection(pod, rule)
        self._itself = self._selected(pod)
        self._eligible = _eligible_nodes(cluster, pod, rule)
        values = cluster.labels(rule.topology_key)
        slots = [
            entry.slot
            for uid, entry in cluster.pods.items()
            if entry.slot >= 0
            and entry.pod.metadata.namespace == self._namespace
            and entry.pod.metadata.deletion_timestamp is None
            and uid not in evicted
            and self._selected(entry.pod)
        ]
        there = np.array(slots, dtype=np.int64)
        size = int(values.max(initial=0)) + 1
        self._by_value: Ints = np.bincount(values[there[self._eligible[there]]], minlength=size).astype(np.int64)
        self._domains = np.flatnonzero(np.bincount(values[self._eligible], minlength=size))

    def allows(self, value: str) -> bool:
        """Whether one more pod like the owner of the constraint may be placed in a domain."""
        enough = len(self._domains) >= (self._rule.min_domains or 1)
        least = int(self._by_value[self._domains].min()) if enough and len(self._domains) else 0
        here = int(self._by_value[self._cluster.label_id(self._rule.topology_key, value)])
        return here + self._itself - least <= self._rule.max_skew

    def add(self, other: Pod, slot: int) -> None:
        """Count a pod that is placed."""
        if other.metadata.namespace == self._namespace and self._eligible[slot] and self._selected(other):
            self._by_value[self._cluster.labels(self._rule.topology_key)[slot]] += 1


def spread_fault(cluster: Cluster, evicted: frozenset[str], placed: Sequence[tuple[Pod, Node]]) -> str | None:
    """The first placed pod that is spread too unevenly, in words."""
    spreading = {id(pod): pod for pod, _ in placed}
    counts = {
        (number, at): _Counts(cluster, evicted, pod, rule)
        for number, pod in spreading.items()
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
            count.add(pod, cluster.index[node.metadata.name])
    return None


def _selection(pod: Pod, rule: TopologySpreadConstraint) -> Callable[[Pod], bool]:
    """Whether the constraint of `pod` counts another pod, by labels; equal labels are compared once."""
    own = pod.metadata.labels or {}
    equal = [key for key in rule.match_label_keys or () if key in own]
    selector = rule.label_selector
    keys = set(equal).union(selector.match_labels or () if selector else ())
    keys.update(one.key for one in (selector.match_expressions or () if selector else ()))
    read = sorted(keys)
    known: dict[tuple[str | None, ...], bool] = {}

    def selected(other: Pod) -> bool:
        labels = other.metadata.labels or {}
        relevant = tuple([labels.get(key) for key in read])
        answer = known.get(relevant)
        if answer is None:
            same = all(labels.get(key) == own[key] for key in equal)
            answer = known[relevant] = same and matches(selector, labels)
        return answer

    return selected


def _eligible_nodes(cluster: Cluster, pod: Pod, rule: TopologySpreadConstraint) -> Bools:
    """Per slot, whether the node counts: it has all topology keys, and the policies of the constraint allow it."""
    eligible = cluster.alive.copy()
    for other in spread_terms(pod):
        eligible &= cluster.labels(other.topology_key) > 0
    if (rule.node_taints_policy or "Ignore") == "Honor":
        untolerated = [first_untolerated(taints, pod.spec.tolerations) for taints in cluster.taint_sets]
        eligible &= np.array([taint is None for taint in untolerated], dtype=np.bool_)[cluster.taint_set]
    if (rule.node_affinity_policy or "Honor") != "Honor":
        return eligible
    for key, wanted in (pod.spec.node_selector or {}).items():
        ids, number = cluster.labels(key), cluster.label_id(key, wanted)
        eligible &= (ids == number) & (ids > 0)
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is not None:
        slots: list[int] = np.flatnonzero(eligible).tolist()
        for slot in slots:
            name = cluster.names[slot]
            eligible[slot] = node_matches(required, name, cluster.node_objects[name].metadata.labels or {})
    return eligible
