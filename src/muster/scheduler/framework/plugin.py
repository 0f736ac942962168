"""`Plugin`: the interface of all scheduling plugins. A plugin filters or scores many nodes in one call.

A plugin may filter, score, or both. It declares what its results depend on, which decides when they are computed
again: `NODE` results when the node changes, `USAGE` results also when a pod is added to or removed from that node,
`PODS` results at every decision, because they depend on pods on other nodes.

Scores are 0 to 100. A `NODE` score may be `normalized`: it returns raw numbers, and the largest among the feasible
nodes becomes 100 (with `reverse`, 0). A `PODS` score is called with all feasible slots and returns final scores.
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

UNLIMITED = 2**40  # pods, where a plugin does not limit their number


class DependsOn(Enum):
    """What a result about a node depends on."""

    NODE = "node"
    USAGE = "usage"
    PODS = "pods"


@dataclass(frozen=True, slots=True)
class FilterStatus:
    """Why some slots were rejected. `unresolvable` (per slot, or for all): no eviction from the node can help."""

    message: str
    slots: Ints
    unresolvable: Bools | bool
    rejected_by: str | tuple[str, str] = ""  # the plugin, or the plugin and the resource that was short


class Plugin:
    """One scheduling plugin. A subclass sets class attributes and overrides what it needs.

    `message` and `unresolvable` are the status of every rejected node, unless `statuses` is overridden. A filter that
    `couples_pods` makes the node of one pod affect other nodes or other shapes beyond the usage of that node.
    """

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
    beyond_its_node: ClassVar[bool] = False  # a `USAGE` filter whose result can change with pods on other nodes
    pod_labels: ClassVar[frozenset[str]] = frozenset()  # keys of pod labels it reads, other than in selectors
    watches: ClassVar[frozenset[str]] = frozenset()  # entries of `Cluster.versions` on which its results depend too
    requeue_on: ClassVar[ClusterEvents] = frozenset()  # events that can end a rejection

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        """`args` are the plugin's arguments in `pluginConfig`; raises ValueError if they are wrong."""
        self.args: Mapping[str, Any] = args or {}

    def concerns(self, shape: Shape) -> bool:
        """Whether the plugin can ever affect this shape; if not, its `watches` do not concern the shape either."""
        return True

    @property
    def can_predict(self) -> bool:
        """Whether `capacity` and `score_after` give the results after some more pods of the same shape."""
        kind = type(self)
        counts = self.filter_depends_on is not DependsOn.USAGE or kind.capacity is not Plugin.capacity
        return counts and (self.score_depends_on is not DependsOn.USAGE or kind.score_after is not Plugin.score_after)

    @property
    def counts_all_resources(self) -> bool:
        """Whether the filter compares every requested resource with the node's allocatable."""
        return False

    def ignores(self, resource: str) -> bool:
        """Whether the filter does not compare requests of this resource with the node's allocatable."""
        return True

    # --- filtering ---------------------------------------------------------------------------------

    def pre_filter(self, shape: Shape, cluster: Cluster) -> str | None:
        """The message for a pod that fits no node because of the pod itself, or None."""
        return None

    def pre_filter_nodes(self, shape: Shape, cluster: Cluster) -> frozenset[str] | None:
        """The names of the only nodes that can be feasible, or None for all nodes."""
        return None

    def filter_applies(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether the filter can reject any node for this shape."""
        return self.filter_depends_on is not None

    def couples_pods_of(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether the filter couples pods in the case of this shape."""
        return self.couples_pods

    def counts_exactly(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether `capacity` alone says how many pods of the shape fit on a node, whatever happens on other nodes."""
        return not self.couples_pods_of(shape, cluster)

    def affected_by_own_shape(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether a pod of the shape can change the filter's result on other nodes for the next pod of the shape."""
        return True

    def filter(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        """Per slot, whether one more pod of the shape fits."""
        raise NotImplementedError

    def filter_one(self, shape: Shape, cluster: Cluster, slot: int) -> bool:
        """`filter` for one slot; overridden only for speed."""
        return bool(self.filter(shape, cluster, np.array([slot], dtype=np.int64))[0])

    def capacity(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints | None:
        """Per slot, how many more pods of the shape fit as far as this plugin decides; None if that is not known."""
        return None

    def statuses(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        """Why the slots, all rejected by this plugin, were rejected."""
        return (FilterStatus(self.message, slots, self.unresolvable, self.name),)

    @property
    def gains(self) -> ClusterEvents:
        """The events of `requeue_on` that requeue rejected pods; the other ones also log a change of the node."""
        return self.requeue_on if self.filter_depends_on is DependsOn.PODS else self.requeue_on - NODE_LOCAL

    # --- scoring -----------------------------------------------------------------------------------

    def score_applies(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether the plugin scores this shape; if not, it adds nothing."""
        return self.score_depends_on is not None

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        """Per slot, the score for one more pod of the shape."""
        raise NotImplementedError

    def score_one(self, shape: Shape, cluster: Cluster, slot: int) -> int:
        """`score` for one slot; overridden only for speed."""
        return int(self.score(shape, cluster, np.array([slot], dtype=np.int64))[0])

    def score_after(self, shape: Shape, cluster: Cluster, slots: Ints, ahead: Ints) -> Ints | None:
        """`score` after `ahead` more pods of the shape on the slot, or None if that is not known."""
        return None


def normalized_scores(raw: Ints, top: int, *, reverse: bool) -> Ints:
    """Raw numbers as scores: the largest of all (`top`) becomes 100, with `reverse` 0."""
    scores = np.zeros_like(raw) if top == 0 else raw * MAX_SCORE // top
    return MAX_SCORE - scores if reverse else scores
