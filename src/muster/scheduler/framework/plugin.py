"""The form of every scheduling rule: arrays in, arrays out.

A constraint may filter, score, or both, and says how far it looks. What it reads decides when its
answers are asked for again: `NODE` answers change with the node itself, `LOAD` answers also with
what runs on that very node, `PODS` answers with pods anywhere, so they are asked for at every
decision. Scores are 0 to 100. A `NODE` score may be `scaled`: then it is a raw number and the
largest among the feasible nodes becomes 100 (`backwards`: 0). A `PODS` score is given all feasible
slots at once and answers with final scores. A filter that `entangles` makes one pod's place matter to
the next pod elsewhere, or to other shapes, beyond what the load of a node shows.
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
from muster.scheduler.interface.cluster_events import SEEN_ON_THE_NODE, ClusterEvents

MAX_SCORE = 100


UNLIMITED = 2**40


class DependsOn(Enum):
    """How far a rule looks from the node it judges."""

    NODE = "node"
    LOAD = "load"
    PODS = "pods"


@dataclass(frozen=True, slots=True)
class FilterStatus:
    """Why some slots were refused. `final` says per slot (or for all) that no eviction there can help."""

    text: str
    slots: Ints
    final: Bools | bool
    culprit: str | tuple[str, str] = ""  # the constraint, or the constraint and what was short


class Plugin:
    """One rule. A subclass sets the class attributes and overrides what it needs."""

    name: ClassVar[str]
    weight: ClassVar[int] = 0
    filters: ClassVar[DependsOn | None] = None
    scores: ClassVar[DependsOn | None] = None
    scaled: ClassVar[bool] = False
    backwards: ClassVar[bool] = False
    text: ClassVar[str] = ""
    final: ClassVar[bool] = False
    entangles: ClassVar[bool] = False
    arguments: ClassVar[frozenset[str] | None] = frozenset()  # None: any
    pod_labels: ClassVar[frozenset[str]] = frozenset()  # keys it reads off pods beside those in selectors
    watches: ClassVar[frozenset[str]] = frozenset()
    cures: ClassVar[ClusterEvents] = frozenset()

    def __init__(self, args: Mapping[str, Any] | None = None) -> None:
        """Take the rule's own section of `pluginConfig`; ValueError says what is wrong with it."""
        self.args: Mapping[str, Any] = args or {}

    def concerns(self, shape: Shape) -> bool:
        """Whether the rule could ever have to do with this shape; what others watch for is not its business."""
        return True

    @property
    def foresees(self) -> bool:
        """Whether the rule can say now what it will say after some pods of the same shape."""
        kind = type(self)
        counts = self.filters is not DependsOn.LOAD or kind.seats is not Plugin.seats
        return counts and (self.scores is not DependsOn.LOAD or kind.score_ahead is not Plugin.score_ahead)

    @property
    def counts_all_resources(self) -> bool:
        """Whether the filter compares every requested resource with what the node has."""
        return False

    def ignores(self, resource: str) -> bool:
        """Whether the filter does not compare requests of this resource with what the node has."""
        return True

    # --- filtering ---------------------------------------------------------------------------------

    def rejects(self, shape: Shape, cluster: Cluster) -> str | None:
        """Words for a pod that fits nowhere for a reason of its own, before any node is looked at."""
        return None

    def narrows(self, shape: Shape, cluster: Cluster) -> frozenset[str] | None:
        """The only node names worth looking at, or None for all."""
        return None

    def filters_for(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether the rule could refuse this shape anything at all."""
        return self.filters is not None

    def entangles_for(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether the rule entangles pods of this very shape."""
        return self.entangles

    def sees_own_like(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether pods of the shape, once placed, could change what a `PODS` filter says about the next one of them."""
        return True

    def allows(self, shape: Shape, cluster: Cluster, slots: Slots) -> Bools:
        """Which of the slots can take one more pod of the shape."""
        raise NotImplementedError

    def allows_one(self, shape: Shape, cluster: Cluster, slot: int) -> bool:
        """`allows` for one slot; worth overriding only for speed."""
        return bool(self.allows(shape, cluster, np.array([slot], dtype=np.int64))[0])

    def seats(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints | None:
        """How many more pods of the shape the slots can take by this rule, or None where one says nothing of two."""
        return None

    def reasons(self, shape: Shape, cluster: Cluster, slots: Ints) -> Iterable[FilterStatus]:
        """Why the slots, all refused by this rule, were refused."""
        return (FilterStatus(self.text, slots, self.final, self.name),)

    @property
    def woken_by(self) -> ClusterEvents:
        """The cures for which whoever was refused must be called; the others are noticed on the node itself."""
        return self.cures if self.filters is DependsOn.PODS else self.cures - SEEN_ON_THE_NODE

    # --- scoring -----------------------------------------------------------------------------------

    def scores_for(self, shape: Shape, cluster: Cluster) -> bool:
        """Whether the rule has an opinion about this shape; without one it adds nothing."""
        return self.scores is not None

    def score(self, shape: Shape, cluster: Cluster, slots: Slots) -> Ints:
        """The score of each slot for one more pod of the shape."""
        raise NotImplementedError

    def score_one(self, shape: Shape, cluster: Cluster, slot: int) -> int:
        """`score` for one slot; worth overriding only for speed."""
        return int(self.score(shape, cluster, np.array([slot], dtype=np.int64))[0])

    def score_ahead(self, shape: Shape, cluster: Cluster, slots: Ints, ahead: Ints) -> Ints | None:
        """`score` after `ahead` pods of the shape went to the slot first, or None if the rule cannot tell."""
        return None


def normalized_scores(raw: Ints, top: int, *, backwards: bool) -> Ints:
    """Raw numbers as scores, the largest of all (`top`) being 100, or 0 when read backwards."""
    scores = np.zeros_like(raw) if top == 0 else raw * MAX_SCORE // top
    return MAX_SCORE - scores if backwards else scores
