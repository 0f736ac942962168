"""Evictable room: per node, what would be free if every pod below a priority were gone.

An upper bound for preemption: pods that are terminating count for everybody; pods whose bind is in flight and pods
that the API would not delete count for nobody; whether pods can only be evicted together is not considered. Computed
once per priority and brought up to date for nodes whose pods changed (`RequeueSignals.log`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

import numpy as np

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.groups.forest import Forest
from muster.scheduler.preemption.victims import victim_priority
from muster.scheduler.state.preemptions import Preemptions
from muster.scheduler.state.requeue_signals import RequeueSignals

MOST_PRIORITIES = 32  # that are kept; the one used least recently is computed again


class _Room:
    """The evictable room below one priority, and how much of the log it knows."""

    __slots__ = ("amounts", "seen")

    def __init__(self) -> None:
        self.amounts: Ints = np.zeros((0, 0), dtype=np.int64)  # [resource row, slot]
        self.seen = -1


class EvictableRoom:
    """What pods below a priority take on each node."""

    def __init__(self, cluster: Cluster, forest: Forest, preemptions: Preemptions, signals: RequeueSignals) -> None:
        self._cluster = cluster
        self._forest = forest
        self._preemptions = preemptions
        self._signals = signals
        self._rooms: OrderedDict[int, _Room] = OrderedDict()

    def below(self, priority: int) -> Ints:
        """Per resource row and slot, what evictions for an entity of this priority could free; not to be changed."""
        room = self._rooms.get(priority)
        if room is None:
            room = self._rooms[priority] = _Room()
            if len(self._rooms) > MOST_PRIORITIES:
                self._rooms.popitem(last=False)
        self._rooms.move_to_end(priority)
        self._refresh(room, priority)
        return room.amounts

    def _refresh(self, room: _Room, priority: int) -> None:
        cluster, log = self._cluster, self._signals.log
        shape = (len(cluster.resources), cluster.size)
        changed = log.since(room.seen) if room.seen >= 0 else None
        slots: Iterable[int] = changed.tolist() if changed is not None else ()
        if changed is None or room.amounts.shape != shape:
            room.amounts = np.zeros(shape, dtype=np.int64)
            slots = cluster.pods_by_slot
        refused = self._preemptions.refused_pods
        for slot in set(slots):
            room.amounts[:, slot] = 0
            for placed in cluster.pods_on(slot):
                uid = placed.pod.metadata.uid
                if not placed.terminating:
                    if placed.assumed or uid in refused:
                        continue
                    member = self._forest.members.get(uid)
                    if member is None or victim_priority(member) >= priority:
                        continue
                vector = placed.footprint.vector
                room.amounts[: len(vector), slot] += vector
        room.seen = log.end
