"""NodeAffinity: nodeSelector and required node affinity filter nodes, preferred node affinity scores them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from muster.api.types import Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from muster.api.types import NodeAffinity as NodeAffinitySpec
from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.node_columns import NodeColumns
from muster.scheduler.framework.plugin import DependsOn, FilterStatus, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED, NODE_LABELS


class NodeAffinity(Plugin):
    name = "NodeAffinity"
    weight = 2
    filter_depends_on = score_depends_on = DependsOn.NODE
    normalized = True
    message = "node(s) didn't match Pod's node affinity/selector"
    unresolvable = True
    known_args = frozenset(("addedAffinity",))
    requeue_on = frozenset((NODE_ADDED, NODE_LABELS))

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        super().__init__(args)
        self.added = msgspec.convert(self.args.get("addedAffinity") or {}, NodeAffinitySpec)

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        required = _required(_node_affinity(shape)) or _required(self.added)
        return bool(shape.pod.spec.node_selector) or required is not None

    def pre_filter(self, shape: Shape, cluster: Cluster) -> str | None:
        names = self.pre_filter_nodes(shape, cluster)
        return "pod affinity terms conflict" if names is not None and not names else None

    def pre_filter_nodes(self, shape: Shape, cluster: Cluster) -> frozenset[str] | None:
        required = _required(_node_affinity(shape))
        return None if required is None else _names_required(required)

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        ok = matches_pod(shape, cluster, slots)
        enforced = _required(self.added)
        return ok if enforced is None else ok & matches_selector(enforced, cluster, slots)

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        enforced = _required(self.added)
        if enforced is not None:
            ok = matches_selector(enforced, cluster, slots)
            yield FilterStatus("node(s) didn't match scheduler-enforced node affinity", slots[~ok], True, self.name)
            slots = slots[ok]
        yield FilterStatus(self.message, slots, True, self.name)

    def score_applies(self, shape: Shape, cluster: Cluster) -> bool:
        return bool(_preferred(_node_affinity(shape)) or _preferred(self.added))

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        total = np.zeros(cluster.alive[slots].shape, dtype=np.int64)
        for weighted in (*_preferred(_node_affinity(shape)), *_preferred(self.added)):
            total += matches_term(weighted.preference, cluster, slots) * weighted.weight
        return total


def matches_pod(shape: Shape, cluster: NodeColumns, slots: Slots) -> Bools:
    """Per slot, whether the node matches the pod's own nodeSelector and required node affinity."""
    ok = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
    for key, value in (shape.pod.spec.node_selector or {}).items():
        ok &= _matches_label(cluster, slots, key, "In", (value,))
    required = _required(_node_affinity(shape))
    return ok if required is None else ok & matches_selector(required, cluster, slots)


def matches_selector(selector: NodeSelector, cluster: NodeColumns, slots: Slots) -> Bools:
    """Per slot, whether the node matches at least one term of a node selector."""
    ok = np.zeros(cluster.alive[slots].shape, dtype=np.bool_)
    for term in selector.node_selector_terms or ():
        ok |= matches_term(term, cluster, slots)
    return ok


def matches_term(term: NodeSelectorTerm, cluster: NodeColumns, slots: Slots) -> Bools:
    """Per slot, whether the node matches all expressions and fields of a term; an empty term matches no node."""
    shape = cluster.alive[slots].shape
    if not term.match_expressions and not term.match_fields:
        return np.zeros(shape, dtype=np.bool_)
    ok = np.ones(shape, dtype=np.bool_)
    for required in term.match_expressions or ():
        ok &= _matches_label(cluster, slots, required.key, required.operator, required.values or ())
    for required in term.match_fields or ():
        ok &= _matches_name(required, cluster, slots)
    return ok


def _matches_label(cluster: NodeColumns, slots: Slots, key: str, operator: str, values: tuple[str, ...]) -> Bools:
    return cluster.label_column(key).matching(key, operator, values)[cluster.labels(key)[slots]]


def _matches_name(required: NodeSelectorRequirement, cluster: NodeColumns, slots: Slots) -> Bools:
    values = required.values or ()
    found = np.zeros(cluster.size, dtype=np.bool_)
    if len(values) != 1 or required.operator not in ("In", "NotIn"):
        return found[slots]
    slot = cluster.index.get(values[0]) if required.key == "metadata.name" else None
    if slot is not None:
        found[slot] = True
    return found[slots] if required.operator == "In" else ~found[slots]


def _node_affinity(shape: Shape) -> NodeAffinitySpec:
    return (shape.pod.spec.affinity or Affinity()).node_affinity or NodeAffinitySpec()


def _required(affinity: NodeAffinitySpec) -> NodeSelector | None:
    return affinity.required_during_scheduling_ignored_during_execution


def _preferred(affinity: NodeAffinitySpec) -> tuple[PreferredSchedulingTerm, ...]:
    found = affinity.preferred_during_scheduling_ignored_during_execution or ()
    return tuple(weighted for weighted in found if weighted.weight)


def _names_required(selector: NodeSelector) -> frozenset[str] | None:
    """The node names that the terms require (`metadata.name` In), None if a term requires none; empty on conflict."""
    names: set[str] = set()
    terms = selector.node_selector_terms or ()
    for term in terms:
        allowed = [
            frozenset(required.values or ())
            for required in term.match_fields or ()
            if required.key == "metadata.name" and required.operator == "In"
        ]
        if not allowed:
            return None
        names |= allowed[0].intersection(*allowed[1:])
    return frozenset(names) if terms else None
