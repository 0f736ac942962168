"""Hard spreading, checked on the API objects: no domain has more than maxSkew pods above the one with the fewest.

Which domains there are and which nodes count is read from the columns of labels and taints, each distinct value judged
once; the pods are counted one by one from their own labels, not with the pod counts that the plugins use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from muster.api.selectors import first_untolerated, matches, node_matches
from muster.api.types import Node, Pod, TopologySpreadConstraint
from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.cluster import Cluster


def spread_terms(pod: Pod) -> tuple[TopologySpreadConstraint, ...]:
    """The constraints that a placement must not break."""
    return tuple(c for c in pod.spec.topology_spread_constraints or () if c.when_unsatisfiable == "DoNotSchedule")


class _Counts(NamedTuple):
    """Matching pods per value of the topology key, and the fewest in an eligible domain."""

    by_value: Ints
    least: int


def spread_fault(cluster: Cluster, evicted: frozenset[str], placed: Sequence[tuple[Pod, Node]]) -> str | None:
    """The first placed pod that is spread too unevenly, in words."""
    known: dict[tuple[int, int], _Counts] = {}
    for pod, node in placed:
        for at, rule in enumerate(spread_terms(pod)):
            value = (node.metadata.labels or {}).get(rule.topology_key)
            if value is None:
                return f"{pod.metadata.name} on {node.metadata.name} lacks the label {rule.topology_key}"
            counts = known.get((id(pod), at))
            if counts is None:
                counts = known[id(pod), at] = _count(cluster, evicted, pod, rule, placed)
            here = int(counts.by_value[cluster.label_id(rule.topology_key, value)])
            if here - counts.least > rule.max_skew:
                return f"{pod.metadata.name} on {node.metadata.name} is spread too unevenly over {rule.topology_key}"
    return None


def _count(
    cluster: Cluster,
    evicted: frozenset[str],
    pod: Pod,
    rule: TopologySpreadConstraint,
    placed: Sequence[tuple[Pod, Node]],
) -> _Counts:
    values = cluster.labels(rule.topology_key)
    eligible = _eligible_nodes(cluster, pod, rule)
    selected, namespace = _selection(pod, rule), pod.metadata.namespace
    slots = [
        entry.slot
        for uid, entry in cluster.pods.items()
        if entry.slot >= 0
        and entry.pod.metadata.namespace == namespace
        and entry.pod.metadata.deletion_timestamp is None
        and uid not in evicted
        and selected(entry.pod)
    ]
    index = cluster.index
    slots += [
        index[node.metadata.name] for other, node in placed if other.metadata.namespace == namespace and selected(other)
    ]
    there = np.array(slots, dtype=np.int64)
    size = int(values.max(initial=0)) + 1
    by_value = np.bincount(values[there[eligible[there]]], minlength=size).astype(np.int64)
    domains = np.flatnonzero(np.bincount(values[eligible], minlength=size))
    enough = len(domains) >= (rule.min_domains or 1)
    return _Counts(by_value, int(by_value[domains].min(initial=1 << 40)) if enough and len(domains) else 0)


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
