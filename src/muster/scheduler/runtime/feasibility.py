"""Where one shape can go right now, and how well: cached per node, brought up to date for changed nodes only.

`ok` says which slots pass every rule that looks at the node and its own load. `key` holds the
weighted score above the node's rank in one number, -1 where `ok` is false, so that the best node is
an argmax. Rules that look at pods elsewhere are asked at every decision and are not cached here.

Scaled scores depend on the largest raw number among the feasible nodes. That number is watched: only
when it changes are all keys worked out again.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints, Slots, grown
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.node_columns import RANK_BITS
from muster.scheduler.framework.plugin import MAX_SCORE, UNLIMITED, DependsOn, Plugin, normalized_scores
from muster.scheduler.framework.shape import Shape
from muster.scheduler.runtime.profile import profile_of

Weighted = tuple[Plugin, int]


# Beyond this share of all slots it is quicker to work everything out than to gather the changed ones.
_MANY = 2


# Up to so many changed slots plain numbers are quicker than arrays.
_FEW_LOADS, _FEW_SLOTS = 16, 4


class NormalizedScore:
    """A scaled score: raw numbers per slot and the largest among the feasible ones."""

    __slots__ = ("all_zero", "plugin", "raw", "top", "weight")

    def __init__(self, constraint: Plugin, weight: int, size: int) -> None:
        self.plugin = constraint
        self.weight = weight
        self.raw: Ints = np.zeros(size, dtype=np.int64)
        self.top = -1
        self.all_zero = False  # no node has a raw number above 0

    def renew(self, slots: Slots, raw: Ints) -> None:
        self.raw[slots] = raw
        self.all_zero = not self.raw.any()

    def highest(self, ok: Bools) -> int:
        return 0 if self.all_zero else int(np.max(self.raw, where=ok, initial=0))

    @property
    def equal_score(self) -> int:
        """What every node gets while all are alike."""
        return MAX_SCORE * self.weight if self.plugin.reverse else 0

    def scores(self, slots: Slots, top: int) -> Ints:
        return normalized_scores(self.raw[slots], top, reverse=self.plugin.reverse) * self.weight


class Feasibility:
    """The cached answers of one shape."""

    def __init__(self, shape: Shape, cluster: Cluster) -> None:
        self.shape = shape
        self.cluster = cluster
        rules = [c for c in profile_of(shape).plugins if c.concerns(shape)]
        self._watched = tuple(sorted({kind for c in rules for kind in c.watches}))
        self._stamp = -1
        self._nodes_seen = self._usage_seen = 0
        self._seats: Ints | None = None
        self._seats_seen = 0
        self.ok: Bools = np.zeros(0, dtype=np.bool_)

    # --- answers -----------------------------------------------------------------------------------

    @property
    def cached_keys_decide(self) -> bool:
        """Whether the cached keys alone decide."""
        return not self.pods_filters and not self.pods_scores

    @property
    def scores_depend_on_feasible_set(self) -> bool:
        """Whether a scaled score tells nodes apart, so that scores depend on who is feasible."""
        return any(scaled.top > 0 for scaled in self.normalized)

    def feasible(self, mask: Bools | None = None) -> Bools:
        """Which slots can take one more pod, by all rules."""
        ok = self.ok.copy() if mask is None else self.ok & mask
        everywhere = slice(0, self.cluster.size)
        for constraint in self.pods_filters:
            ok &= constraint.filter(self.shape, self.cluster, everywhere)
        return ok

    def totals(self, slots: Slots) -> Ints:
        """The weighted score of feasible slots, scaled among these."""
        total = self.total[slots]
        for scaled in self.normalized:
            if scaled.all_zero:
                total = total + scaled.equal_score
            else:
                total = total + scaled.scores(slots, int(scaled.raw[slots].max(initial=0)))
        for constraint, weight in self.pods_scores:
            total = total + constraint.score(self.shape, self.cluster, slots) * weight
        return total

    def seats(self) -> Ints:
        """How many more pods each slot can take, as far as each rule can tell; current, and the caller's own."""
        seats, log = self._seats, self.cluster.usage_log
        changed = log.since(self._seats_seen)
        if seats is None or changed is None or len(changed) * _MANY > len(self.ok):
            seats = self._seats = self._count(slice(0, len(self.ok)))
        elif len(changed):
            seats[changed] = self._count(changed)
        self._seats_seen = log.end
        if not self.pods_filters:
            return seats.copy()
        seats = np.where(self.feasible(), seats, 0)
        for constraint in self.pods_filters:
            room = constraint.capacity(self.shape, self.cluster, slice(0, len(seats)))
            if room is not None:
                seats = np.minimum(seats, room)
        return seats

    def _count(self, slots: Slots) -> Ints:
        seats = np.where(self.ok[slots], UNLIMITED, 0)
        for constraint in self.usage_filters:
            room = constraint.capacity(self.shape, self.cluster, slots)
            if room is not None:
                seats = np.minimum(seats, room)
        return np.maximum(seats, 0)

    # --- keeping up --------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Bring the caches up to date with everything that happened since."""
        cluster = self.cluster
        versions = cluster.versions
        stamp = (
            sum(versions.get(kind, 0) for kind in self._watched) + cluster.pod_counts.version + len(cluster.resources)
        )
        loads = cluster.usage_log
        if stamp == self._stamp and self._usage_seen == loads.end and self._nodes_seen == cluster.node_log.end:
            return
        if stamp != self._stamp:
            self._stamp = stamp
            self._rebuild()
        else:
            self._catch_up()
        self._nodes_seen, self._usage_seen = cluster.node_log.end, loads.end

    def _catch_up(self) -> None:
        cluster = self.cluster
        nodes, loads = cluster.node_log.since(self._nodes_seen), cluster.usage_log.since(self._usage_seen)
        if nodes is None or loads is None or len(loads) * _MANY > cluster.size + 64:
            self._rebuild()
            return
        if len(self.ok) < cluster.size:
            self._grow(cluster.size)
        if len(nodes):
            self._renew_nodes(nodes)
        if len(loads) <= _FEW_LOADS and not len(nodes):
            few = set(loads.tolist())  # a small gang that was tried and then seated shows three times
            if len(few) <= _FEW_SLOTS:
                for slot in few:
                    self._renew_one(slot)
                return
        self._renew_usage(loads)
        if not self._renormalize():
            self._renew_keys(loads)

    def _rebuild(self) -> None:
        shape, cluster = self.shape, self.cluster
        filters = [c for c in profile_of(shape).filters if c.concerns(shape) and c.filter_applies(shape, cluster)]
        self.blocked = any(c.pre_filter(shape, cluster) for c in profile_of(shape).filters)
        self.node_filters = [c for c in filters if c.filter_depends_on is DependsOn.NODE]
        self.usage_filters = [c for c in filters if c.filter_depends_on is DependsOn.USAGE]
        self.pods_filters = [c for c in filters if c.filter_depends_on is DependsOn.PODS]
        scorers = [
            (c, w) for c, w in profile_of(shape).scorers if c.concerns(shape) and c.score_applies(shape, cluster)
        ]
        self.node_scores = [(c, w) for c, w in scorers if c.score_depends_on is DependsOn.NODE and not c.normalized]
        self.usage_scores = [(c, w) for c, w in scorers if c.score_depends_on is DependsOn.USAGE]
        self.pods_scores = [(c, w) for c, w in scorers if c.score_depends_on is DependsOn.PODS]
        size = cluster.size
        self.normalized = [
            NormalizedScore(c, w, size) for c, w in scorers if c.score_depends_on is DependsOn.NODE and c.normalized
        ]
        self.independent = not any(c.couples_pods_of(shape, cluster) for c in filters)
        # If not, placing pods of the shape changes nothing for the next of them but the load of a node.
        self.affected_by_own_shape = bool(self.pods_scores) or any(
            c.affected_by_own_shape(shape, cluster) for c in self.pods_filters
        )
        self.can_predict = all(c.can_predict for c in self.usage_filters) and all(
            c.can_predict for c, _ in self.usage_scores
        )
        self.node_ok: Bools = np.zeros(size, dtype=np.bool_)
        self.ok = np.zeros(size, dtype=np.bool_)
        self.base: Ints = np.zeros(size, dtype=np.int64)
        self.total: Ints = np.zeros(size, dtype=np.int64)
        self.scale: Ints = np.zeros(size, dtype=np.int64)
        self.key: Ints = np.full(size, -1, dtype=np.int64)
        self._seats = None
        everything = slice(0, size)
        self._renew_nodes(everything)
        self._renew_usage(everything)
        if not self._renormalize():
            self._renew_keys(everything)

    def _grow(self, size: int) -> None:
        self.node_ok = cast(Bools, grown(self.node_ok, size))
        self.ok = cast(Bools, grown(self.ok, size))
        self.base = cast(Ints, grown(self.base, size))
        self.total = cast(Ints, grown(self.total, size))
        self.scale = cast(Ints, grown(self.scale, size))
        self.key = cast(Ints, grown(self.key, size))
        self._seats = None
        for scaled in self.normalized:
            scaled.raw = cast(Ints, grown(scaled.raw, size))
            scaled.top = -1

    def _renew_nodes(self, slots: Slots) -> None:
        shape, cluster = self.shape, self.cluster
        ok = cluster.alive[slots].copy()
        if self.blocked:
            ok[:] = False
        for constraint in self.node_filters:
            ok &= constraint.filter(shape, cluster, slots)
        self.node_ok[slots] = ok
        base = np.zeros(ok.shape, dtype=np.int64)
        for constraint, weight in self.node_scores:
            base += constraint.score(shape, cluster, slots) * weight
        self.base[slots] = base
        for scaled in self.normalized:
            scaled.renew(slots, scaled.plugin.score(shape, cluster, slots))
            scaled.top = -1

    def _renew_usage(self, slots: Slots) -> None:
        shape, cluster = self.shape, self.cluster
        ok = self.node_ok[slots]
        for constraint in self.usage_filters:
            ok = ok & constraint.filter(shape, cluster, slots)
        self.ok[slots] = ok
        total = self.base[slots]
        for constraint, weight in self.usage_scores:
            total = total + constraint.score(shape, cluster, slots) * weight
        self.total[slots] = total

    def _renew_keys(self, slots: Slots) -> None:
        score = self.total[slots] + self.scale[slots]
        self.key[slots] = np.where(self.ok[slots], (score << RANK_BITS) | self.cluster.rank[slots], -1)

    def _renew_one(self, slot: int) -> None:
        shape, cluster = self.shape, self.cluster
        ok = bool(self.node_ok[slot])
        if ok:
            for constraint in self.usage_filters:
                if not constraint.filter_one(shape, cluster, slot):
                    ok = False
                    break
        total = self.base.item(slot)
        for constraint, weight in self.usage_scores:
            total += constraint.score_one(shape, cluster, slot) * weight
        self.total[slot] = total
        flipped = ok != self.ok.item(slot)
        self.ok[slot] = ok
        if not (flipped and self.normalized and self._renormalize()):
            self.key[slot] = ((total + self.scale.item(slot)) << RANK_BITS) | cluster.rank.item(slot) if ok else -1

    def _renormalize(self) -> bool:
        """Work all keys out anew if the largest raw number of a scaled score is another one now."""
        moved = False
        for scaled in self.normalized:
            top = scaled.highest(self.ok)
            if top != scaled.top:
                scaled.top = top
                moved = True
        if moved:
            everything = slice(0, len(self.ok))
            self.scale[:] = 0
            for scaled in self.normalized:
                self.scale += scaled.scores(everything, scaled.top)
            self._renew_keys(everything)
        return moved
