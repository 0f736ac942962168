"""Claims that several pods of a request use and that still lack devices: each set of nodes that could use one is tried.

Once a claim is given devices, the nodes of its pods are fixed, and everything else is planned as always. The first
choice with which the request can be placed stays; if none does, and nothing was left out, there is no placement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from muster.scheduler.cache.arrays import Bools
from muster.scheduler.cache.device_claims import ClaimKey
from muster.scheduler.cache.device_options import ClaimOptions
from muster.scheduler.cache.devices import Promise
from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.budget import Budget
from muster.scheduler.planning.partial_placement import PartialPlacement

STEPS_PER_CHOICE = 8  # beside what the planning for it takes

MOST_NODES_TRIED = 256


class SharedClaims:
    """The open claims of a request. `complete` is False once anything was left out; `tried` counts choices."""

    def __init__(self, placement: PartialPlacement, budget: Budget, shapes: Iterable[Shape], need: int) -> None:
        self.placement = placement
        self.budget = budget
        self.complete = True
        self.tried = 0
        self.need = need  # pods that must be placed
        self._shapes = [shape for shape in shapes if shape.footprint.needs is not None]
        self._devices = placement.cluster.devices
        found: dict[ClaimKey, None] = {}
        for shape in self._shapes:
            assert shape.footprint.needs is not None
            found.update(dict.fromkeys(self._devices.open_keys(shape.footprint.needs)))
        self._keys = list(found)
        self._contested = False

    def __bool__(self) -> bool:
        return bool(self._keys)

    def place(self, place_rest: Callable[[], bool]) -> bool:
        """Give the claims devices so that the rest can be placed; if that is impossible, leave everything as it was."""
        self._contested = self._rivals()
        if self._contested:
            self.complete = False  # which of several equal devices a claim takes may matter to others
        return self._choose(self._keys, place_rest) or (not self.tried and place_rest())

    def _choose(self, keys: list[ClaimKey], place_rest: Callable[[], bool]) -> bool:
        if not keys:
            self.tried += 1
            return place_rest()
        placement = self.placement
        for promise in self._options(keys[0]):
            if not self.budget.spend(STEPS_PER_CHOICE):
                self.complete = False
                return False
            mark = placement.mark()
            placement.trial.hold(keys[0], promise)
            if self._choose(keys[1:], place_rest):
                return True
            placement.undo(mark)
        return False

    def _options(self, key: ClaimKey) -> Iterator[Promise]:
        cluster = self.placement.cluster
        slots: list[int] = np.flatnonzero(cluster.alive).tolist()
        options = ClaimOptions(self._devices, key, slots, cluster.size)
        seats = self._seats(key)
        covered = np.zeros(cluster.size, dtype=np.bool_)
        found = list(options.wide())
        # Sets with room for the minimum first; of these the smallest, so that large ones stay for large gangs.
        found.sort(key=lambda option: int(seats[option[0]].sum()) < self.need)
        for reached, promise in found:
            covered |= reached
            yield promise
        alone = self._alone(seats, covered)
        self.complete = self.complete and options.complete and len(alone) <= MOST_NODES_TRIED
        for slot in alone[:MOST_NODES_TRIED]:
            yield from options.on(slot, each_kind=self._contested)
            self.complete = self.complete and options.complete

    def _alone(self, seats: np.ndarray, covered: Bools) -> list[int]:
        """Nodes where at least one pod finds its devices, those with the most room first."""
        rank = self.placement.cluster.rank
        usable = np.flatnonzero(seats > 0)
        order = usable[np.lexsort((-rank[usable], covered[usable], -seats[usable]))]
        return order.tolist()

    def _seats(self, key: ClaimKey) -> np.ndarray:
        """Per node, how many pods with the claim it could take."""
        total = np.zeros(self.placement.cluster.size, dtype=np.int64)
        for shape in self._users(key):
            total += self.placement.trial.seats(shape)
        return total

    def _users(self, key: ClaimKey) -> list[Shape]:
        return [shape for shape in self._shapes if shape.footprint.needs and key in shape.footprint.needs.claims]

    def _rivals(self) -> bool:
        """Whether other claims of the request can want the same kinds of devices."""
        kinds = self._devices.kinds
        claims = [self._devices.claims.request(key) for key in self._keys]
        own = {claim for shape in self._shapes if shape.footprint.needs for claim in shape.footprint.needs.own}
        nothing = frozenset[int]()
        sets = [nothing.union(*(kinds.of(way) or nothing for way in claim.ways)) for claim in (*claims, *own)]
        return any(
            not sets[at].isdisjoint(other) for at in range(len(claims)) for other in (*sets[:at], *sets[at + 1 :])
        )
