"""The devices for the claims of pods that were assigned to nodes, chosen for all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from muster.api.types import Pod
from muster.scheduler.cache.device_claims import ClaimKey
from muster.scheduler.cache.devices import Devices, NodeSteps, Promise
from muster.scheduler.devices.allocator import NotAllocated, allocate
from muster.scheduler.devices.pools import Pool

Choice = dict[ClaimKey, Promise]


def choose_devices(devices: Devices, placements: Sequence[tuple[Pod, int]]) -> Choice | None:
    """Devices for all claims of these pods on these slots; None if there are not enough. Nothing is promised yet."""
    shared: dict[ClaimKey, list[int]] = {}
    own: dict[int, list[ClaimKey]] = {}
    for pod, slot in placements:
        needs = devices.claims.needs(pod)
        for key in needs.claims if needs is not None else ():
            shared.setdefault(key, []).append(slot)
        own.setdefault(slot, []).extend(devices.claims.own_claims(pod))
    chosen: Choice = {}
    try:
        return chosen if _choose_shared(devices, shared, chosen) and _choose_own(devices, shared, own, chosen) else None
    finally:
        for key, promise in chosen.items():
            if key not in devices.promised:
                devices.use_picks(promise.picks, -1)


def _choose_shared(devices: Devices, users: dict[ClaimKey, list[int]], chosen: Choice) -> bool:
    """Devices that all pods with the claim can reach."""
    for key, slots in users.items():
        promise = devices.promised.get(key)
        if promise is not None:
            chosen[key] = replace(promise, users=promise.users + len(slots))
        elif len(set(slots)) == 1:
            continue  # with the claims of their own that its users have
        elif devices.claims.claims[key].status.allocation is None:
            pools = [_in_common(devices, pool, slots) for pool in devices.widest_first(slots[0])]
            found = allocate([devices.claims.request(key)], pools, devices.usage, devices.matches, NodeSteps())
            if isinstance(found, NotAllocated):
                return False
            chosen[key] = Promise(found.claims[0], devices.nodes.node(slots[0]).metadata.name, len(slots))
            devices.use_picks(found.claims[0], 1)
    return True


def _choose_own(
    devices: Devices, users: dict[ClaimKey, list[int]], own: dict[int, list[ClaimKey]], chosen: Choice
) -> bool:
    """Devices for the claims of single pods, and for those that only pods on the same node use, together."""
    on_one_node: dict[int, list[ClaimKey]] = {}
    for key, slots in users.items():
        if key not in chosen and devices.claims.claims[key].status.allocation is None:
            on_one_node.setdefault(slots[0], []).append(key)
    for slot, keys in own.items():
        shared = on_one_node.get(slot, [])
        pools = devices.widest_first(slot) if shared else devices.nodes.pools(slot)
        requests = [devices.claims.request(key) for key in (*shared, *keys)]
        found = allocate(requests, pools, devices.usage, devices.matches, NodeSteps())
        if isinstance(found, NotAllocated):
            return False
        for key, picks in zip((*shared, *keys), found.claims, strict=True):
            chosen[key] = Promise(picks, devices.nodes.node(slot).metadata.name, len(users.get(key, (slot,))))
            devices.use_picks(picks, 1)
    return True


def _in_common(devices: Devices, pool: Pool, slots: Sequence[int]) -> Pool:
    nodes = [devices.nodes.node(slot).metadata for slot in dict.fromkeys(slots)]
    found = (
        device
        for device in pool.devices
        if all(device.reach.includes(node.name, node.labels) for node in nodes)
        and not (device.binds_to_node and len(nodes) > 1)
    )
    return replace(pool, devices=tuple(found))
