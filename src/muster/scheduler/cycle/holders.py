"""The running pods that hold room and may leave, as columns: where they are, since when, and until when if it is known.

Pods of DaemonSets and the own pods of the entity that waits are taken to stay. With tens of thousands of pods the times
are not worked out in one cycle: `learn_times` does some of them, and says whether all are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.groups.group import Member
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.scheduler_state import SchedulerState, owner_of

MOST_LEARNED = 3_000  # pods whose times are worked out in one cycle: about 20 ms

Floats = npt.NDArray[np.float64]


class Holder(NamedTuple):
    """A running pod that will leave, when it started, and when it ends if that is known."""

    uid: str
    slot: int
    started: float
    end: float | None


class Holders:
    """Columns over pods; a pod has a number, its index in all of them. An end that is not known is infinity."""

    def __init__(self, uids: list[str], slot: Ints, started: Floats, end: Floats) -> None:
        self.uids = uids
        self.slot = slot
        self.started = started
        self.end = end

    def uids_of(self, numbers: Ints) -> list[str]:
        wanted: list[int] = numbers.tolist()
        return [self.uids[number] for number in wanted]

    def of(self, numbers: Sequence[int]) -> list[Holder]:
        """Some of the pods as values."""
        ends = [float(self.end[number]) for number in numbers]
        return [
            Holder(
                self.uids[number], int(self.slot[number]), float(self.started[number]), end if end < math.inf else None
            )
            for number, end in zip(numbers, ends, strict=True)
        ]

    def with_known_end(self) -> Holders:
        known = np.flatnonzero(self.end < math.inf)
        return Holders(self.uids_of(known), self.slot[known], self.started[known], self.end[known])


def holders_for(state: SchedulerState, key: EntityKey, now: float) -> Holders:
    """The pods that may leave for an entity."""
    members, times_of = state.forest.members, state.run_times.of
    group = state.forest.groups.get(key)
    own = {uid for leaf in group.leaves() for uid in leaf.running} if group is not None else set[str]()
    uids: list[str] = []
    slots: list[int] = []
    starts: list[float] = []
    ends: list[float] = []
    for uid, entry in state.cluster.pods.items():
        member = members.get(uid)
        if member is None or entry.slot < 0 or uid in own:
            continue
        times = times_of(member.pod, now)
        if times.stays:
            continue
        end = times.end
        if end is None or not (now < times.overstays_from and (times.leaving or _is_believed(state, member))):
            end = math.inf
        uids.append(uid)
        slots.append(entry.slot)
        starts.append(times.started)
        ends.append(end)
    return Holders(uids, np.array(slots, dtype=np.int64), np.array(starts, dtype=np.float64), np.array(ends))


def _is_believed(state: SchedulerState, member: Member) -> bool:
    return not state.reservations.distrusts or state.reservations.believes(owner_of(member))


def learn_times(state: SchedulerState, now: float) -> bool:
    """Work out the times of pods that are not known yet, so many a cycle; whether that was all of them."""
    run_times, left = state.run_times, MOST_LEARNED
    for entry in state.cluster.pods.values():
        if run_times.learn(entry.pod, now):
            left -= 1
            if left == 0:
                return False
    return True
