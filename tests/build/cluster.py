"""The scheduler's cache filled with a few objects, and what it answers about one pod."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from muster.api import types
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.plugin import Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.profile import Profile, default_profile
from tests.build.objects import a_node

_evaluators: WeakKeyDictionary[Cluster, Evaluator] = WeakKeyDictionary()


def evaluator_of(cluster: Cluster) -> Evaluator:
    """The one evaluator over a cluster, so that equal pods get the same shape in all parts of a test."""
    if cluster not in _evaluators:
        _evaluators[cluster] = Evaluator(cluster)
    return _evaluators[cluster]


def a_cluster(*objects: Any, seed: int = 0) -> Cluster:
    cluster = Cluster(seed=seed)
    for obj in objects:
        cluster.change(type(obj).__name__, obj)
    return cluster


def a_zoned_cluster(*objects: Any) -> Cluster:
    """The nodes `a` and `b` in the zones of these names, the node `none` in no zone, and these objects."""
    return a_cluster(a_node("a", topology_zone="a"), a_node("b", topology_zone="b"), a_node("none"), *objects)


class Asked:
    """One pod against one cluster."""

    def __init__(self, cluster: Cluster, pod: types.Pod, profile: Profile | None = None) -> None:
        self.cluster = cluster
        self.shape: Shape = evaluator_of(cluster).shape(pod, profile or default_profile())
        self.trial = evaluator_of(cluster).trial()

    @property
    def nodes(self) -> set[str]:
        """The names of the nodes that take the pod."""
        return {self.cluster.names[slot] for slot in np.flatnonzero(self.trial.feasible(self.shape))}

    @property
    def text(self) -> str:
        return self.trial.diagnose(self.shape).message_text()

    @property
    def counts(self) -> dict[str, int]:
        return self.trial.diagnose(self.shape).counts

    @property
    def final(self) -> set[str]:
        """The names of the nodes where no eviction could help."""
        return {self.cluster.names[slot] for slot in np.flatnonzero(self.trial.diagnose(self.shape).unresolvable)}

    @property
    def best(self) -> str:
        slot = self.trial.best(self.shape)
        return self.cluster.names[slot] if slot >= 0 else ""

    def scores(self, *names: str) -> dict[str, int]:
        """The weighted totals of the named nodes (all feasible ones by default)."""
        chosen = [self.cluster.index[name] for name in names or sorted(self.nodes)]
        found = self.trial.score(self.shape, chosen)
        return {self.cluster.names[slot]: int(score) for slot, score in zip(chosen, found, strict=True)}


def asked(cluster: Cluster, pod: types.Pod, *rules: Plugin) -> Asked:
    """The pod under just these rules, each with weight 1; under the default profile if none are given."""
    profile = Profile("test", rules, weights={rule.name: 1 for rule in rules}) if rules else None
    return Asked(cluster, pod, profile)
