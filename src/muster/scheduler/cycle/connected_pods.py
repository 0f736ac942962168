"""Which pods matter to a shape beyond the room they take: those that its terms select, and those whose terms select it.

A pod that comes to a node or leaves one can only end a rejection by affinity, anti-affinity or spreading of a shape
that is connected with it by a term.
"""

from __future__ import annotations

from muster.api.types import Affinity
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import Footprint, carried_terms
from muster.scheduler.cache.pod_terms import PodTerm, affinity_term, spread_term
from muster.scheduler.framework.shape import Shape
from muster.scheduler.plugins.pod_topology_spread import HARD, PodTopologySpread
from muster.scheduler.runtime.profile import profile_of


def has_terms(shape: Shape) -> bool:
    """Whether required affinity, anti-affinity or spreading of the shape itself selects pods."""
    return bool(_own_terms(shape)) or _spread_by_default(shape)


def is_connected(shape: Shape, footprint: Footprint, cluster: Cluster) -> bool:
    """Whether a pod of this footprint can be what a rule about other pods rejected the shape for, or lacked."""
    counts = cluster.pod_counts
    if any(counts.selects(term, footprint.label_class) for term in _own_terms(shape)) or _spread_by_default(shape):
        return True
    if footprint.pod.spec.affinity is None:
        return False
    carried = (term for term in carried_terms(footprint.pod) if term.kind == "anti")
    return any(counts.selects(term.term, shape.label_class) for term in carried)


def _own_terms(shape: Shape) -> tuple[PodTerm, ...]:
    return shape.memo("terms that pods are rejected by", lambda: tuple(_find_terms(shape)))


def _find_terms(shape: Shape) -> list[PodTerm]:
    pod = shape.pod
    affinity = pod.spec.affinity or Affinity()
    found: list[PodTerm] = []
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
        required = side.required_during_scheduling_ignored_during_execution if side is not None else None
        found += [affinity_term(term, pod) for term in required or ()]
    constraints = pod.spec.topology_spread_constraints or ()
    return found + [spread_term(one, pod) for one in constraints if one.when_unsatisfiable == HARD]


def _spread_by_default(shape: Shape) -> bool:
    """Whether a default constraint of its profile can reject the shape: which pods it selects, Services decide."""
    if shape.pod.spec.topology_spread_constraints:
        return False
    return any(
        constraint.when_unsatisfiable == HARD
        for plugin in profile_of(shape).filters
        if isinstance(plugin, PodTopologySpread)
        for constraint in plugin.defaults
    )
