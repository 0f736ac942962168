"""Trials: hypothetical placements and evictions on the cluster itself, undone exactly.

A trial changes the arrays of the cluster and records each step; on exit all steps are undone in reverse order, so that
every count is what it was. Cached results follow through the change logs, as for real changes. One trial is open at a
time; `mark` and `undo` inside it nest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import NamedTuple

import numpy as np

from muster.scheduler.cache.arrays import Bools, Ints
from muster.scheduler.cache.cluster import MIN_BULK, Cluster, PlacedPod
from muster.scheduler.cache.device_rows import DeviceRows, device_rows
from muster.scheduler.cache.devices import Promise, TrialState
from muster.scheduler.cache.footprints import Footprint
from muster.scheduler.cache.node_columns import RANK_BITS
from muster.scheduler.framework.shape import Shape
from muster.scheduler.runtime.bulk_placement import next_nodes
from muster.scheduler.runtime.diagnosis import Diagnosis, diagnose
from muster.scheduler.runtime.feasibility import Feasibility

PromisedState = dict[tuple[str, str], str]


class _Step(NamedTuple):
    """Pods of a footprint added to a slot (removed, below 0), and what undoing that needs."""

    footprint: Footprint
    slot: int
    pods: int
    promised: PromisedState | None  # the promised volumes before the step, if its pods have claims
    devices: TrialState | None = None  # the devices before the step, if its pods need some
    terminating: bool = False
    uid: str = ""  # of the pod that was evicted or restored by this step
    room_only: bool = False


class _BulkStep(NamedTuple):
    """Like `_Step`, on several distinct slots."""

    footprint: Footprint
    slots: Ints
    counts: Ints
    promised: PromisedState | None
    terminating: bool = False
    uids: tuple[str, ...] = ()  # pods that were evicted, or restored, by this step


class _Held(NamedTuple):
    """A claim was given devices; what was promised before."""

    devices: TrialState
    promised: PromisedState | None = None


class Trial:
    """Hypothetical placements and evictions on a cluster, as a context manager.

    `feasibility` gives the feasible nodes and scores of a shape in the present state of the trial.
    """

    def __init__(self, cluster: Cluster, feasibility: Callable[[Shape], Feasibility]) -> None:
        self.cluster = cluster
        self.feasibility = feasibility
        self.evicted: set[str] = set()
        self._journal: list[_Step | _BulkStep | _Held] = []

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
        """Add pods of the shape to a slot, whether they fit or not."""
        footprint, needs = shape.footprint, shape.footprint.needs
        devices = self.cluster.devices
        before = devices.trial_state(slot, promises=bool(needs.claims)) if needs is not None else None
        self._journal.append(_Step(footprint, slot, count, self._promised(footprint), before))
        self.cluster.add_usage(footprint, slot, count)
        if needs is not None:
            self.cluster.try_devices(needs, slot, count)

    def keep_room(self, shape: Shape, slot: int, count: int = 1) -> None:
        """Take the room of pods of the shape on a slot; to rules between pods nobody is there."""
        self._journal.append(_Step(shape.footprint, slot, count, None, room_only=True))
        self.cluster.add_room(shape.footprint, slot, count)

    def place_counts(self, shape: Shape, slots: Ints, counts: Ints) -> None:
        """Add so many pods of the shape to each of several distinct slots, whether they fit or not."""
        if len(slots) < MIN_BULK or shape.footprint.needs is not None:
            for slot, count in zip(slots.tolist(), counts.tolist(), strict=True):
                self.place(shape, slot, count)
            return
        self._journal.append(_BulkStep(shape.footprint, slots, counts, self._promised(shape.footprint)))
        self.cluster.add_usage_many(shape.footprint, slots, counts)

    def hold(self, claim: tuple[str, str], promise: Promise) -> None:
        """Give a claim that several pods use these devices, before any of the pods is placed."""
        self._journal.append(_Held(self.cluster.hold_devices(claim, promise)))

    def unplace(self, shape: Shape, slot: int, count: int = 1) -> None:
        """Remove pods that this trial has placed."""
        self.place(shape, slot, -count)

    def evict(self, uid: str) -> None:
        """Remove a bound pod."""
        self._move(self._toggle_evicted(uid, -1), -1)

    def restore(self, uid: str) -> None:
        """Add a pod back that this trial has evicted."""
        self._move(self._toggle_evicted(uid, 1), 1)

    def evict_all(self, uids: Iterable[str]) -> None:
        """`evict` for several pods."""
        self._move_all(uids, -1)

    def restore_all(self, uids: Iterable[str]) -> None:
        """`restore` for several pods."""
        self._move_all(uids, 1)

    def _toggle_evicted(self, uid: str, count: int) -> PlacedPod:
        if (uid in self.evicted) == (count < 0):
            raise ValueError(f"pod {uid} is {'evicted already' if count < 0 else 'not evicted'}")
        (self.evicted.add if count < 0 else self.evicted.remove)(uid)
        return self.cluster.pods[uid]

    def _move_all(self, uids: Iterable[str], count: int) -> None:
        by_footprint: dict[tuple[Footprint, bool], list[PlacedPod]] = {}
        for uid in uids:
            placed = self._toggle_evicted(uid, count)
            if placed.slot < 0 or placed.footprint.claims or placed.footprint.needs is not None:
                self._move(placed, count)
            else:
                by_footprint.setdefault((placed.footprint, placed.terminating), []).append(placed)
        for (footprint, terminating), pods in by_footprint.items():
            if len(pods) < MIN_BULK:
                for placed in pods:
                    self._move(placed, count)
                continue
            slots, counts = _counted(placed.slot for placed in pods)
            counts *= count
            moved = tuple(placed.pod.metadata.uid for placed in pods)
            self._journal.append(_BulkStep(footprint, slots, counts, None, terminating, moved))
            self.cluster.add_usage_many(footprint, slots, counts, terminating=terminating)

    def _move(self, placed: PlacedPod, count: int) -> None:
        promised = self._promised(placed.footprint)
        uid = placed.pod.metadata.uid
        step = _Step(placed.footprint, placed.slot, count, promised, terminating=placed.terminating, uid=uid)
        self._journal.append(step)
        if placed.slot >= 0:
            self.cluster.add_usage(placed.footprint, placed.slot, count, terminating=placed.terminating)
        if placed.footprint.needs is not None:
            self.cluster.evict_devices(placed, count)

    def _promised(self, footprint: Footprint) -> PromisedState | None:
        return self.cluster.volumes.promised.state() if footprint.claims else None

    def mark(self) -> int:
        """The present state, for `undo`."""
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Undo every step since the mark."""
        while len(self._journal) > mark:
            step = self._journal.pop()
            if isinstance(step, _BulkStep):
                self._undo_bulk(step)
            elif isinstance(step, _Held):
                self.cluster.restore_devices(step.devices)
            else:
                self._undo_step(step)
            if step.promised is not None:
                self.cluster.restore_promised(step.promised)

    def _undo_bulk(self, step: _BulkStep) -> None:
        self.cluster.add_usage_many(step.footprint, step.slots, -step.counts, terminating=step.terminating)
        if step.uids:
            (self.evicted.difference_update if step.counts[0] < 0 else self.evicted.update)(step.uids)

    def _undo_step(self, step: _Step) -> None:
        if step.room_only:
            self.cluster.add_room(step.footprint, step.slot, -step.pods)
        elif step.slot >= 0:
            self.cluster.add_usage(step.footprint, step.slot, -step.pods, terminating=step.terminating)
        if step.devices is not None:
            self.cluster.restore_devices(step.devices)
        elif step.uid and step.footprint.needs is not None:
            self.cluster.evict_devices(self.cluster.pods[step.uid], -step.pods)
        if step.uid:
            (self.evicted.discard if step.pods < 0 else self.evicted.add)(step.uid)

    # --- reading -----------------------------------------------------------------------------------

    def seats(self, shape: Shape) -> Ints:
        """Per slot, how many more pods of the shape fit: exact if it is independent, else an upper bound."""
        return self.feasibility(shape).seats()

    def feasible(self, shape: Shape) -> Bools:
        """Per slot, whether one more pod of the shape passes all filters now."""
        return self.feasibility(shape).feasible()

    def score(self, shape: Shape, slots: Ints | Sequence[int]) -> Ints:
        """The weighted scores of slots that are all feasible, normalized among these."""
        return self.feasibility(shape).totals(np.asarray(slots, dtype=np.int64))

    def best(self, shape: Shape, mask: Bools | None = None) -> int:
        """The feasible slot with the highest score, ties by rank; -1 if there is none."""
        return _best(self.feasibility(shape), mask)

    def place_many(self, shape: Shape, count: int, mask: Bools | None = None) -> list[int]:
        """Repeat `best` and `place` up to `count` times while a node is feasible; returns the slots in order."""
        placed: list[int] = []
        while len(placed) < count:
            feasibility = self.feasibility(shape)
            found = next_nodes(feasibility, count - len(placed), mask)
            if found is None:
                slot = _best(feasibility, mask)
                found = [slot] if slot >= 0 else []
            if not found:
                break
            self._place_all(shape, found)
            placed += found
        return placed

    def _place_all(self, shape: Shape, placed: list[int]) -> None:
        if len(placed) == 1 or shape.footprint.needs is not None:
            for slot in placed:
                self.place(shape, slot)
            return
        slots, counts = _counted(placed)
        self._journal.append(_BulkStep(shape.footprint, slots, counts, self._promised(shape.footprint)))
        self.cluster.add_usage_many(shape.footprint, slots, counts)

    def independent(self, shape: Shape) -> bool:
        """Whether only the node itself decides if one more pod of the shape fits there."""
        return self.feasibility(shape).independent

    def countable(self, shape: Shape) -> bool:
        """Whether `seats` is exact: independent shapes, and those with devices that only their node can use."""
        return self.feasibility(shape).countable

    def device_rows(self, shapes: Sequence[Shape]) -> DeviceRows | None:
        """Devices as amounts for these shapes together; None if counting does not decide about them."""
        cluster = self.cluster
        needs = [shape.footprint.needs for shape in shapes]
        slots: list[int] = np.flatnonzero(cluster.alive).tolist() if any(needs) else []
        return device_rows(cluster.devices, needs, slots, cluster.size)

    def counts_on_devices_beyond_nodes(self, shapes: Iterable[Shape]) -> bool:
        """Whether pods of these shapes choose among devices of several nodes: no search tries every choice."""
        devices = self.cluster.devices
        return any(not devices.is_local(shape.footprint.needs) for shape in shapes if shape.footprint.needs is not None)

    def device_search_gave_up(self, shapes: Iterable[Shape]) -> bool:
        """Whether a search for devices of these shapes ended before it could tell, so that nothing is proven."""
        room = self.cluster.device_room
        return any(room.gave_up(shape.footprint.needs) for shape in shapes if shape.footprint.needs is not None)

    def diagnose(self, shape: Shape, mask: Bools | None = None) -> Diagnosis:
        """Why the nodes (of the mask) are not feasible for the shape, each under the first plugin that rejects it."""
        return diagnose(shape, self.cluster, mask)


