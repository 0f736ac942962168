"""Devices: which of them are in use or counted on, and whether a node has those that a pod needs.

A claim with `status.allocation` has its devices. A claim of an assumed pod has devices promised to it, from the time of
the decision until the claim shows them. In a trial, pods tried on a node count on devices there. Those of all pods on
trial on one node are chosen together, so that a pod fits if some choice for all of them exists.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from muster.api import quantity, selectors
from muster.api.devices import AllocatedDevice, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from muster.api.types import Node, Pod
from muster.scheduler.cache.device_claims import ClaimKey, DeviceClaims, Needs, claim_keys
from muster.scheduler.cache.device_kinds import DeviceKinds
from muster.scheduler.cache.node_columns import NodeColumns
from muster.scheduler.cache.node_devices import NodeDevices
from muster.scheduler.devices.allocator import (
    Allocated,
    Matches,
    NotAllocated,
    Pick,
    allocate,
)
from muster.scheduler.devices.device import DeviceId
from muster.scheduler.devices.pools import Pool, Pools
from muster.scheduler.devices.usage import DeviceUsage

DeviceObject = ResourceSlice | ResourceClaim | DeviceClass | DeviceTaintRule
Picks = tuple[Pick, ...]

STEPS_PER_NODE = 2_000
"""How long devices are searched on one node; after that they count as not found, and nothing is proven."""


@dataclass(slots=True)
class NodeSteps:
    """The steps of a search for devices on one node."""

    left: int = STEPS_PER_NODE

    def spend(self, steps: int = 1) -> bool:
        self.left -= steps
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class Promise:
    """Devices for a claim, chosen for a node, and how many pods count on them."""

    picks: Picks
    node: str
    users: int

    def reaches(self, node: Node) -> bool:
        meta = node.metadata
        if any(pick.device.binds_to_node for pick in self.picks) and meta.name != self.node:
            return False
        return all(pick.device.reach.includes(meta.name, meta.labels) for pick in self.picks)


@dataclass(slots=True)
class _Tried:
    """Pods tried on one slot, in order, and the devices of their own claims (None: none were left)."""

    needs: list[Needs] = field(default_factory=list[Needs])
    picks: list[tuple[Picks, ...] | None] = field(default_factory=list["tuple[Picks, ...] | None"])


class TrialState(NamedTuple):
    """What is tried on a slot, and what is promised, for `restore`."""

    slot: int
    tried: tuple[tuple[Needs, tuple[Picks, ...] | None], ...]
    promised: dict[ClaimKey, Promise] | None


class Devices:
    """Slices, claims and classes of the cluster, the devices in use, and what is tried on each node."""

    def __init__(self, columns: NodeColumns, matches: Matches) -> None:
        self._columns = columns
        self.matches = matches
        self.pools = Pools()
        self.claims = DeviceClaims()
        self.usage = DeviceUsage()
        self.nodes = NodeDevices(columns, self.pools, self.usage)
        self.kinds = DeviceKinds(self.pools, matches)
        self.promised: dict[ClaimKey, Promise] = {}
        self._tried: dict[int, _Tried] = {}
        self._evicted: dict[ClaimKey, int] = {}  # users of allocated claims that a trial has evicted
        self.version = 0  # counts changes that concern more than one node

    # --- objects -----------------------------------------------------------------------------------

    def set(self, obj: DeviceObject) -> set[int] | None:
        """Add or update an object. The slots that this can concern, or None for all."""
        match obj:
            case ResourceSlice():
                old = self.pools.remove_slice(obj.metadata.name)
                if old is not None and old.spec == obj.spec:
                    self.pools.set_slice(obj)
                    return set()
                self.pools.set_slice(obj)
                self._recount(old, obj)
                return self._forget_pools(old, obj)
            case DeviceTaintRule():
                return self._forget_pools() if self.pools.set_rule(obj) else set()
            case DeviceClass():
                return None if self.claims.put_class(obj.metadata.name, obj) else set()
            case ResourceClaim():
                return self._set_claim((obj.metadata.namespace, obj.metadata.name), obj)

    def remove(self, kind: str, namespace: str, name: str) -> set[int] | None:
        """Remove an object. The slots that this can concern, or None for all."""
        match kind:
            case "ResourceSlice":
                old = self.pools.remove_slice(name)
                self._recount(old)
                return self._forget_pools(old)
            case "DeviceTaintRule":
                return self._forget_pools() if self.pools.remove_rule(name) else set()
            case "DeviceClass":
                return None if self.claims.put_class(name, None) else set()
            case _:
                return self._set_claim((namespace, name), None)

    def _recount(self, *slices: ResourceSlice | None) -> None:
        """Devices in use take the counters that their slice names now."""
        for found in slices:
            spec = found.spec if found is not None else None
            for device in (spec.devices if spec is not None else None) or ():
                assert spec is not None
                key = DeviceId(spec.driver, spec.pool.name, device.name)
                self.usage.republished(key, self.pools.device(key))

    def _forget_pools(self, *slices: ResourceSlice | None) -> set[int] | None:
        """Read the pools of nodes again that use these slices (all nodes, without any)."""
        nodes = [found.spec.node_name for found in slices if found is not None]
        if slices and not nodes:
            return set()
        if not slices or not all(nodes):
            self.nodes.forget_all()
            return None
        slots = {self._columns.index[node] for node in nodes if node in self._columns.index}
        for slot in slots:
            self.nodes.forget(slot)
        return slots

    def _set_claim(self, key: ClaimKey, claim: ResourceClaim | None) -> set[int] | None:
        old = self.claims.put(key, claim)
        before, after = _results(old), _results(claim)
        if before == after:
            return set()
        promise = self.promised.pop(key, None)
        if promise is not None:
            self.use_picks(promise.picks, -1)
            if not after:
                # It was changed otherwise; what we are about to write still counts.
                self.promised[key] = promise
                self.use_picks(promise.picks, 1)
        self._use_results(before, -1)
        self._use_results(after, 1)
        return self._slots_of(DeviceId(found.driver, found.pool, found.device) for found in (*before, *after))

    def _slots_of(self, devices: Iterable[DeviceId]) -> set[int] | None:
        slots: set[int] = set()
        for device in devices:
            known = self.pools.device(device)
            if known is None or not self.pools.is_local(known):
                return None
            if (slot := self._columns.index.get(known.reach.node_name)) is not None:
                slots.add(slot)
        return slots

    # --- usage -------------------------------------------------------------------------------------

    def _use_results(self, results: Sequence[AllocatedDevice], sign: int) -> None:
        for found in results:
            if found.admin_access:
                continue
            device = DeviceId(found.driver, found.pool, found.device)
            consumed = None
            if found.share_id is not None:
                amounts = found.consumed_capacity or {}
                consumed = {name: quantity.parse(amount).nanos for name, amount in amounts.items()}
            self._use(device, consumed, sign)

    def use_picks(self, picks: Picks, sign: int) -> None:
        for pick in picks:
            if not pick.alternative.admin_access:
                self._use(pick.device.id, pick.consumed, sign)

    def _use(self, device: DeviceId, consumed: Mapping[str, int] | None, sign: int) -> None:
        known, usage = self.pools.device(device), self.usage
        if known is None or not self.pools.is_local(known):
            self.version += 1
        self.nodes.used(known)
        if consumed is not None:
            (usage.take_share if sign > 0 else usage.release_share)(device, known, consumed)
        else:
            (usage.take if sign > 0 else usage.release)(device, known)

    # --- claims of pods ----------------------------------------------------------------------------

    def in_reach(self, needs: Needs, slot: int) -> bool:
        """Whether the node can use the devices of claims that have theirs."""
        return all(self._claim_in_reach(key, self.nodes.node(slot)) for key in needs.claims)

    def _claim_in_reach(self, key: ClaimKey, node: Node) -> bool:
        promise, claim = self.promised.get(key), self.claims.claims.get(key)
        if promise is not None:
            return promise.reaches(node)
        if claim is None:
            return False
        allocation = claim.status.allocation
        if allocation is None or allocation.node_selector is None:
            return True
        return selectors.node_matches(allocation.node_selector, node.metadata.name, node.metadata.labels)

    def open_keys(self, needs: Needs) -> list[ClaimKey]:
        """Claims that others use too and that have no devices yet."""
        claims = self.claims.claims
        return [
            key
            for key in needs.claims
            if key in claims and claims[key].status.allocation is None and key not in self.promised
        ]

    def is_local(self, needs: Needs) -> bool:
        """Whether only the node itself decides if one more pod finds its devices there."""
        return not self.open_keys(needs) and self.kinds.are_local(needs.own)

    def tried(self, slot: int) -> tuple[Needs, ...]:
        """What the pods need that are tried on a node."""
        tried = self._tried.get(slot)
        return tuple(tried.needs) if tried is not None else ()

    def tried_slots(self) -> list[int]:
        """The slots on which pods are tried."""
        return list(self._tried)

    @contextmanager
    def without_tried(self, slot: int) -> Generator[None]:
        """Within this, none of the pods that are tried on the node have their devices yet."""
        tried = self._tried.get(slot)
        chosen = [picks for each in (tried.picks if tried is not None else ()) for picks in each or ()]
        if not chosen:
            yield
            return
        with self.nodes.signature_kept(slot):
            for picks in chosen:
                self.use_picks(picks, -1)
        yield
        with self.nodes.signature_kept(slot):
            for picks in chosen:
                self.use_picks(picks, 1)

    def signature(self, slot: int) -> int:
        """The number of what the node has for claims, without what is tried there."""
        found = self.nodes.known_signature(slot)
        if found is None:
            with self.without_tried(slot):
                found = self.nodes.signature(slot)
        return found

    # --- trials ------------------------------------------------------------------------------------

    def try_on(self, needs: Needs, slot: int, count: int) -> None:
        """Try so many pods on a node (take them away, below 0), whether they find devices or not."""
        for _ in range(count):
            self._try_one(needs, slot)
        for _ in range(-count):
            self._take_away(needs, slot)

    def _try_one(self, needs: Needs, slot: int) -> None:
        for key in needs.claims:
            self._count_on(key, slot, 1, needs)
        tried = self._tried.setdefault(slot, _Tried())
        if all(self.is_local(each) for each in (needs, *tried.needs)):
            # Nobody elsewhere could take them: which devices it will be is chosen at the end.
            tried.needs.append(needs)
            tried.picks.append(())
            return
        with self.without_tried(slot):
            tried.needs.append(needs)
            requests = [request for each in tried.needs for request in each.own]
            found = allocate(requests, self.nodes.pools(slot), self.usage, self.matches, NodeSteps())
            if isinstance(found, NotAllocated):
                chosen = None
            else:
                chosen = iter(found.claims)
        self._replace(slot, tried, chosen)

    def _replace(self, slot: int, tried: _Tried, chosen: Iterator[Picks] | None) -> None:
        """Use the devices that were chosen for all pods tried on a node; without any, the last pod has none."""
        if chosen is None:
            tried.picks.append(None)
            return
        self._set_picks(slot, tried, [tuple(islice(chosen, len(each.own))) for each in tried.needs])

    def _set_picks(self, slot: int, tried: _Tried, picks: list[tuple[Picks, ...] | None]) -> None:
        with self.nodes.signature_kept(slot):
            for each in tried.picks:
                for chosen in each or ():
                    self.use_picks(chosen, -1)
            tried.picks = picks
            for each in picks:
                for chosen in each or ():
                    self.use_picks(chosen, 1)

    def _take_away(self, needs: Needs, slot: int) -> None:
        for key in needs.claims:
            self._count_on(key, slot, -1)
        tried = self._tried[slot]
        last = len(tried.needs) - 1 - tried.needs[::-1].index(needs)
        del tried.needs[last]
        self._set_picks(slot, tried, [*tried.picks[:last], *tried.picks[last + 1 :]])
        if not tried.needs:
            del self._tried[slot]

    def _count_on(self, key: ClaimKey, slot: int, users: int, needs: Needs | None = None) -> None:
        """Promise devices on a node to a claim that has none, or count on what is promised.

        Those are left that the pods tried there and one more with these needs want for themselves.
        """
        promise, claim = self.promised.get(key), self.claims.claims.get(key)
        if promise is not None:
            left = promise.users + users
            if left > 0:
                self.promised[key] = replace(promise, users=left)
            else:
                self.use_picks(promise.picks, -1)
                del self.promised[key]
                self.version += 1  # its other users may go elsewhere again
            return
        if users > 0 and claim is not None and claim.status.allocation is None:
            before = [*self.tried(slot), *((needs,) if needs is not None else ())]
            requests = [self.claims.request(key), *(request for each in before for request in each.own)]
            with self.without_tried(slot):
                found = allocate(requests, self.widest_first(slot), self.usage, self.matches, NodeSteps())
            if isinstance(found, Allocated):
                self.promised[key] = Promise(found.claims[0], self._columns.names[slot], users)
                self.use_picks(found.claims[0], 1)
                self.version += 1

    def evict(self, pod: Pod, sign: int) -> None:
        """Take away a pod that runs (give it back, above 0): devices of claims that then nobody uses are free."""
        for _, key in claim_keys(pod):
            claim = self.claims.claims.get(key) if key is not None else None
            if key is None or claim is None or claim.status.allocation is None:
                continue
            before = self._evicted.get(key, 0)
            self._evicted[key] = before - sign
            consumers = claim.status.reserved_for or ()
            last = len(consumers) if all(found.resource == "pods" for found in consumers) else -1
            if before == last or before - sign == last:
                self._use_results(_results(claim), sign)

    def trial_state(self, slot: int, *, promises: bool) -> TrialState:
        """What is tried on a node, and what is promised if that can change, for `restore`."""
        tried = self._tried.get(slot, _Tried())
        pairs = tuple(zip(tried.needs, tried.picks, strict=True))
        return TrialState(slot, pairs, dict(self.promised) if promises else None)

    def restore(self, state: TrialState) -> None:
        """Set what is tried on a node, and what is promised, to an earlier state."""
        if state.slot >= 0:
            tried = self._tried.setdefault(state.slot, _Tried())
            tried.needs = [needs for needs, _ in state.tried]
            self._set_picks(state.slot, tried, [picks for _, picks in state.tried])
            if not tried.needs:
                del self._tried[state.slot]
        if state.promised is not None:
            self._restore_promises(state.promised)

    def _restore_promises(self, before: dict[ClaimKey, Promise]) -> None:
        for key in self.promised.keys() | before.keys():
            now, then = self.promised.get(key), before.get(key)
            if (now.picks if now is not None else None) == (then.picks if then is not None else None):
                continue
            self.version += 1
            if now is not None:
                self.use_picks(now.picks, -1)
            if then is not None:
                self.use_picks(then.picks, 1)
        self.promised = dict(before)

    def hold(self, key: ClaimKey, promise: Promise) -> TrialState:
        """Try to give a claim these devices; what was promised before, for `restore`."""
        before = TrialState(-1, (), dict(self.promised))
        self.promised[key] = promise
        self.use_picks(promise.picks, 1)
        self.version += 1
        return before

    # --- assumed pods ------------------------------------------------------------------------------

    def widest_first(self, slot: int) -> list[Pool]:
        """The pools of a node, those first that other nodes can use as well."""
        return sorted(self.nodes.pools(slot), key=lambda pool: any(device.reach.node_name for device in pool.devices))

    def promise(self, chosen: Mapping[ClaimKey, Promise]) -> None:
        """Count on devices that were chosen, until their claims show them."""
        for key, promise in chosen.items():
            if key not in self.promised:
                self.use_picks(promise.picks, 1)
            self.promised[key] = promise
        self.version += any(promise.users > 1 for promise in chosen.values())

    def forget(self, pod: Pod) -> None:
        """The pod is no longer assumed: what only it counted on is free again."""
        for _, key in claim_keys(pod):
            if key is not None and key in self.promised:
                self._count_on(key, -1, -1)


def _results(claim: ResourceClaim | None) -> tuple[AllocatedDevice, ...]:
    allocation = claim.status.allocation if claim is not None else None
    return (allocation.devices.results if allocation is not None else None) or ()
