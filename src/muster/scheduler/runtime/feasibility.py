"""Feasibility: the feasible nodes and scores of one shape.

Holds the results of the shape's filter and score plugins as one value per node, and recomputes only nodes that changed
since the last read (`Cluster.usage_log`, `Cluster.node_log`). Plugins that depend on pods on other nodes are evaluated
at every read, because any placement can change their result.

`ok` is True for slots that pass all filters that depend on the node and its usage. `key` holds the weighted score and
the node's rank in one number, -1 where `ok` is False, so that the best node is an argmax.

Normalized scores depend on the largest raw number among the feasible nodes; all keys are recomputed when it changes.
"""

from __future__ import annotations

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints, Slots, grown
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.cache.node_columns import RANK_BITS
from muster.scheduler.framework.plugin import MAX_SCORE, UNLIMITED, DependsOn, Plugin, normalized_scores
from muster.scheduler.framework.shape import Shape
from muster.scheduler.runtime.profile import profile_of

# If more than one in so many slots changed, computing all of them is faster than selecting the changed ones.
_REBUILD_DIVISOR = 2

# Up to so many log entries and slots, plain numbers are faster than arrays.
_FEW_CHANGES, _FEW_SLOTS = 16, 4


class NormalizedScore:
    """The raw scores of a plugin with `normalized`, per slot, and the largest among the feasible slots (`top`)."""

    __slots__ = ("all_zero", "plugin", "raw", "top", "weight")

    def __init__(self, plugin: Plugin, weight: int, size: int) -> None:
        self.plugin = plugin
        self.weight = weight
        self.raw: Ints = np.zeros(size, dtype=np.int64)
        self.top = -1
        self.all_zero = False  # no node has a raw score above 0

    def set(self, slots: Slots, raw: Ints) -> None:
        self.raw[slots] = raw
        self.all_zero = not self.raw.any()

    def highest(self, ok: Bools) -> int:
        return 0 if self.all_zero else int(np.max(self.raw, where=ok, initial=0))

    @property
    def equal_score(self) -> int:
        """The weighted score of every node while all raw scores are 0."""
        return MAX_SCORE * self.weight if self.plugin.reverse else 0

    def scores(self, slots: Slots, top: int) -> Ints:
        return normalized_scores(self.raw[slots], top, reverse=self.plugin.reverse) * self.weight


