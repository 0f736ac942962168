"""Trying things out on the cluster itself, with exact undo.

A trial places and evicts on the live columns and writes down each step; on exit every step is taken
back in reverse, so that all counts are what they were, to the bit. Caches follow through the change
log as they do for real changes. Only one trial is open at a time; marks inside it nest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import NamedTuple

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.cluster import Cluster, PlacedPod
from muster.scheduler.cache.footprints import Footprint
from muster.scheduler.cache.node_columns import RANK_BITS
from muster.scheduler.framework.shape import Shape
from muster.scheduler.runtime.bulk_placement import next_nodes
from muster.scheduler.runtime.diagnosis import Diagnosis, diagnose
from muster.scheduler.runtime.feasibility import Feasibility

Kept = dict[tuple[str, str], str]


WORTH_COUNTING = 4  # so many pods that are alike are moved in one step rather than one by one


class _Step(NamedTuple):
    footprint: Footprint
    slot: int
    pods: int
    kept: Kept | None
    dying: bool = False
    uid: str = ""


class _Bulk(NamedTuple):
    footprint: Footprint
    slots: Ints
    counts: Ints
    kept: Kept | None
    dying: bool = False
    uids: tuple[str, ...] = ()  # pods that were evicted, or restored, by this step


class Trial:
    """A what-if on a cluster; use it as a context manager."""

    def __init__(self, cluster: Cluster, feasibility: Callable[[Shape], Feasibility]) -> None:
        self.cluster = cluster
        self.feasibility = feasibility  # of a shape, as the trial stands
        self.evicted: set[str] = set()
        self._journal: list[_Step | _Bulk] = []

    def __enter__(self) -> Trial:
        if self.cluster.locked:
            raise RuntimeError("a trial is open already")
        self.cluster.locked = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo(0)
        self.cluster.locked = False

    # --- steps -------------------------------------------------------------------------------------

    def place(self, shape: Shape, slot: int, count: int = 1) -> None:
        """Put pods of the shape on a slot, whether it has room or not."""
        self._journal.append(_Step(shape.footprint, slot, count, self._kept(shape.footprint)))
        self.cluster.add_usage(shape.footprint, slot, count)

    def unplace(self, shape: Shape, slot: int, count: int = 1) -> None:
        """Take pods away that this trial has placed."""
        self.place(shape, slot, -count)

    def evict(self, uid: str) -> None:
        """Take a running pod away."""
        self._move(self._note(uid, -1), -1)

    def restore(self, uid: str) -> None:
        """Put an evicted pod back."""
        self._move(self._note(uid, 1), 1)

    def evict_all(self, uids: Iterable[str]) -> None:
        """`evict`, many at once."""
        self._move_all(uids, -1)

    def restore_all(self, uids: Iterable[str]) -> None:
        """`restore`, many at once."""
        self._move_all(uids, 1)

    def _note(self, uid: str, count: int) -> PlacedPod:
        if (uid in self.evicted) == (count < 0):
            raise ValueError(f"pod {uid} is {'evicted already' if count < 0 else 'not evicted'}")
        (self.evicted.add if count < 0 else self.evicted.remove)(uid)
        return self.cluster.pods[uid]

    def _move_all(self, uids: Iterable[str], count: int) -> None:
        alike: dict[tuple[Footprint, bool], list[PlacedPod]] = {}
        for uid in uids:
            entry = self._note(uid, count)
            if entry.slot < 0 or entry.footprint.claims:
                self._move(entry, count)
            else:
                alike.setdefault((entry.footprint, entry.terminating), []).append(entry)
        for (footprint, dying), entries in alike.items():
            if len(entries) < WORTH_COUNTING:
                for entry in entries:
                    self._move(entry, count)
                continue
            slots, counts = _counted(entry.slot for entry in entries)
            counts *= count
            moved = tuple(entry.pod.metadata.uid for entry in entries)
            self._journal.append(_Bulk(footprint, slots, counts, None, dying, moved))
            self.cluster.add_usage_many(footprint, slots, counts, dying=dying)

    def _move(self, entry: PlacedPod, count: int) -> None:
        kept = self._kept(entry.footprint)
        uid = entry.pod.metadata.uid
        self._journal.append(_Step(entry.footprint, entry.slot, count, kept, entry.terminating, uid))
        if entry.slot >= 0:
            self.cluster.add_usage(entry.footprint, entry.slot, count, dying=entry.terminating)

    def _kept(self, footprint: Footprint) -> Kept | None:
        return self.cluster.volumes.promised.state() if footprint.claims else None

    def mark(self) -> int:
        """A point to come back to."""
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Take back every step since the mark."""
        while len(self._journal) > mark:
            step = self._journal.pop()
            if isinstance(step, _Bulk):
                self._take_all_back(step)
            else:
                self._take_back(step)
            if step.kept is not None:
                self.cluster.restore_promised(step.kept)

    def _take_all_back(self, step: _Bulk) -> None:
        self.cluster.add_usage_many(step.footprint, step.slots, -step.counts, dying=step.dying)
        if step.uids:
            (self.evicted.difference_update if step.counts[0] < 0 else self.evicted.update)(step.uids)

    def _take_back(self, step: _Step) -> None:
        if step.slot >= 0:
            self.cluster.add_usage(step.footprint, step.slot, -step.pods, dying=step.dying)
        if step.uid:
            (self.evicted.discard if step.pods < 0 else self.evicted.add)(step.uid)

    # --- questions ---------------------------------------------------------------------------------

    def seats(self, shape: Shape) -> Ints:
        """Per slot, how many more pods of the shape fit: exact if it is independent, else an upper bound."""
        return self.feasibility(shape).seats()

    def feasible(self, shape: Shape) -> Bools:
        """Per slot, whether one more pod of the shape fits now, by every rule."""
        return self.feasibility(shape).feasible()

    def score(self, shape: Shape, slots: Ints | Sequence[int]) -> Ints:
        """The weighted score of slots that are all feasible, compared among themselves."""
        return self.feasibility(shape).totals(np.asarray(slots, dtype=np.int64))

    def best(self, shape: Shape, mask: Bools | None = None) -> int:
        """The feasible slot with the highest score, ties by rank; -1 if there is none."""
        return _best(self.feasibility(shape), mask)

    def place_many(self, shape: Shape, count: int, mask: Bools | None = None) -> list[int]:
        """What `best` and `place` in turn would do, as often as asked or until nothing fits."""
        placed: list[int] = []
        while len(placed) < count:
            standing = self.feasibility(shape)
            found = next_nodes(standing, count - len(placed), mask)
            if found is None:
                slot = _best(standing, mask)
                found = [slot] if slot >= 0 else []
            if not found:
                break
            self._place_all(shape, found)
            placed += found
        return placed

    def _place_all(self, shape: Shape, placed: list[int]) -> None:
        if len(placed) == 1:
            self.place(shape, placed[0])
            return
        slots, counts = _counted(placed)
        self._journal.append(_Bulk(shape.footprint, slots, counts, self._kept(shape.footprint)))
        self.cluster.add_usage_many(shape.footprint, slots, counts)

    def independent(self, shape: Shape) -> bool:
        """Whether only the node itself decides if one more pod of the shape fits there."""
        return self.feasibility(shape).independent

    def diagnose(self, shape: Shape, mask: Bools | None = None) -> Diagnosis:
        """Why the nodes (of the mask) do not take the shape, each under the first rule that refused it."""
        return diagnose(shape, self.cluster, mask)


def _counted(slots: Iterable[int]) -> tuple[Ints, Ints]:
    """Distinct slots, and how often each occurs."""
    found = Counter(slots)
    return np.array(list(found), dtype=np.int64), np.array(list(found.values()), dtype=np.int64)


def _best(standing: Feasibility, mask: Bools | None) -> int:
    if not len(standing.ok):
        return -1
    if standing.cached_keys_decide and (mask is None or not standing.scores_depend_on_feasible_set):
        key = standing.key if mask is None else np.where(mask, standing.key, -1)
    else:
        ok = standing.feasible(mask)
        if standing.pods_scores or standing.scores_depend_on_feasible_set:
            if ok.all():
                # All of them: views of the columns rather than copies.
                everywhere = slice(0, len(ok))
                return int(((standing.totals(everywhere) << RANK_BITS) | standing.cluster.rank).argmax())
            slots = np.flatnonzero(ok)
            if not len(slots):
                return -1
            keys = (standing.totals(slots) << RANK_BITS) | standing.cluster.rank[slots]
            return int(slots[keys.argmax()])
        key = np.where(ok, standing.key, -1)
    slot = int(key.argmax())
    return slot if key[slot] >= 0 else -1
