"""Whether a node has the devices that pods need, and for how many of them.

Nodes whose devices are equal and on which the same pods are tried give the same answer, so it is worked out once. All
pods on a node choose their devices together: a number of them fits if some choice for all exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from muster.scheduler.cache.device_claims import Needs
from muster.scheduler.cache.devices import Devices, NodeSteps
from muster.scheduler.devices.allocator import NO_SOLUTION, Allocated, NotAllocated, SelectorError, allocate
from muster.scheduler.devices.claim_request import ClaimRequest, Selector
from muster.scheduler.devices.device import DeviceId
from muster.scheduler.devices.usage import DeviceUsage

OUT_OF_REACH = "resourceclaim not available on the node"

_MOST_ANSWERS = 100_000
_NO_USAGE = DeviceUsage()
_UNLIMITED = 2**40


class _Answer:
    """How many pods are known to fit, whether no more do, and whether a search ended before it could tell."""

    __slots__ = ("count", "full", "gave_up")

    def __init__(self) -> None:
        self.count = 0
        self.full = False
        self.gave_up = False


class DeviceRoom:
    """Questions about the devices of nodes, with the answers that still hold."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._numbers: dict[tuple[ClaimRequest, ...], int] = {}
        self._answers: dict[tuple[int, int, tuple[int, ...]], _Answer] = {}
        self._generation = 0

    def fits(self, needs: Needs, slot: int, count: int = 1) -> bool:
        """Whether so many more pods find their devices on a node, together with those that are tried there."""
        return self.most(needs, slot, count) >= count

    def most(self, needs: Needs, slot: int, limit: int) -> int:
        """How many more pods find their devices on a node, at most `limit`."""
        return self.most_each(needs, (slot,), limit)[0]

    def most_each(self, needs: Needs, slots: Iterable[int], limit: int) -> list[int]:
        """`most` for many nodes."""
        devices = self._devices
        if needs.fault:
            return [0 for _ in slots]
        shared = [devices.claims.request(key) for key in devices.open_keys(needs)]
        number = self._number((*shared, *needs.own))
        tried = {slot: tuple(self._number(each.own) for each in devices.tried(slot)) for slot in devices.tried_slots()}
        found: list[int] = []
        for slot in slots:
            if needs.claims and not devices.in_reach(needs, slot):
                found.append(0)
            elif not shared and not needs.own:
                found.append(limit)
            else:
                key = (number, devices.signature(slot), tried.get(slot, ()))
                answer = self._answers.get(key) or self._answer(key)
                if answer.count < limit and not answer.full:
                    self._count(answer, shared, needs, slot, limit)
                found.append(min(answer.count, limit))
        return found

    def gave_up(self, needs: Needs) -> bool:
        """Whether a search for these devices ended before it could tell, so that more may fit than was found."""
        shared = [self._devices.claims.request(key) for key in self._devices.open_keys(needs)]
        number = self._numbers.get((*shared, *needs.own))
        return any(answer.gave_up for key, answer in self._answers.items() if key[0] == number)

    def refusal(self, needs: Needs, slot: int) -> NotAllocated:
        """Why one more pod does not find its devices on a node; `claim` counts its open claims, then its own."""
        devices = self._devices
        if not devices.in_reach(needs, slot):
            return NotAllocated(OUT_OF_REACH)
        shared = [devices.claims.request(key) for key in devices.open_keys(needs)]
        before = self._before(slot)
        found = self._solve([*before, *shared, *needs.own], slot)
        if isinstance(found, Allocated):
            return NotAllocated(NO_SOLUTION)
        return replace(found, claim=found.claim - len(before))

    def fits_unused(self, needs: Needs, slot: int) -> bool:
        """Whether a pod would find its devices on a node if no device were in use."""
        devices = self._devices
        requests = [*(devices.claims.request(key) for key in devices.open_keys(needs)), *needs.own]
        pools = devices.nodes.pools(slot)
        return isinstance(allocate(requests, pools, _NO_USAGE, devices.matches, NodeSteps()), Allocated)

    def selects(self, expression: str, device: DeviceId) -> bool:
        """Whether a device that is published matches an expression."""
        known = self._devices.pools.device(device)
        try:
            return known is not None and self._devices.matches(Selector(expression, "", 0), known)
        except SelectorError:
            return False

    # --- answers -----------------------------------------------------------------------------------

    def _number(self, requests: tuple[ClaimRequest, ...]) -> int:
        if len(self._numbers) >= _MOST_ANSWERS:
            self._numbers.clear()
            self._answers.clear()
        return self._numbers.setdefault(requests, len(self._numbers))

    def _answer(self, key: tuple[int, int, tuple[int, ...]]) -> _Answer:
        if len(self._answers) >= _MOST_ANSWERS or self._generation != self._devices.nodes.generation:
            self._answers.clear()
            self._generation = self._devices.nodes.generation
        found = self._answers[key] = _Answer()
        return found

    def _count(self, answer: _Answer, shared: list[ClaimRequest], needs: Needs, slot: int, limit: int) -> None:
        """Find more that fit, one by one, up to a limit."""
        before = self._before(slot)
        while answer.count < limit and not answer.full:
            found = self._solve([*before, *shared, *needs.own * (answer.count + 1)], slot)
            if isinstance(found, Allocated):
                answer.count = answer.count + 1 if needs.own else _UNLIMITED
            else:
                answer.full = True
                answer.gave_up = not found.decided

    def _before(self, slot: int) -> list[ClaimRequest]:
        return [request for each in self._devices.tried(slot) for request in each.own]

    def _solve(self, requests: Sequence[ClaimRequest], slot: int) -> Allocated | NotAllocated:
        """Devices for these requests, where none of the pods that are tried on the node have theirs yet."""
        devices = self._devices
        with devices.without_tried(slot):
            return allocate(requests, devices.nodes.pools(slot), devices.usage, devices.matches, NodeSteps())
