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


_OTHERS_ANTI = "node(s) didn't satisfy existing pods anti-affinity rules"


class _Near(NamedTuple):
    """Pods counted by one tally, per value of one label; the weight is for scores."""

    tally: PodCount
    key: str
    weight: int = 0

    def counts(self, cluster: Cluster, slots: Slots) -> Ints:
        return self.tally.by(self.key).take(cluster.labels(self.key)[slots])


class _Wishes(NamedTuple):
    together: tuple[_Near, ...]  # required; all count the same pods, those that every term selects
    company: bool  # the pod itself would satisfy its required terms
    apart: tuple[_Near, ...]
    preferred: tuple[_Near, ...]
    jealous: tuple[str, ...]  # topology keys of anti-affinity that selects the pod's own like


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
        self.ignores_others = bool(self.args.get("ignorePreferredTermsOfExistingPods", False))

    # --- filtering ---------------------------------------------------------------------------------

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        wishes = _wishes(shape, cluster)
        return bool(wishes.together or wishes.apart or _refusing(shape, cluster))

    def affected_by_own_shape(self, shape: Shape, cluster: Cluster) -> bool:
        wishes = _wishes(shape, cluster)
        return bool(wishes.jealous or (wishes.together and wishes.company))

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        wishes = _wishes(shape, cluster)
        ok = self._together(wishes, cluster, slots)
        for near in (*wishes.apart, *_refusing(shape, cluster)):
            if near.tally.total:
                ok &= near.counts(cluster, slots) == 0
        return ok

    def capacity(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints | None:
        keys = _wishes(shape, cluster).jealous
        if not keys:
            return None
        # Pods that keep apart from their like never share a domain, so even less a node.
        alone = np.logical_or.reduce([cluster.labels(key)[slots] > 0 for key in keys])
        return np.where(alone, 1, UNLIMITED)

    def _together(self, wishes: _Wishes, cluster: Cluster, slots: Slots) -> Bools:
        ok = np.ones(cluster.alive[slots].shape, dtype=np.bool_)
        found = ok.copy()
        for near in wishes.together:
            ok &= cluster.labels(near.key)[slots] > 0
            found &= near.counts(cluster, slots) > 0
        # The first of a group that wants to be together has nobody to join yet.
        alone = wishes.company and not any(near.tally.by(near.key).any() for near in wishes.together)
        return ok if alone else ok & found

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        wishes = _wishes(shape, cluster)
        ok = self._together(wishes, cluster, slots)
        yield FilterStatus(self.message, slots[~ok], True, self.name)
        for nears, text in ((wishes.apart, _OWN_ANTI), (_refusing(shape, cluster), _OTHERS_ANTI)):
            slots = slots[ok]
            ok = np.ones(slots.shape, dtype=np.bool_)
            for near in nears:
                ok &= near.counts(cluster, slots) == 0
            yield FilterStatus(text, slots[~ok], False, self.name)

    # --- scoring -----------------------------------------------------------------------------------

    def score_applies(self, shape: Shape, cluster: Cluster) -> bool:
        own = _wishes(shape, cluster).preferred
        return bool(own) or (not self.ignores_others and bool(self._liking(shape, cluster)))

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        raw = np.zeros(cluster.alive[slots].shape, dtype=np.int64)
        for near in (*_wishes(shape, cluster).preferred, *self._liking(shape, cluster)):
            if near.tally.total:
                raw += near.counts(cluster, slots) * near.weight
        if not raw.size or (lowest := raw.min()) == (highest := raw.max()):
            return np.zeros_like(raw)
        return (MAX_SCORE * ((raw - lowest) / (highest - lowest))).astype(np.int64)

    def _liking(self, shape: Shape, cluster: Cluster) -> list[_Near]:
        """What running pods think of having this one near them."""

        def find() -> list[_Near]:
            weights = {"hard": self.hard_weight, "anti": 0}
            found = ((what, weights.get(what.kind, what.weight), tally) for what, tally in _selecting(shape, cluster))
            return [_Near(tally, what.topology, weight) for what, weight, tally in found if weight]

        return shape.fresh((self, "liking"), cluster.pod_counts.version, find)


def _selecting(shape: Shape, cluster: Cluster) -> Iterable[tuple[CarriedTerm, PodCount]]:
    """The terms carried by running pods that select this shape."""
    for what, tally in cluster.pod_counts.carried():
        if isinstance(what, CarriedTerm) and what.topology and cluster.pod_counts.selects(what.term, shape.label_class):
            yield what, tally


def _refusing(shape: Shape, cluster: Cluster) -> list[_Near]:
    def find() -> list[_Near]:
        return [_Near(tally, what.topology) for what, tally in _selecting(shape, cluster) if what.kind == "anti"]

    return shape.fresh("refusing anti-affinity", cluster.pod_counts.version, find)


def _wishes(shape: Shape, cluster: Cluster) -> _Wishes:
    return shape.fresh("pod affinity", cluster.pod_counts.version, lambda: _compile(shape, cluster))


def _compile(shape: Shape, cluster: Cluster) -> _Wishes:
    pod, tallies = shape.pod, cluster.pod_counts
    affinity = pod.spec.affinity or Affinity()
    together = apart = ()
    preferred: list[_Near] = []
    for side, sign in ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1)):
        if side is None:
            continue
        for wish in side.preferred_during_scheduling_ignored_during_execution or ():
            term = affinity_term(wish.pod_affinity_term, pod)
            if wish.pod_affinity_term.topology_key:
                near = _Near(tallies.matching((term,)), wish.pod_affinity_term.topology_key, sign * wish.weight)
                preferred.append(near)
        required = side.required_during_scheduling_ignored_during_execution or ()
        if sign > 0:
            together = required
        else:
            apart = required
    alike = [term for term in apart if tallies.selects(affinity_term(term, pod), shape.label_class)]
    all_terms = tuple(sorted({affinity_term(term, pod) for term in together}, key=repr))
    everyone = tallies.matching(all_terms) if together else None
    return _Wishes(
        tuple(_Near(everyone, term.topology_key) for term in together if everyone is not None),
        tallies.selects_all(all_terms, shape.label_class),
        tuple(_Near(tallies.matching((affinity_term(term, pod),)), term.topology_key) for term in apart),
        tuple(preferred),
        tuple(term.topology_key for term in alike),
    )
