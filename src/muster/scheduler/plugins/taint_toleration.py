"""TaintToleration: NoSchedule and NoExecute taints filter, untolerated PreferNoSchedule taints lower the score."""

from __future__ import annotations

import numpy as np

from muster.api.selectors import first_untolerated, tolerates
from muster.api.types import Taint
from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import DependsOn, Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_ADDED, NODE_TAINTS


class TaintToleration(Plugin):
    name = "TaintToleration"
    weight = 3
    filter_depends_on = score_depends_on = DependsOn.NODE
    normalized = reverse = True
    message = "node(s) had untolerated taint(s)"
    unresolvable = True
    requeue_on = frozenset((NODE_ADDED, NODE_TAINTS))

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        return tolerated(shape, cluster)[cluster.taint_set[slots]]

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        sets = cluster.taint_sets
        untolerated = shape.memo_at("untolerated soft taints", len(sets), lambda: _untolerated_soft_taints(shape, sets))
        return untolerated[cluster.taint_set[slots]]


def tolerated(shape: Shape, cluster: Cluster) -> Bools:
    """Per taint set: whether the shape tolerates all its NoSchedule and NoExecute taints."""
    # There are few distinct taint sets and many nodes, so each set is evaluated once.
    sets, tolerations = cluster.taint_sets, shape.pod.spec.tolerations
    return shape.memo_at(
        "tolerated taints",
        len(sets),
        lambda: np.array([first_untolerated(taints, tolerations) is None for taints in sets], dtype=np.bool_),
    )


def _untolerated_soft_taints(shape: Shape, sets: list[tuple[Taint, ...]]) -> Ints:
    soft = [t for t in shape.pod.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]

    def untolerated(taint: Taint) -> bool:
        return taint.effect == "PreferNoSchedule" and not any(tolerates(toleration, taint) for toleration in soft)

    return np.array([sum(map(untolerated, taints)) for taints in sets], dtype=np.int64)