def _counted(slots: Iterable[int]) -> tuple[Ints, Ints]:
    """Distinct slots, and how often each occurs."""
    found = Counter(slots)
    return np.array(list(found), dtype=np.int64), np.array(list(found.values()), dtype=np.int64)


def _best(feasibility: Feasibility, mask: Bools | None) -> int:
    if not len(feasibility.ok):
        return -1
    if feasibility.cached_keys_decide and (mask is None or not feasibility.scores_depend_on_feasible_set):
        key = feasibility.key if mask is None else np.where(mask, feasibility.key, -1)
    else:
        ok = feasibility.feasible(mask)
        if feasibility.pods_scores or feasibility.scores_depend_on_feasible_set:
            if ok.all():
                # All slots: a slice avoids copies of the arrays.
                everywhere = slice(0, len(ok))
                return int(((feasibility.totals(everywhere) << RANK_BITS) | feasibility.cluster.rank).argmax())
            slots = np.flatnonzero(ok)
            if not len(slots):
                return -1
            keys = (feasibility.totals(slots) << RANK_BITS) | feasibility.cluster.rank[slots]
            return int(slots[keys.argmax()])
        key = np.where(ok, feasibility.key, -1)
    slot = int(key.argmax())
    return slot if key[slot] >= 0 else -1
