"""PodTopologySpread: `DoNotSchedule` constraints filter by maxSkew, `ScheduleAnyway` and default constraints score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from muster.api.types import TopologySpreadConstraint
from muster.scheduler.cache.arrays import Bools, Ids, Ints, Slots, present_ids
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.pod_counts import NodeSubset, PodCount
from muster.scheduler.cache.pod_terms import PodTerm, spread_term
from muster.scheduler.framework.plugin import MAX_SCORE, DependsOn, FilterStatus, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import (
    NODE_ADDED,
    NODE_LABELS,
    NODE_REMOVED,
    NODE_TAINTS,
    POD_CHANGED,
    POD_GONE,
    POD_PLACED,
)
from muster.scheduler.plugins.node_affinity import matches_pod
from muster.scheduler.plugins.taint_toleration import tolerated

Floats = npt.NDArray[np.float64]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"

# kube-scheduler's system defaults, for pods without constraints of their own.
SYSTEM_DEFAULTS = (TopologySpreadConstraint(3, HOSTNAME, SOFT), TopologySpreadConstraint(5, ZONE, SOFT))


class _Spread(NamedTuple):
    """A spread constraint of a shape and the count of the pods that it selects."""

    constraint: TopologySpreadConstraint
    pods: PodCount
    counts_itself: int  # 1 if the constraint selects the pod itself


class _Domains(NamedTuple):
    """The eligible nodes of a constraint, as the nodes are now."""

    nodes: NodeSubset
    present: Ints  # value ids of the domains with an eligible node


class PodTopologySpread(Plugin):
    name = "PodTopologySpread"
    weight = 2
    filter_depends_on = score_depends_on = DependsOn.PODS
    couples_pods = True
    message = "node(s) didn't match pod topology spread constraints"
    missing = "node(s) didn't match pod topology spread constraints (missing required label)"
    known_args = frozenset(("defaultConstraints", "defaultingType"))
    watches = frozenset(("selectors",))
    requeue_on = frozenset((NODE_ADDED, NODE_REMOVED, NODE_LABELS, NODE_TAINTS, POD_PLACED, POD_GONE, POD_CHANGED))

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        super().__init__(args)
        kind = self.args.get("defaultingType") or "System"
        if kind not in ("System", "List"):
            raise ValueError(f"unknown defaultingType {kind!r}; known are System, List")
        self.system = kind == "System"
        given = self.args.get("defaultConstraints") or ()
        if self.system and given:
            raise ValueError("defaultConstraints need defaultingType List")
        self.defaults = SYSTEM_DEFAULTS if self.system else msgspec.convert(given, tuple[TopologySpreadConstraint, ...])

    # --- filtering ---------------------------------------------------------------------------------

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        return bool(self._spreads(shape, cluster, HARD))

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        ok = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
        spreads = self._spreads(shape, cluster, HARD)
        for spread, domains in zip(spreads, self._domains(shape, cluster, HARD), strict=True):
            table = _within_max_skew(spread, domains)
            ok &= table.take(cluster.labels(spread.constraint.topology_key)[slots])
        return ok

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        spreads = self._spreads(shape, cluster, HARD)
        for spread, domains in zip(spreads, self._domains(shape, cluster, HARD), strict=True):
            ids = cluster.labels(spread.constraint.topology_key)[slots]
            yield FilterStatus(self.missing, slots[ids == 0], True, self.name)
            slots, ids = slots[ids > 0], ids[ids > 0]
            ok = _within_max_skew(spread, domains)[ids]
            yield FilterStatus(self.message, slots[~ok], False, self.name)
            slots = slots[ok]

    # --- scoring -----------------------------------------------------------------------------------

    def score_applies(self, shape: Shape, cluster: Cluster) -> bool:
        return bool(self._spreads(shape, cluster, SOFT))

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        spreads = self._spreads(shape, cluster, SOFT)
        domains = self._domains(shape, cluster, SOFT)
        columns = [cluster.labels(spread.constraint.topology_key)[slots] for spread in spreads]
        kept = _with_all_keys(columns) if self._needs_all_keys(shape) else None
        raw: Floats = np.zeros(columns[0].shape)
        for spread, where, ids in zip(spreads, domains, columns, strict=True):
            key, allowed = spread.constraint.topology_key, spread.constraint.max_skew - 1
            if key == HOSTNAME:
                size = len(ids) if kept is None else int(kept.sum())
                more = spread.pods.column[: cluster.size][slots] * log(size + 2) + allowed
                raw += more if ids.all() else np.where(ids > 0, more, 0.0)
            else:
                size = int(np.count_nonzero(np.bincount(ids if kept is None else ids[kept])))
                table = spread.pods.by_label(key, where.nodes) * log(size + 2) + allowed
                table[0] = 0.0
                raw += table.take(ids)
        return _spread_scores(np.floor(raw + 0.5).astype(np.int64), kept)

    # --- constraints and their domains -------------------------------------------------------------

    def _needs_all_keys(self, shape: Shape) -> bool:
        return bool(shape.pod.spec.topology_spread_constraints) or not self.system

    def _spreads(self, shape: Shape, cluster: Cluster, kind: str) -> list[_Spread]:
        version = (cluster.versions.get("selectors", 0), cluster.pod_counts.version)
        return shape.memo_at((self, kind), version, lambda: list(self._compile(shape, cluster, kind)))

    def _compile(self, shape: Shape, cluster: Cluster, kind: str) -> Iterable[_Spread]:
        own = shape.pod.spec.topology_spread_constraints
        default = None if own else cluster.owner_selectors.default_selector(shape.pod, shape.label_class.labels)
        for constraint in own or self.defaults:
            term: PodTerm | None = spread_term(constraint, shape.pod) if own else default
            if constraint.when_unsatisfiable == kind and term is not None:
                itself = cluster.pod_counts.selects(term, shape.label_class)
                yield _Spread(constraint, cluster.pod_counts.matching((term,), skip_terminating=True), int(itself))

    def _domains(self, shape: Shape, cluster: Cluster, kind: str) -> list[_Domains]:
        version = (cluster.node_version, cluster.size, cluster.versions.get("selectors", 0))
        return shape.memo_at((self, kind, "domains"), version, lambda: self._find_domains(shape, cluster, kind))

    def _find_domains(self, shape: Shape, cluster: Cluster, kind: str) -> list[_Domains]:
        spreads = self._spreads(shape, cluster, kind)
        everywhere = slice(0, cluster.size)
        having = cluster.alive.copy()
        if kind == HARD or self._needs_all_keys(shape):
            for spread in spreads:
                having &= cluster.labels(spread.constraint.topology_key) > 0
        found: list[_Domains] = []
        for spread in spreads:
            mask = having.copy()
            if spread.constraint.node_affinity_policy != "Ignore":
                mask &= matches_pod(shape, cluster, everywhere)
            if spread.constraint.node_taints_policy == "Honor":
                mask &= tolerated(shape, cluster)[cluster.taint_set]
            present = present_ids(cluster.labels(spread.constraint.topology_key)[mask])
            found.append(_Domains(cluster.pod_counts.node_subset(mask), present))
        return found


def _within_max_skew(spread: _Spread, domains: _Domains) -> Bools:
    """Per value id: whether one more pod in the domain keeps the skew within maxSkew. Entry 0 (no label) is False."""
    counts = spread.pods.by_label(spread.constraint.topology_key, domains.nodes)
    enough = len(domains.present) >= (spread.constraint.min_domains or 1)
    least = int(counts[domains.present].min()) if enough else 0
    table = counts + (spread.counts_itself - least) <= spread.constraint.max_skew
    table[0] = False
    return table


def _with_all_keys(columns: list[Ids]) -> Bools | None:
    """Per node, whether it has all topology keys; None if all nodes do."""
    kept = np.logical_and.reduce([ids > 0 for ids in columns])
    return None if kept.all() else kept


def _spread_scores(raw: Ints, kept: Bools | None) -> Ints:
    """Scores that are higher the fewer matching pods there are; 0 for nodes that are not kept."""
    among = raw if kept is None else raw[kept]
    highest, lowest = int(among.max(initial=0)), int(among.min(initial=2**62))
    scores = np.full(raw.shape, MAX_SCORE) if highest == 0 else MAX_SCORE * (highest + lowest - raw) // highest
    return scores if kept is None else np.where(kept, scores, 0)
