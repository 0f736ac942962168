"""`Shape`: the class of all pods with equal scheduling requirements under one profile.

Shapes are interned by the evaluator. When a selector with a new label key appears, pods that were equal may differ: a
shape that was looked up while the pod counts knew fewer label keys must be looked up again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import numpy as np

from muster.api.types import Pod
from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.footprints import Amounts, Footprint
from muster.scheduler.cache.node_columns import PODS
from muster.scheduler.cache.pod_counts import LabelClass

T = TypeVar("T")


class ProfileView(Protocol):
    """What a shape reads of its profile."""

    @property
    def scheduler_name(self) -> str: ...

    @property
    def counts_all_resources(self) -> bool:
        """Whether no resource is ignored."""
        ...

    def ignores(self, resource: str) -> bool:
        """Whether the profile does not compare requests of this resource with the node's allocatable."""
        ...


class Shape:
    """Pods with equal scheduling requirements under one profile. `pod` is one of them.

    `request_rows` are (resource row, amount) of what it requests, as plain numbers for computations on one node.
    """

    __slots__ = ("__weakref__", "_memo", "footprint", "id", "pod", "profile", "request_rows")

    def __init__(self, number: int, pod: Pod, profile: ProfileView, footprint: Footprint) -> None:
        self.id = number
        self.pod = pod
        self.profile = profile
        self.footprint = footprint
        self._memo: dict[Hashable, Any] = {}
        self.request_rows: tuple[tuple[int, int], ...] = tuple(
            (row, int(size)) for row, size in enumerate(footprint.vector) if size and row != PODS
        )

    def request_vector(self, cluster: Cluster) -> Ints:
        """The request over all resource rows of the cluster, 0 where its profile ignores the resource."""
        vector = np.zeros(len(cluster.resources), dtype=np.int64)
        vector[: len(self.footprint.vector)] = self.footprint.vector
        for row, _ in () if self.profile.counts_all_resources else self.request_rows:
            if self.profile.ignores(cluster.resources[row]):
                vector[row] = 0
        return vector

    @property
    def amounts(self) -> Amounts:
        """Its requests, by resource."""
        return self.footprint.requirements.amounts

    @property
    def label_class(self) -> LabelClass:
        return self.footprint.label_class

    def memo(self, key: Hashable, build: Callable[[], T]) -> T:
        """A value that a plugin computes once for the shape."""
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = build()
        return found

    def memo_at(self, key: Hashable, version: Hashable, build: Callable[[], T]) -> T:
        """Like `memo`, but computed again whenever the version differs."""
        found = self._memo.get(key)
        if found is None or found[0] != version:
            found = self._memo[key] = (version, build())
        return found[1]

    def __repr__(self) -> str:
        meta = self.pod.metadata
        return f"<Shape {self.id} like {meta.namespace}/{meta.name}>"