class Feasibility:
    """Feasible nodes and scores of one shape, current after `refresh`."""

    def __init__(self, shape: Shape, cluster: Cluster) -> None:
        self.shape = shape
        self.cluster = cluster
        plugins = [plugin for plugin in profile_of(shape).plugins if plugin.concerns(shape)]
        self._watched_versions = tuple(sorted({name for plugin in plugins for name in plugin.watches}))
        self._stamp = -1
        self._nodes_seen = self._usage_seen = 0
        self._seats: Ints | None = None
        self._seats_seen = 0
        self.ok: Bools = np.zeros(0, dtype=np.bool_)

    # --- reading -----------------------------------------------------------------------------------

    @property
    def cached_keys_decide(self) -> bool:
        """Whether `key` alone decides which node is best."""
        return not self.pods_filters and not self.pods_scores

    @property
    def scores_depend_on_feasible_set(self) -> bool:
        """Whether a normalized score differs between nodes, so that scores depend on which nodes are feasible."""
        return any(score.top > 0 for score in self.normalized)

    def feasible(self, mask: Bools | None = None) -> Bools:
        """Per slot, whether one more pod passes all filters."""
        ok = self.ok.copy() if mask is None else self.ok & mask
        everywhere = slice(0, self.cluster.size)
        for plugin in self.pods_filters:
            ok &= plugin.filter(self.shape, self.cluster, everywhere)
        return ok

    def totals(self, slots: Slots) -> Ints:
        """The weighted scores of feasible slots, normalized among these."""
        total = self.total[slots]
        for score in self.normalized:
            if score.all_zero:
                total = total + score.equal_score
            else:
                total = total + score.scores(slots, int(score.raw[slots].max(initial=0)))
        for plugin, weight in self.pods_scores:
            total = total + plugin.score(self.shape, self.cluster, slots) * weight
        return total

    def seats(self) -> Ints:
        """Per slot, how many more pods fit, as a new array: exact if the shape is independent, else an upper bound."""
        seats, log = self._seats, self.cluster.usage_log
        changed = log.since(self._seats_seen)
        if seats is None or changed is None or len(changed) * _REBUILD_DIVISOR > len(self.ok):
            seats = self._seats = self._compute_seats(slice(0, len(self.ok)))
        elif len(changed):
            seats[changed] = self._compute_seats(changed)
        self._seats_seen = log.end
        if not self.pods_filters:
            return seats.copy()
        seats = np.where(self.feasible(), seats, 0)
        for plugin in self.pods_filters:
            room = plugin.capacity(self.shape, self.cluster, slice(0, len(seats)))
            if room is not None:
                seats = np.minimum(seats, room)
        return seats

    def _compute_seats(self, slots: Slots) -> Ints:
        seats = np.where(self.ok[slots], UNLIMITED, 0)
        for plugin in self.usage_filters:
            room = plugin.capacity(self.shape, self.cluster, slots)
            if room is not None:
                seats = np.minimum(seats, room)
        return np.maximum(seats, 0)

    # --- recomputing -------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Recompute what changed in the cluster since the last call."""
        cluster = self.cluster
        versions = cluster.versions
        stamp = sum(versions.get(name, 0) for name in self._watched_versions)
        stamp += cluster.pod_counts.version + len(cluster.resources)
        log = cluster.usage_log
        if stamp == self._stamp and self._usage_seen == log.end and self._nodes_seen == cluster.node_log.end:
            return
        if stamp != self._stamp:
            self._stamp = stamp
            self._recompute_all()
        else:
            self._recompute_changed()
        self._nodes_seen, self._usage_seen = cluster.node_log.end, log.end

    def _recompute_changed(self) -> None:
        cluster = self.cluster
        nodes, usage = cluster.node_log.since(self._nodes_seen), cluster.usage_log.since(self._usage_seen)
        if nodes is None or usage is None or len(usage) * _REBUILD_DIVISOR > cluster.size + 64:
            self._recompute_all()
            return
        if len(self.ok) < cluster.size:
            self._grow(cluster.size)
        if len(nodes):
            self._recompute_nodes(nodes)
        if len(usage) <= _FEW_CHANGES and not len(nodes):
            few = set(usage.tolist())  # a small gang that was tried and then assumed is logged three times
            if len(few) <= _FEW_SLOTS:
                for slot in few:
                    self._recompute_slot(slot)
                return
        self._recompute_usage(usage)
        if not self._renormalize():
            self._recompute_keys(usage)

    def _recompute_all(self) -> None:
        self._select_plugins()
        size = self.cluster.size
        self.node_ok: Bools = np.zeros(size, dtype=np.bool_)  # passes the filters that depend on the node
        self.ok = np.zeros(size, dtype=np.bool_)
        self.base: Ints = np.zeros(size, dtype=np.int64)  # scores that depend on the node
        self.total: Ints = np.zeros(size, dtype=np.int64)  # `base` and the scores that depend on usage
        self.normalized_total: Ints = np.zeros(size, dtype=np.int64)
        self.key: Ints = np.full(size, -1, dtype=np.int64)
        self._seats = None
        everything = slice(0, size)
        self._recompute_nodes(everything)
        self._recompute_usage(everything)
        if not self._renormalize():
            self._recompute_keys(everything)

    def _select_plugins(self) -> None:
        """The plugins that apply to the shape as the cluster is now, by what their results depend on."""
        shape, cluster, profile = self.shape, self.cluster, profile_of(self.shape)
        concerned = [plugin for plugin in profile.filters if plugin.concerns(shape)]
        filters = [plugin for plugin in concerned if plugin.filter_applies(shape, cluster)]
        self.blocked = any(plugin.pre_filter(shape, cluster) for plugin in profile.filters)
        self.node_filters = [plugin for plugin in filters if plugin.filter_depends_on is DependsOn.NODE]
        self.usage_filters = [plugin for plugin in filters if plugin.filter_depends_on is DependsOn.USAGE]
        self.pods_filters = [plugin for plugin in filters if plugin.filter_depends_on is DependsOn.PODS]
        scores = [(plugin, weight) for plugin, weight in profile.scorers if plugin.concerns(shape)]
        scores = [(plugin, weight) for plugin, weight in scores if plugin.score_applies(shape, cluster)]
        on_node = [(plugin, weight) for plugin, weight in scores if plugin.score_depends_on is DependsOn.NODE]
        self.node_scores = [(plugin, weight) for plugin, weight in on_node if not plugin.normalized]
        self.normalized = [NormalizedScore(*score, cluster.size) for score in on_node if score[0].normalized]
        self.usage_scores = [score for score in scores if score[0].score_depends_on is DependsOn.USAGE]
        self.pods_scores = [score for score in scores if score[0].score_depends_on is DependsOn.PODS]
        self.independent = not any(plugin.couples_pods_of(shape, cluster) for plugin in filters)
        # The same, but for limits of a node that are no resource and that `seats` counts exactly.
        self.countable = all(plugin.counts_exactly(shape, cluster) for plugin in filters)
        # If False, placing a pod of the shape changes nothing for the next one but the usage of its node.
        self.affected_by_own_shape = bool(self.pods_scores) or any(
            plugin.affected_by_own_shape(shape, cluster)
            for plugin in filters
            if plugin in self.pods_filters or plugin.beyond_its_node
        )
        self.can_predict = all(plugin.can_predict for plugin in self.usage_filters) and all(
            plugin.can_predict for plugin, _ in self.usage_scores
        )

    def _grow(self, size: int) -> None:
        self.node_ok = grown(self.node_ok, size)
        self.ok = grown(self.ok, size)
        self.base = grown(self.base, size)
        self.total = grown(self.total, size)
        self.normalized_total = grown(self.normalized_total, size)
        self.key = grown(self.key, size)
        self._seats = None
        for score in self.normalized:
            score.raw = grown(score.raw, size)
            score.top = -1

    def _recompute_nodes(self, slots: Slots) -> None:
        shape, cluster = self.shape, self.cluster
        ok = cluster.alive[slots].copy()
        if self.blocked:
            ok[:] = False
        for plugin in self.node_filters:
            ok &= plugin.filter(shape, cluster, slots)
        self.node_ok[slots] = ok
        base = np.zeros(ok.shape, dtype=np.int64)
        for plugin, weight in self.node_scores:
            base += plugin.score(shape, cluster, slots) * weight
        self.base[slots] = base
        for score in self.normalized:
            score.set(slots, score.plugin.score(shape, cluster, slots))
            score.top = -1

    def _recompute_usage(self, slots: Slots) -> None:
        shape, cluster = self.shape, self.cluster
        ok = self.node_ok[slots]
        for plugin in self.usage_filters:
            ok = ok & plugin.filter(shape, cluster, slots)
        self.ok[slots] = ok
        total = self.base[slots]
        for plugin, weight in self.usage_scores:
            total = total + plugin.score(shape, cluster, slots) * weight
        self.total[slots] = total

    def _recompute_keys(self, slots: Slots) -> None:
        score = self.total[slots] + self.normalized_total[slots]
        self.key[slots] = np.where(self.ok[slots], (score << RANK_BITS) | self.cluster.rank[slots], -1)

    def _recompute_slot(self, slot: int) -> None:
        shape, cluster = self.shape, self.cluster
        ok = bool(self.node_ok[slot])
        if ok:
            for plugin in self.usage_filters:
                if not plugin.filter_one(shape, cluster, slot):
                    ok = False
                    break
        total = self.base.item(slot)
        for plugin, weight in self.usage_scores:
            total += plugin.score_one(shape, cluster, slot) * weight
        self.total[slot] = total
        flipped = ok != self.ok.item(slot)
        self.ok[slot] = ok
        if not (flipped and self.normalized and self._renormalize()):
            self.key[slot] = (
                ((total + self.normalized_total.item(slot)) << RANK_BITS) | cluster.rank.item(slot) if ok else -1
            )

    def _renormalize(self) -> bool:
        """Recompute all keys if the largest raw number of a normalized score changed; True if so."""
        changed = False
        for score in self.normalized:
            top = score.highest(self.ok)
            if top != score.top:
                score.top = top
                changed = True
        if changed:
            everything = slice(0, len(self.ok))
            self.normalized_total[:] = 0
            for score in self.normalized:
                self.normalized_total += score.scores(everything, score.top)
            self._recompute_keys(everything)
        return changed
