"""Binding: a checked plan becomes `Bind` decisions, and its pods count on their nodes from now on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from muster.scheduler.cache.volumes import bound
from muster.scheduler.groups.group import Member
from muster.scheduler.interface.decisions import Bind, Decision, PromiseVolume, SelectVolumeNode
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.placement.verdict import Assignment
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.state.scheduler_state import SchedulerState


def bind(state: SchedulerState, assigned: Sequence[tuple[QueuedEntity, Assignment]]) -> Iterator[Decision]:
    """Assume pods on the nodes they were assigned and ask for their binds."""
    state.version += 1
    members = [state.forest.members[assignment.uid] for _, assignment in assigned]
    footprints = [state.shape_of(member).footprint for member in members]
    nodes = [assignment.node for _, assignment in assigned]
    placed = list(zip(members, footprints, nodes, strict=True))
    state.assumed.assume(placed)
    for member, footprint, node in placed:
        if footprint.claims:
            yield from _provide_volumes(state, member, footprint.claims)
        yield Bind(member.ref, node)
    for entity in {entity.key: entity for entity, _ in assigned}.values():
        state.queue.reset_backoff(entity)
        state.queue.set_binding(entity)


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
