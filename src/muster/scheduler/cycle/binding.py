"""Binding: a checked plan becomes `Bind` decisions, and its pods count on their nodes from now on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from muster.api.devices import ResourceClaim
from muster.api.groups import PodGroup
from muster.api.types import PodResourceClaim
from muster.scheduler.cache import device_choice
from muster.scheduler.cache.device_claims import claim_keys
from muster.scheduler.cache.devices import Promise
from muster.scheduler.cache.volumes import bound
from muster.scheduler.checking.device_rules import allocation_fault
from muster.scheduler.devices.allocation_result import allocation_of
from muster.scheduler.groups.group import Member
from muster.scheduler.interface.decisions import AllocateClaim, Bind, Decision, PromiseVolume, SelectVolumeNode
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.placement.verdict import Assignment
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.state.scheduler_state import SchedulerState

DeviceChoice = Mapping[tuple[str, str], Promise]  # by claim


def choose_devices(state: SchedulerState, assigned: Sequence[Assignment]) -> DeviceChoice | str:
    """Devices for the claims of pods that were assigned to nodes, checked; or what is wrong."""
    pods = [(state.forest.members[each.uid].pod, each.index) for each in assigned]
    with_claims = [(pod, slot) for pod, slot in pods if pod.spec.resource_claims]
    if not with_claims:
        return {}
    chosen = device_choice.choose_devices(state.cluster.devices, with_claims)
    if chosen is None:
        return "there are not enough devices for all claims"
    return (
        allocation_fault(state.cluster, {key: promise.picks for key, promise in chosen.items()}, with_claims) or chosen
    )


def bind(
    state: SchedulerState, assigned: Sequence[tuple[QueuedEntity, Assignment]], devices: DeviceChoice | None = None
) -> Iterator[Decision]:
    """Assume pods on the nodes they were assigned and ask for their binds, with the devices chosen for their claims."""
    state.version += 1
    if devices:
        state.cluster.promise_devices(devices)
    members = [state.forest.members[assignment.uid] for _, assignment in assigned]
    footprints = [state.shape_of(member).footprint for member in members]
    nodes = [assignment.node for _, assignment in assigned]
    state.assumed.assume(members, footprints, nodes)
    yield from _allocate_claims(state, [each for each, need in zip(members, footprints, strict=True) if need.needs])
    for member, footprint, node in zip(members, footprints, nodes, strict=True):
        if footprint.claims:
            yield from _provide_volumes(state, member, footprint.claims)
        yield Bind(member.ref, node)
    for entity in dict.fromkeys([entity for entity, _ in assigned]):
        state.queue.reset_backoff(entity)
        state.queue.set_binding(entity)


def _allocate_claims(state: SchedulerState, members: Sequence[Member]) -> Iterator[AllocateClaim]:
    """Claims get the devices that were chosen for them, and are reserved for the pods or the group that use them."""
    devices = state.cluster.devices
    written: set[tuple[str, str]] = set()
    for member in members:
        for entry, key in claim_keys(member.pod):
            claim = devices.claims.claims.get(key) if key is not None else None
            if key is None or claim is None:
                continue
            consumer = _consumer(member, entry)
            if any(found.uid == consumer.uid for found in claim.status.reserved_for or ()):
                continue
            promise = devices.promised.get(key) if key not in written else None
            written.add(key)
            ref = ObjectRef("ResourceClaim", *key, claim.metadata.uid)
            yield AllocateClaim(ref, consumer, _allocation(state, claim, promise) if promise is not None else None)


def _consumer(member: Member, entry: PodResourceClaim) -> ObjectRef:
    """The group, if it lists the pod's entry as its own; else the pod."""
    group = member.group.obj if member.group is not None else None
    listed = (group.spec.resource_claims if isinstance(group, PodGroup) else None) or ()
    same = (entry.name, entry.resource_claim_name, entry.resource_claim_template_name)
    if group is not None and any(
        (each.name, each.resource_claim_name, each.resource_claim_template_name) == same for each in listed
    ):
        return ObjectRef("PodGroup", group.metadata.namespace, group.metadata.name, group.metadata.uid)
    return member.ref


def _allocation(state: SchedulerState, claim: ResourceClaim, promise: Promise) -> dict[str, Any]:
    numbers = count()
    meta = claim.metadata

    def share_id() -> str:
        return str(uuid5(NAMESPACE_OID, f"{meta.uid}/{meta.resource_version}/{next(numbers)}"))

    return allocation_of(
        promise.picks, claim.spec.devices, state.cluster.devices.claims.classes, promise.node, share_id
    )


def _provide_volumes(state: SchedulerState, member: Member, claims: Iterable[str]) -> Iterator[Decision]:
    """Claims that waited for their pod get the free volume that was counted on, or one is provisioned."""
    volumes = state.cluster.volumes
    namespace = member.ref.namespace
    for name in claims:
        key = (namespace, name)
        claim = volumes.claims.get(key)
        if claim is None or bound(claim):
            continue
        ref = ObjectRef("PersistentVolumeClaim", namespace, name, claim.metadata.uid)
        promised = volumes.promised.volume_of(key)
        yield PromiseVolume(promised, ref) if promised else SelectVolumeNode(ref, volumes.node_of_first_user(key))
