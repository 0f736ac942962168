"""The search for devices: all claims of a pod together, on one node, complete within a budget of steps.

Depth first, in an order that users can rely on: claims and requests as they are written, alternatives by preference,
devices in the order of their pools. The first solution is taken. Within a request, and among claims that ask for the
same, only combinations are tried, not permutations, and where a device led nowhere its twins are not tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol

from muster.api.devices import MOST_RESULTS, NO_EXECUTE, NO_SCHEDULE, DeviceTaint, DeviceToleration
from muster.scheduler.devices.capacity import consumed_by
from muster.scheduler.devices.claim_request import Alternative, ClaimRequest, Selector
from muster.scheduler.devices.device import Attribute, CounterKey, Device, DeviceId
from muster.scheduler.devices.pools import INVALID, Pool
from muster.scheduler.devices.usage import DeviceUsage

NO_SOLUTION = "cannot allocate all claims"
INVALID_POOLS = "invalid resource pools were encountered"

_NOTHING: Mapping[str, int] = {}

_Choice = Iterator["_Choice | None"]
"""What can follow a choice, one after the other; None when nothing is left to choose."""

Matches = Callable[[Selector, Device], bool]
"""Whether a device matches a selector; raises SelectorError where that cannot be evaluated."""


class SelectorError(Exception):
    """A selector could not be evaluated; the text says which, on which device, and why."""


class Steps(Protocol):
    """How much may still be searched."""

    def spend(self, steps: int = 1) -> bool:
        """False when the budget is exceeded."""
        ...


@dataclass(frozen=True, slots=True)
class Pick:
    """A device for a request. `consumed`: only a share of the device, this much of its capacities."""

    request: str
    device: Device
    alternative: Alternative
    consumed: Mapping[str, int] | None


@dataclass(frozen=True, slots=True)
class Allocated:
    """The devices of each claim, in the order of its requests."""

    claims: tuple[tuple[Pick, ...], ...]


@dataclass(frozen=True, slots=True)
class NotAllocated:
    """Why there are no devices. `decided`: no other search would find them; `error`: something must be mended first."""

    message: str
    decided: bool = True
    error: bool = False
    claim: int = -1  # the claim that an error is about, by its position


class _OutOfSteps(Exception):
    pass


class _Unallocatable(Exception):
    """A request for all devices that no choice can satisfy."""


def allocate(
    claims: Sequence[ClaimRequest], pools: Sequence[Pool], usage: DeviceUsage, matches: Matches, steps: Steps
) -> Allocated | NotAllocated:
    """Devices of these pools for all claims, none of them in use."""
    search = _Search(claims, pools, usage, matches, steps)
    try:
        if search.enough_devices() and search.solve():
            return Allocated(tuple(tuple(picks) for picks in search.picks))
    except _OutOfSteps:
        return NotAllocated(NO_SOLUTION, decided=False)
    except (SelectorError, _Unallocatable) as error:
        return NotAllocated(f"request {search.asking[1]}: {error}", error=True, claim=search.asking[0])
    if any(pool.fault == INVALID for pool in pools):
        return NotAllocated(INVALID_POOLS, error=True)
    return NotAllocated(NO_SOLUTION)


@dataclass(slots=True)
class _ConstraintState:
    """What the devices picked so far have of an attribute."""

    distinct: bool
    values: Counter[Attribute] = field(default_factory=lambda: Counter[Attribute]())

    def allows(self, value: Attribute) -> bool:
        if self.distinct:
            return not self.values[value]
        return not self.values or value in self.values

    def add(self, value: Attribute) -> None:
        self.values[value] += 1

    def remove(self, value: Attribute) -> None:
        self.values[value] -= 1
        if not self.values[value]:
            del self.values[value]


_Values = list[tuple[_ConstraintState, Attribute]]


class _Search:
    def __init__(
        self, claims: Sequence[ClaimRequest], pools: Sequence[Pool], usage: DeviceUsage, matches: Matches, steps: Steps
    ) -> None:
        self.claims = claims
        self.pools = pools
        self.usage = usage
        self.matches = matches
        self.steps = steps
        self.usable = [device for pool in pools if not pool.fault for device in pool.devices]
        self.limits: dict[CounterKey, int] = {}
        for pool in pools:
            self.limits.update(pool.counters)
        self.requests: list[tuple[int, tuple[Alternative, ...]]] = [
            (number, ways) for number, claim in enumerate(claims) for ways in claim.requests
        ]
        self.picks: list[list[Pick]] = [[] for _ in claims]
        self.constraints = [
            [(constraint, _ConstraintState(constraint.distinct)) for constraint in claim.constraints]
            for claim in claims
        ]
        self.whole: set[DeviceId] = set()  # taken by this search
        self.shares: Counter[DeviceId] = Counter()
        self.consumed: dict[DeviceId, Counter[str]] = {}
        self.counters: Counter[CounterKey] = Counter()
        self._undo: list[tuple[bool, _Values]] = []
        self.asking: tuple[int, str] = (-1, "")  # the claim and the request whose devices are looked at
        self._candidates: dict[Alternative, list[Device]] = {}
        # Claims that ask for the same may change places, so each takes what comes after what the one before it took.
        self._like = _last_equal(claims)
        sizes = (len(claim.requests) for claim in claims)
        self._first: list[int] = [0, *accumulate(sizes)]  # by claim, the position of its first request
        self._order: list[tuple[int, int]] = [(0, 0)] * len(claims)  # by claim: its first alternative and device
        self._consumptions: dict[tuple[int, tuple[tuple[str, int], ...]], Mapping[str, int] | None] = {}

    def enough_devices(self) -> bool:
        """A necessary condition that takes no search: a device of its own for each one that a request must have."""
        wanted: list[list[Device]] = []
        for claim, ways in self.requests:
            if any(way.takes_all or way.admin_access for way in ways):
                continue
            found = {device.id: device for way in ways for device in self._candidates_of(claim, way)}
            if not any(device.shareable for device in found.values()):
                free = [device for device in found.values() if not self._in_use(device.id)]
                wanted += [free] * min(way.count for way in ways)
        return can_be_told_apart(wanted)

    def solve(self) -> bool:
        """Depth first. Each choice is a generator of what can follow it, so that claims may be many."""
        choices = [self._request(0)]
        while choices:
            try:
                following = next(choices[-1])
            except StopIteration:
                choices.pop()
                continue
            if following is None:
                return True
            choices.append(following)
        return False

    def _request(self, position: int) -> _Choice:
        """Satisfy the request at this position and all after it."""
        if position == len(self.requests):
            yield None
            return
        claim, ways = self.requests[position]
        before = self._order[self._like[claim]] if self._like[claim] >= 0 and self._first[claim] == position else None
        for number, way in enumerate(ways):
            if before is not None and number < before[0]:
                continue
            start = before[1] if before is not None and number == before[0] else 0
            if self._first[claim] == position:
                self._order[claim] = (number, 0)
            if way.takes_all:
                yield self._take_all(position, claim, way)
            elif len(self.picks[claim]) + way.count <= MOST_RESULTS:
                yield self._pick(position, claim, way, self._candidates_of(claim, way), start, way.count)

    def _pick(
        self, position: int, claim: int, way: Alternative, candidates: list[Device], start: int, missing: int
    ) -> _Choice:
        """Pick the devices that a request still misses among the candidates from `start` on, and all that follows."""
        if not missing:
            yield self._request(position + 1)
            return
        first = self._first[claim] == position and missing == way.count
        led_nowhere: set[tuple[int, str]] = set()
        for index in range(start, len(candidates)):
            device = candidates[index]
            twin = (device.twin, device.id.pool if device.consumes else "")
            if twin in led_nowhere:
                continue
            if not self.steps.spend():
                raise _OutOfSteps
            if not self._available(claim, way, device):
                continue
            if self._take(claim, way, device):
                if first:
                    self._order[claim] = (self._order[claim][0], index)
                yield self._pick(position, claim, way, candidates, index + (not device.shareable), missing - 1)
                self._give_back(claim)
            if not device.shareable:
                led_nowhere.add(twin)

    def _take_all(self, position: int, claim: int, way: Alternative) -> _Choice:
        """Take every device that matches; each must be usable."""
        self.asking = (claim, way.name)
        for pool in self.pools:
            if pool.fault:
                raise _Unallocatable(f"asks for all devices, but resource pool {pool.name} {pool.fault}")
        devices = self._matching(way)
        if not devices or len(self.picks[claim]) + len(devices) > MOST_RESULTS:
            return
        if not self.steps.spend(len(devices)):
            raise _OutOfSteps
        taken = 0
        for device in devices:
            if not tolerates_all(way.tolerations, device.taints) or not self._available(claim, way, device):
                break
            if not self._take(claim, way, device):
                break
            taken += 1
        if taken == len(devices):
            yield self._request(position + 1)
        for _ in range(taken):
            self._give_back(claim)

    # --- one device --------------------------------------------------------------------------------

    def _matching(self, way: Alternative) -> list[Device]:
        """The devices that pass the selectors and could ever have the capacity, in use or not."""
        return [
            device
            for device in self.usable
            if all(self.matches(selector, device) for selector in way.selectors)
            and self._consumption(way, device) is not None
        ]

    def _candidates_of(self, claim: int, way: Alternative) -> list[Device]:
        found = self._candidates.get(way)
        if found is None:
            self.asking = (claim, way.name)
            found = [device for device in self._matching(way) if tolerates_all(way.tolerations, device.taints)]
            self._candidates[way] = found
        return found

    def _consumption(self, way: Alternative, device: Device) -> Mapping[str, int] | None:
        key = (device.content, way.capacity)
        if key not in self._consumptions:
            self._consumptions[key] = consumed_by(device, way.capacity)
        return self._consumptions[key]

    def _available(self, claim: int, way: Alternative, device: Device) -> bool:
        """Whether nobody else has the device, or what a share needs of it.

        Access for administration needs neither, but a claim has the device only once then.
        """
        key = device.id
        mine = (pick for pick in self.picks[claim] if pick.device.id == key)
        if any(way.admin_access or pick.alternative.admin_access for pick in mine):
            return False
        if way.admin_access:
            return True
        if key in self.whole or self.usage.taken(key):
            return False
        if not device.shareable:
            return not self.usage.shared(key)
        before, here = self.usage.consumed(key), self.consumed.get(key, _NOTHING)
        return all(
            before.get(name, 0) + here.get(name, 0) + amount <= device.capacity[name].amount
            for name, amount in (self._consumption(way, device) or {}).items()
        )

    def _take(self, claim: int, way: Alternative, device: Device) -> bool:
        """Pick a device that is available, if counters and constraints allow it."""
        values = self._constrained(claim, way, device)
        charged = not way.admin_access and not self._in_use(device.id)
        if values is None or (charged and not self._counters_left(device)):
            return False
        consumed = self._consumption(way, device) if device.shareable and not way.admin_access else None
        if charged:
            for counter, amount in device.consumes:
                self.counters[counter] += amount
        for state, value in values:
            state.add(value)
        if consumed is not None:
            self.shares[device.id] += 1
            self.consumed.setdefault(device.id, Counter()).update(consumed)
        elif not way.admin_access:
            self.whole.add(device.id)
        self.picks[claim].append(Pick(way.name, device, way, consumed))
        self._undo.append((charged, values))
        return True

    def _give_back(self, claim: int) -> None:
        """Undo the last pick, which is of this claim."""
        pick = self.picks[claim].pop()
        charged, values = self._undo.pop()
        device = pick.device
        if pick.consumed is not None:
            self.shares[device.id] -= 1
            self.consumed[device.id].subtract(pick.consumed)
        elif not pick.alternative.admin_access:
            self.whole.remove(device.id)
        for state, value in values:
            state.remove(value)
        if charged:
            for counter, amount in device.consumes:
                self.counters[counter] -= amount

    def _in_use(self, device: DeviceId) -> bool:
        """Whether its counters are charged already."""
        usage = self.usage
        return device in self.whole or self.shares[device] > 0 or usage.taken(device) or usage.shared(device)

    def _counters_left(self, device: Device) -> bool:
        return all(
            self.counters[counter] + amount <= self.limits[counter] - self.usage.counted(counter)
            for counter, amount in device.consumes
        )

    def _constrained(self, claim: int, way: Alternative, device: Device) -> _Values | None:
        """The device's values for the constraints that cover the request; None if one does not allow it."""
        values: _Values = []
        for constraint, state in self.constraints[claim]:
            if constraint.covers(way.name):
                value = device.attributes.get(constraint.attribute)
                if value is None or not state.allows(value):
                    return None
                values.append((state, value))
        return values


