"""InterPodAffinity: required and preferred pod (anti-)affinity, of the pod itself and of the pods that are on nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from muster.api.types import Affinity
from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import CarriedTerm
from muster.scheduler.cache.pod_counts import PodCount
from muster.scheduler.cache.pod_terms import affinity_term
from muster.scheduler.framework.plugin import MAX_SCORE, UNLIMITED, DependsOn, FilterStatus, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import (
    NAMESPACE,
    NODE_ADDED,
    NODE_LABELS,
    NODE_REMOVED,
    POD_CHANGED,
    POD_GONE,
    POD_PLACED,
)

_OWN_ANTI = "node(s) didn't match pod anti-affinity rules"
_EXISTING_ANTI = "node(s) didn't satisfy existing pods anti-affinity rules"


class _TermCount(NamedTuple):
    """The pods that a term selects (or that carry it), by value of its topology key; the weight is for scores."""

    pods: PodCount
    key: str
    weight: int = 0

    def at(self, cluster: Cluster, slots: Slots) -> Ints:
        """Per slot, the number of these pods in the same topology domain; 0 without the label."""
        return self.pods.by_label(self.key).take(cluster.labels(self.key)[slots])


class _AffinityTerms(NamedTuple):
    """The affinity terms of a shape."""

    required: tuple[_TermCount, ...]  # all count the same pods: those that every required term selects
    selects_itself: bool  # all required terms select the pod itself
    anti: tuple[_TermCount, ...]
    preferred: tuple[_TermCount, ...]
    self_anti_keys: tuple[str, ...]  # topology keys of required anti-affinity that selects the pod itself


class InterPodAffinity(Plugin):
    name = "InterPodAffinity"
    weight = 2
    filter_depends_on = score_depends_on = DependsOn.PODS
    couples_pods = True
    message = "node(s) didn't match pod affinity rules"
    known_args = frozenset(("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"))
    requeue_on = frozenset((NODE_ADDED, NODE_REMOVED, NODE_LABELS, POD_PLACED, POD_GONE, POD_CHANGED, NAMESPACE))

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        super().__init__(args)
        self.hard_weight = int(self.args.get("hardPodAffinityWeight", 1))
        if not 0 <= self.hard_weight <= 100:
            raise ValueError(f"hardPodAffinityWeight is {self.hard_weight}; it must be from 0 to 100")
        self.ignore_preferred_of_existing = bool(self.args.get("ignorePreferredTermsOfExistingPods", False))

    # --- filtering ---------------------------------------------------------------------------------

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        terms = _terms(shape, cluster)
        return bool(terms.required or terms.anti or _existing_anti_affinity(shape, cluster))

    def affected_by_own_shape(self, shape: Shape, cluster: Cluster) -> bool:
        terms = _terms(shape, cluster)
        return bool(terms.self_anti_keys or (terms.required and terms.selects_itself))

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        terms = _terms(shape, cluster)
        ok = self._satisfies_required(terms, cluster, slots)
        for term in (*terms.anti, *_existing_anti_affinity(shape, cluster)):
            if term.pods.total:
                ok &= term.at(cluster, slots) == 0
        return ok

    def capacity(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints | None:
        keys = _terms(shape, cluster).self_anti_keys
        if not keys:
            return None
        # Pods with anti-affinity to themselves never share a domain, so no node takes two of them.
        single = np.logical_or.reduce([cluster.labels(key)[slots] > 0 for key in keys])
        return np.where(single, 1, UNLIMITED)

    def _satisfies_required(self, terms: _AffinityTerms, cluster: Cluster, slots: Slots) -> Bools:
        ok = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
        found = ok.copy()
        for term in terms.required:
            ok &= cluster.labels(term.key)[slots] > 0
            found &= term.at(cluster, slots) > 0
        # The first pod of a group with affinity to itself: there is no other pod yet that could match.
        first = terms.selects_itself and not any(term.pods.by_label(term.key).any() for term in terms.required)
        return ok if first else ok & found

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        terms = _terms(shape, cluster)
        ok = self._satisfies_required(terms, cluster, slots)
        yield FilterStatus(self.message, slots[~ok], True, self.name)
        existing = _existing_anti_affinity(shape, cluster)
        for anti, message in ((terms.anti, _OWN_ANTI), (existing, _EXISTING_ANTI)):
            slots = slots[ok]
            ok = np.ones(slots.shape, dtype=np.bool_)
            for term in anti:
                ok &= term.at(cluster, slots) == 0
            yield FilterStatus(message, slots[~ok], False, self.name)

    # --- scoring -----------------------------------------------------------------------------------

    def score_applies(self, shape: Shape, cluster: Cluster) -> bool:
        own = _terms(shape, cluster).preferred
        return bool(own) or (not self.ignore_preferred_of_existing and bool(self._existing_scores(shape, cluster)))

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        raw = np.zeros(cluster.alive[slots].shape, dtype=np.int64)
        for term in (*_terms(shape, cluster).preferred, *self._existing_scores(shape, cluster)):
            if term.pods.total:
                raw += term.at(cluster, slots) * term.weight
        if not raw.size or (lowest := raw.min()) == (highest := raw.max()):
            return np.zeros_like(raw)
        return (MAX_SCORE * ((raw - lowest) / (highest - lowest))).astype(np.int64)

    def _existing_scores(self, shape: Shape, cluster: Cluster) -> list[_TermCount]:
        """The affinity terms of pods on nodes that select this shape, with their weights."""

        def find() -> list[_TermCount]:
            weights = {"hard": self.hard_weight, "anti": 0}
            found: list[_TermCount] = []
            for term, pods in _existing_terms(shape, cluster):
                weight = weights.get(term.kind, term.weight)
                if weight:
                    found.append(_TermCount(pods, term.topology, weight))
            return found

        return shape.memo_at((self, "existing scores"), cluster.pod_counts.version, find)


def _existing_terms(shape: Shape, cluster: Cluster) -> Iterable[tuple[CarriedTerm, PodCount]]:
    """The affinity terms of pods on nodes that select this shape, each with the count of the pods that have it."""
    for term, pods in cluster.pod_counts.carried():
        if isinstance(term, CarriedTerm) and term.topology and cluster.pod_counts.selects(term.term, shape.label_class):
            yield term, pods


def _existing_anti_affinity(shape: Shape, cluster: Cluster) -> list[_TermCount]:
    """The required anti-affinity of pods on nodes that selects this shape."""

    def find() -> list[_TermCount]:
        existing = _existing_terms(shape, cluster)
        return [_TermCount(pods, term.topology) for term, pods in existing if term.kind == "anti"]

    return shape.memo_at("existing anti-affinity", cluster.pod_counts.version, find)


def _terms(shape: Shape, cluster: Cluster) -> _AffinityTerms:
    return shape.memo_at("pod affinity", cluster.pod_counts.version, lambda: _compile(shape, cluster))


def _compile(shape: Shape, cluster: Cluster) -> _AffinityTerms:
    pod, pod_counts = shape.pod, cluster.pod_counts
    affinity = pod.spec.affinity or Affinity()
    required = anti = ()
    preferred: list[_TermCount] = []
    for side, sign in ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1)):
        if side is None:
            continue
        for weighted in side.preferred_during_scheduling_ignored_during_execution or ():
            term = weighted.pod_affinity_term
            compiled = affinity_term(term, pod)
            if term.topology_key:
                pods = pod_counts.matching((compiled,))
                preferred.append(_TermCount(pods, term.topology_key, sign * weighted.weight))
        if sign > 0:
            required = side.required_during_scheduling_ignored_during_execution or ()
        else:
            anti = side.required_during_scheduling_ignored_during_execution or ()
    self_anti = [term for term in anti if pod_counts.selects(affinity_term(term, pod), shape.label_class)]
    all_terms = tuple(sorted({affinity_term(term, pod) for term in required}, key=repr))
    matching_all = pod_counts.matching(all_terms) if required else None
    return _AffinityTerms(
        tuple(_TermCount(matching_all, term.topology_key) for term in required if matching_all is not None),
        pod_counts.selects_all(all_terms, shape.label_class),
        tuple(_TermCount(pod_counts.matching((affinity_term(term, pod),)), term.topology_key) for term in anti),
        tuple(preferred),
        tuple(term.topology_key for term in self_anti),
    )
