"""Pods that want to be near or away from others: required and preferred, their own wishes and those of running pods."""

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
    """Pods counted by one tally, per value of one label; the weight is for scores."""

    pods: PodCount
    key: str
    weight: int = 0

    def at(self, cluster: Cluster, slots: Slots) -> Ints:
        return self.pods.by_label(self.key).take(cluster.labels(self.key)[slots])


class _AffinityTerms(NamedTuple):
    required: tuple[_TermCount, ...]  # required; all count the same pods, those that every term selects
    selects_itself: bool  # the pod itself would satisfy its required terms
    anti: tuple[_TermCount, ...]
    preferred: tuple[_TermCount, ...]
    self_anti_keys: tuple[str, ...]  # topology keys of anti-affinity that selects the pod's own like


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
        # Pods that keep apart from their like never share a domain, so even less a node.
        alone = np.logical_or.reduce([cluster.labels(key)[slots] > 0 for key in keys])
        return np.where(alone, 1, UNLIMITED)

    def _satisfies_required(self, terms: _AffinityTerms, cluster: Cluster, slots: Slots) -> Bools:
        ok = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
        found = ok.copy()
        for term in terms.required:
            ok &= cluster.labels(term.key)[slots] > 0
            found &= term.at(cluster, slots) > 0
        # The first of a group that wants to be together has nobody to join yet.
        alone = terms.selects_itself and not any(term.pods.by_label(term.key).any() for term in terms.required)
        return ok if alone else ok & found

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        terms = _terms(shape, cluster)
        ok = self._satisfies_required(terms, cluster, slots)
        yield FilterStatus(self.message, slots[~ok], True, self.name)
        for nears, text in ((terms.anti, _OWN_ANTI), (_existing_anti_affinity(shape, cluster), _EXISTING_ANTI)):
            slots = slots[ok]
            ok = np.ones(slots.shape, dtype=np.bool_)
            for term in nears:
                ok &= term.at(cluster, slots) == 0
            yield FilterStatus(text, slots[~ok], False, self.name)

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
        """What running pods think of having this one near them."""

        def find() -> list[_TermCount]:
            weights = {"hard": self.hard_weight, "anti": 0}
            found = (
                (what, weights.get(what.kind, what.weight), pod_count)
                for what, pod_count in _existing_terms(shape, cluster)
            )
            return [_TermCount(pod_count, what.topology, weight) for what, weight, pod_count in found if weight]

        return shape.memo_at((self, "liking"), cluster.pod_counts.version, find)


def _existing_terms(shape: Shape, cluster: Cluster) -> Iterable[tuple[CarriedTerm, PodCount]]:
    """The terms carried by running pods that select this shape."""
    for what, pod_count in cluster.pod_counts.carried():
        if isinstance(what, CarriedTerm) and what.topology and cluster.pod_counts.selects(what.term, shape.label_class):
            yield what, pod_count


def _existing_anti_affinity(shape: Shape, cluster: Cluster) -> list[_TermCount]:
    def find() -> list[_TermCount]:
        return [
            _TermCount(pod_count, what.topology)
            for what, pod_count in _existing_terms(shape, cluster)
            if what.kind == "anti"
        ]

    return shape.memo_at("refusing anti-affinity", cluster.pod_counts.version, find)


def _terms(shape: Shape, cluster: Cluster) -> _AffinityTerms:
    return shape.memo_at("pod affinity", cluster.pod_counts.version, lambda: _compile(shape, cluster))


def _compile(shape: Shape, cluster: Cluster) -> _AffinityTerms:
    pod, pod_counts = shape.pod, cluster.pod_counts
    affinity = pod.spec.affinity or Affinity()
    together = apart = ()
    preferred: list[_TermCount] = []
    for side, sign in ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1)):
        if side is None:
            continue
        for wish in side.preferred_during_scheduling_ignored_during_execution or ():
            term = affinity_term(wish.pod_affinity_term, pod)
            if wish.pod_affinity_term.topology_key:
                term = _TermCount(pod_counts.matching((term,)), wish.pod_affinity_term.topology_key, sign * wish.weight)
                preferred.append(term)
        required = side.required_during_scheduling_ignored_during_execution or ()
        if sign > 0:
            together = required
        else:
            apart = required
    alike = [term for term in apart if pod_counts.selects(affinity_term(term, pod), shape.label_class)]
    all_terms = tuple(sorted({affinity_term(term, pod) for term in together}, key=repr))
    everyone = pod_counts.matching(all_terms) if together else None
    return _AffinityTerms(
        tuple(_TermCount(everyone, term.topology_key) for term in together if everyone is not None),
        pod_counts.selects_all(all_terms, shape.label_class),
        tuple(_TermCount(pod_counts.matching((affinity_term(term, pod),)), term.topology_key) for term in apart),
        tuple(preferred),
        tuple(term.topology_key for term in alike),
    )