def _last_equal(claims: Sequence[ClaimRequest]) -> list[int]:
    """For each claim, the last one before it that asks for the same; -1 if there is none."""
    last: dict[ClaimRequest, int] = {}
    found: list[int] = []
    for number, claim in enumerate(claims):
        found.append(last.get(claim, -1))
        last[claim] = number
    return found


def can_be_told_apart(wanted: Sequence[Sequence[Device]]) -> bool:
    """Whether each can have another device of its list (a bipartite matching by augmenting paths)."""
    holder: dict[DeviceId, int] = {}
    for number in range(len(wanted)):
        came_from: dict[DeviceId, int] = {}
        waiting = [number]
        free: DeviceId | None = None
        while waiting and free is None:
            asking = waiting.pop()
            for device in wanted[asking]:
                if device.id in came_from:
                    continue
                came_from[device.id] = asking
                if device.id not in holder:
                    free = device.id
                    break
                waiting.append(holder[device.id])
        if free is None:
            return False
        taken = {asking: device for device, asking in holder.items()}
        at: DeviceId | None = free
        while at is not None:
            asking = came_from[at]
            holder[at] = asking
            at = taken.get(asking)
    return True


def tolerates_all(tolerations: Sequence[DeviceToleration], taints: Sequence[DeviceTaint]) -> bool:
    """Whether a request with these tolerations may get a device with these taints."""
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE)
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value
