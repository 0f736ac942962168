"""Devices as amounts: rows by which pods of different shapes can be counted against nodes together.

Where every request is for so many whole devices of some kinds, a set of requests can be satisfied exactly if, for every
union of these sets of kinds, the devices of the union are enough for the requests that can have no others (Hall's
theorem). Each union is then a row like cpu: what the node has of it, and what one pod of a shape takes of it. A shape
whose kinds no other shape can have needs no row: how many of it fit is known already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cache.device_claims import Needs
from muster.scheduler.cache.device_kinds import Kinds
from muster.scheduler.cache.devices import Devices
from muster.scheduler.devices.claim_request import ClaimRequest

MOST_SETS = 4  # different sets of kinds that compete; their unions are the rows


@dataclass(frozen=True, slots=True)
class DeviceRows:
    """What one pod of each shape takes of each row, and what each node has of it."""

    requests: Ints  # [shape, row]
    free: Ints  # [row, node]


def device_rows(devices: Devices, needs: Sequence[Needs | None], slots: Sequence[int], size: int) -> DeviceRows | None:
    """Rows for shapes with these needs on these slots of `size`; None if counting does not decide about them."""
    before = [each for slot in devices.tried_slots() for each in devices.tried(slot)]
    claims = {each.own: _Demand(devices, each.own) for each in (*needs, *before) if each is not None and each.own}
    competing = _competing(list(claims.values()))
    if not competing:
        return DeviceRows(np.zeros((len(needs), 0), dtype=np.int64), np.zeros((0, size), dtype=np.int64))
    sets = {kinds for demand in competing for kinds in demand.counts}
    if not all(demand.plain for demand in competing) or len(sets) > MOST_SETS:
        return None
    unions = _unions(sets)
    requests = np.zeros((len(needs), len(unions)), dtype=np.int64)
    for at, each in enumerate(needs):
        if each is not None and each.own and claims[each.own] in competing:
            requests[at] = claims[each.own].within(unions)
    free = np.zeros((len(unions), size), dtype=np.int64)
    known: dict[int, list[int]] = {}
    for slot in slots:
        number = devices.signature(slot)
        if number not in known:
            known[number] = _free(devices, slot, unions)
        free[:, slot] = known[number]
    for slot in devices.tried_slots():
        for each in devices.tried(slot):
            if each.own and claims[each.own] in competing:
                free[:, slot] -= claims[each.own].within(unions)
    return DeviceRows(requests, np.maximum(free, 0))


class _Demand:
    """What one pod takes: so many devices of each set of kinds. `plain`: that is all there is to it."""

    __slots__ = ("counters", "counts", "kinds", "plain")

    def __init__(self, devices: Devices, claims: Iterable[ClaimRequest]) -> None:
        self.counts: Counter[Kinds] = Counter()
        self.plain = True
        for claim in claims:
            self.plain = self.plain and not claim.constraints and all(len(ways) == 1 for ways in claim.requests)
            for way in claim.ways:
                kinds = devices.kinds.of(way)
                self.plain = (
                    self.plain and kinds is not None and not (way.takes_all or way.admin_access or way.capacity)
                )
                self.counts[kinds or frozenset()] += way.count
        self.kinds: Kinds = frozenset(kind for kinds in self.counts for kind in kinds)
        self.plain = self.plain and devices.kinds.are_plain(self.kinds)
        self.counters = devices.kinds.consume_counters(self.kinds)

    def within(self, unions: Sequence[Kinds]) -> list[int]:
        """How many devices it takes that can only be of each of these sets."""
        return [sum(count for kinds, count in self.counts.items() if kinds <= union) for union in unions]


def _competing(demands: list[_Demand]) -> list[_Demand]:
    """Those that can want the same devices, or the same counters, as others."""
    return [
        one
        for one in demands
        if any(
            other is not one and (not one.kinds.isdisjoint(other.kinds) or (one.counters and other.counters))
            for other in demands
        )
    ]


def _unions(sets: Iterable[Kinds]) -> list[Kinds]:
    """All unions of some of the sets, each once."""
    ordered = sorted(sets, key=sorted)
    found = (
        frozenset[int]().union(*some) for size in range(1, len(ordered) + 1) for some in combinations(ordered, size)
    )
    return list(dict.fromkeys(found))


def _free(devices: Devices, slot: int, unions: Sequence[Kinds]) -> list[int]:
    """How many devices of each set a node has that nobody uses, whatever is tried there."""
    with devices.without_tried(slot):
        kinds = Counter(
            device.twin
            for pool in devices.nodes.pools(slot)
            if not pool.fault
            for device in pool.devices
            if not devices.usage.taken(device.id) and not devices.usage.shared(device.id)
        )
    return [sum(count for kind, count in kinds.items() if kind in union) for union in unions]
