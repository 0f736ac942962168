"""The form of every scheduling plugin: arrays in, arrays out.

A plugin may filter, score, or both, and declares what its results depend on, which decides when they are
computed again: `NODE` results change with the node itself, `USAGE` results also with what runs on that very
node, `PODS` results with pods anywhere, so they are computed at every decision. Scores are 0 to 100. A `NODE`
score may be `normalized`: then it is a raw number and the largest among the feasible nodes becomes 100
(`reverse`: 0). A `PODS` score is given all feasible slots at once and returns final scores. A filter that
`couples_pods` makes one pod's node matter to the next pod elsewhere, or to other shapes, beyond what the usage of
a node shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints, Slots
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.cluster_events import NODE_LOCAL, ClusterEvents

MAX_SCORE = 100


UNLIMITED = 2**40


class DependsOn(Enum):
    """What a result about a node depends on."""

    NODE = "node"
    USAGE = "load"
    PODS = "pods"


@dataclass(frozen=True, slots=True)
class FilterStatus:
    """Why some slots were refused. `final` says per slot (or for all) that no eviction there can help."""

    message: str
    slots: Ints
    unresolvable: Bools | bool
    rejected_by: str | tuple[str, str] = ""  # the constraint, or the constraint and what was short


class Plugin:
    """One rule. A subclass sets the class attributes and overrides what it needs."""

    name: ClassVar[str]
    weight: ClassVar[int] = 0
    filter_depends_on: ClassVar[DependsOn | None] = None
    score_depends_on: ClassVar[DependsOn | None] = None
    normalized: ClassVar[bool] = False
    reverse: ClassVar[bool] = False
    message: ClassVar[str] = ""
    unresolvable: ClassVar[bool] = False
    couples_pods: ClassVar[bool] = False
    known_args: ClassVar[frozenset[str] | None] = frozenset()  # None: any
    pod_labels: ClassVar[frozenset[str]] = frozenset()  # keys it reads off pods beside those in selectors
    watches: ClassVar[frozenset[str]] = frozenset()
    requeue_on: ClassVar[ClusterEvents] = frozenset()

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        """Take the rule's own section of `pluginConfig`; ValueError says what is wrong with it."""
        self.args: Mapping[str, Any] = args or {}

    def concerns(self, shape: Shape) -> bool:
        """Whether the rule could ever have to do with this shape; what others watch for is not its business."""
        return True

    @property
    def can_predict(self) -> bool:
        """Whether the rule can say now what it will say after some pods of the same shape."""
        kind = type(self)
        counts = self.filter_depends_on is not DependsOn.USAGE or kind.capacity is not Plugin.capacity
        return counts and (self.score_depends_on is not DependsOn.USAGE or kind.score_after is not Plugin.score_after)

    @property
    def counts_all_resources(self) -> bool:
        """Whether the filter compares every requested resource with what the node has."""
        return False

    def ignores(self, resource: str) -> bool:
        """Whether the filter does not compare requests of this resource with what the node has."""
        return True

    # --- filtering ---------------------------------------------------------------------------------

    def pre_filter(self, shape: Shape, cluster: Cluster) -> str | None:
        """Words for a pod that fits nowhere for a reason of its own, before any node is looked at."""
        return None

    def pre_filter_nodes(self, shape: Shape, cluster: Cluster) -> frozenset[str] | None:
        """The only node names worth looking at, or None for all."""
        return None

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether the rule could refuse this shape anything at all."""
        return self.filter_depends_on is not None

    def couples_pods_of(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether the filter couples pods of this very shape."""
        return self.couples_pods

    def affected_by_own_shape(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether pods of the shape, once placed, could change what a `PODS` filter says about the next one of them."""
        return True

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        """Which of the slots can take one more pod of the shape."""
        raise NotImplementedError

    def filter_one(self, shape: Shape, cluster: Cluster, slot: int) -> bool:
        """`allows` for one slot; worth overriding only for speed."""
        return bool(self.filter(shape, cluster, np.array([slot], dtype=np.int64))[0])

    def capacity(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints | None:
        """How many more pods of the shape the slots can take by this rule, or None where one says nothing of two."""
        return None

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        """Why the slots, all refused by this rule, were refused."""
        return (FilterStatus(self.message, slots, self.unresolvable, self.name),)

    @property
    def requeue_events(self) -> ClusterEvents:
        """The events of `requeue_on` that requeue rejected pods; the others show as a change of the node itself."""
        return self.requeue_on if self.filter_depends_on is DependsOn.PODS else self.requeue_on - NODE_LOCAL

    # --- scoring -----------------------------------------------------------------------------------

    def score_applies(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether the rule has an opinion about this shape; without one it adds nothing."""
        return self.score_depends_on is not None

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        """The score of each slot for one more pod of the shape."""
        raise NotImplementedError

    def score_one(self, shape: Shape, cluster: Cluster, slot: int) -> int:
        """`score` for one slot; worth overriding only for speed."""
        return int(self.score(shape, cluster, np.array([slot], dtype=np.int64))[0])

    def score_after(self, shape: Shape, cluster: Cluster, slots: Ints, ahead: Ints) -> Ints | None:
        """`score` after `ahead` pods of the shape went to the slot first, or None if the rule cannot tell."""
        return None


def normalized_scores(raw: Ints, top: int, *, reverse: bool) -> Ints:
    """Raw numbers as scores, the largest of all (`top`) being 100, or 0 with `reverse`."""
    scores = np.zeros_like(raw) if top == 0 else raw * MAX_SCORE // top
    return MAX_SCORE - scores if reverse else scores
