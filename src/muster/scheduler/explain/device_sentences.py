"""Devices in an explanation: how many match what a pod asks for, who has them, and which pools cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from muster.scheduler.cache.device_claims import ClaimKey, Needs
from muster.scheduler.devices.allocator import SelectorError, tolerates_all
from muster.scheduler.devices.claim_request import Alternative, ClaimRequest
from muster.scheduler.devices.device import Device, DeviceId
from muster.scheduler.explain.sentences import few
from muster.scheduler.groups.group import entity_key
from muster.scheduler.placement.request import GroupRequest, shapes_of
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.messages import count_text, kind_word

MOST_SENTENCES = 6
_SHOWN = 160  # characters of an expression


def device_sentences(state: SchedulerState, request: GroupRequest) -> tuple[str, ...]:
    """A sentence for each different request of devices, and one for pools that cannot be used."""
    needs = [shape.footprint.needs for shape in shapes_of(request).values() if shape.footprint.needs is not None]
    if not needs:
        return ()
    survey = _Survey(state)
    ways = dict.fromkeys(way for each in needs for claim in _claims(state, each) for way in claim.ways)
    found = [survey.sentence(way) for way in ways][:MOST_SENTENCES]
    pools = sorted(survey.faults.items())
    if pools:
        found.append(f"cannot be used: {few([f'the pool {name} ({why})' for name, why in pools])}")
    return tuple(found)


def _claims(state: SchedulerState, needs: Needs) -> Iterable[ClaimRequest]:
    devices = state.cluster.devices
    return (*needs.own, *(devices.claims.request(key) for key in devices.open_keys(needs)))


@dataclass(slots=True)
class _Count:
    """What one request finds in the cluster."""

    nodes_without: int = 0
    free: int = 0
    tainted: int = 0
    taken: dict[str, int] = field(default_factory=dict[str, int])  # by who has them
    error: str = ""


class _Survey:
    """All devices of all nodes, each counted once."""

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self._devices = state.cluster.devices
        self.faults: dict[str, str] = {}
        self._slots: list[int] = state.cluster.alive.nonzero()[0].tolist()

    def sentence(self, way: Alternative) -> str:
        count = self._count(way)
        asked = f"request {way.name} (class {way.device_class})"
        if count.error:
            return f"{asked}: {count.error}"
        parts: list[str] = []
        total = count.free + count.tainted + sum(count.taken.values())
        if count.nodes_without:
            nodes = f"{count.nodes_without} of {count_text(len(self._slots), 'node')}"
            parts.append(f"no device matches{_expressions(way)} on {nodes}")
        if total:
            parts.append(f"{count_text(total, 'device')} {_verb(total, 'match')}, {count.free} of them free")
        if count.taken:
            order = sorted(count.taken.items(), key=lambda item: (-item[1], item[0]))
            parts.append(f"taken by {few([f'{who} ({number})' for who, number in order])}")
        if count.tainted:
            parts.append(f"{count.tainted} with taints that it does not tolerate")
        return f"{asked}: {'; '.join(parts)}"

    def _count(self, way: Alternative) -> _Count:
        count, seen = _Count(), set[DeviceId]()
        for slot in self._slots:
            matching = False
            for device in self._usable(slot):
                try:
                    fits = all(self._devices.matches(selector, device) for selector in way.selectors)
                except SelectorError as error:
                    count.error = str(error)
                    return count
                matching = matching or fits
                if fits and device.id not in seen:
                    seen.add(device.id)
                    self._add(count, way, device)
            count.nodes_without += not matching
        return count

    def _usable(self, slot: int) -> Iterator[Device]:
        for pool in self._devices.nodes.pools(slot):
            if pool.fault:
                self.faults[pool.name] = f"{pool.fault.removeprefix('is currently ')}: {pool.detail}"
            else:
                yield from pool.devices

    def _add(self, count: _Count, way: Alternative, device: Device) -> None:
        if self._devices.usage.taken(device.id):
            who = self._holder(device.id)
            count.taken[who] = count.taken.get(who, 0) + 1
        elif not tolerates_all(way.tolerations, device.taints):
            count.tainted += 1
        else:
            count.free += 1

    def _holder(self, device: DeviceId) -> str:
        """Who has a device: the entity of a pod that uses the claim, or the claim."""
        claims = self._devices.claims
        promised = (
            key
            for key, promise in self._devices.promised.items()
            if any(pick.device.id == device for pick in promise.picks)
        )
        for key in (*sorted(claims.holders.get(device, ())), *promised):
            return self._user(key) or f"claim {key[0]}/{key[1]}"
        return "a claim that is gone"

    def _user(self, key: ClaimKey) -> str:
        members = self._state.forest.members
        for uid in sorted(self._devices.claims.users.get(key, ())):
            if uid in members:
                entity = entity_key(members[uid])
                return f"{kind_word(entity.kind)} {entity.namespace}/{entity.name}"
        return ""


def _expressions(way: Alternative) -> str:
    """The expressions of the request itself, or else those of the class."""
    own = [selector for selector in way.selectors if not selector.device_class] or list(way.selectors)
    text = " and ".join(f"`{' '.join(selector.expression.split())}`" for selector in own)
    return f" {text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}" if text else ""


def _verb(count: int, verb: str) -> str:
    return f"{verb}es" if count == 1 else verb
