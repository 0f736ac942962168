"""The evaluator of a cluster, made once, so that equal pods get the same shape in all parts of a test."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.runtime.evaluator import Evaluator

_made: WeakKeyDictionary[Cluster, Evaluator] = WeakKeyDictionary()


def evaluator_of(cluster: Cluster) -> Evaluator:
    """The one evaluator over this cluster."""
    if cluster not in _made:
        _made[cluster] = Evaluator(cluster)
    return _made[cluster]
