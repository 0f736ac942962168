"""The scheduler's cache filled with a few objects, and what it answers about one pod."""

from __future__ import annotations

from typing import Any

import numpy as np

from muster.api import types
from muster.scheduler.cluster import Cluster
from muster.scheduler.constraints.base import Constraint
from muster.scheduler.profile import Profile, default_profile
from muster.scheduler.shapes import Shape
from muster.scheduler.trial import Trial


def a_cluster(*objects: Any, seed: int = 0) -> Cluster:
    cluster = Cluster(seed=seed)
    for obj in objects:
        cluster.change(type(obj).__name__, obj)
    return cluster


class Asked:
    """One pod against one cluster."""

    def __init__(self, cluster: Cluster, pod: types.Pod, profile: Profile | None = None) -> None:
        self.cluster = cluster
        self.shape: Shape = cluster.shape(pod, profile or default_profile())
        self.trial = Trial(cluster)

    @property
    def nodes(self) -> set[str]:
        """The names of the nodes that take the pod."""
        return {self.cluster.names[slot] for slot in np.flatnonzero(self.trial.allows(self.shape))}

    @property
    def text(self) -> str:
        return self.trial.why_not(self.shape).text()

    @property
    def counts(self) -> dict[str, int]:
        return self.trial.why_not(self.shape).counts

    @property
    def final(self) -> set[str]:
        """The names of the nodes where no eviction could help."""
        return {self.cluster.names[slot] for slot in np.flatnonzero(self.trial.why_not(self.shape).unresolvable)}

    @property
    def best(self) -> str:
        slot = self.trial.best(self.shape)
        return self.cluster.names[slot] if slot >= 0 else ""

    def scores(self, *names: str) -> dict[str, int]:
        """The weighted totals of the named nodes (all feasible ones by default)."""
        chosen = [self.cluster.index[name] for name in names or sorted(self.nodes)]
        found = self.trial.score(self.shape, chosen)
        return {self.cluster.names[slot]: int(score) for slot, score in zip(chosen, found, strict=True)}


def asked(cluster: Cluster, pod: types.Pod, *rules: Constraint) -> Asked:
    """The pod under just these rules, each with weight 1; under the default profile if none are given."""
    profile = Profile("test", rules, weights={rule.name: 1 for rule in rules}) if rules else None
    return Asked(cluster, pod, profile)
