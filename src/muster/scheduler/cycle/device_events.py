"""Claims and device classes as the watches show them: what pods that name them ask for may be something else now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.scheduler.cache.device_claims import ClaimKey, claim_keys
from muster.scheduler.cycle import enqueue
from muster.scheduler.groups.group import PENDING, Member
from muster.scheduler.interface.decisions import DeallocateClaim
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.state.scheduler_state import SchedulerState


def claim_changed(state: SchedulerState, namespace: str, name: str, now: float) -> None:
    """A claim was made, changed or deleted."""
    _claim_released(state, (namespace, name))
    users = state.cluster.devices.claims.users.get((namespace, name), ())
    _look_again(state, (state.forest.members[uid] for uid in sorted(users) if uid in state.forest.members), now)


def _claim_released(state: SchedulerState, key: ClaimKey) -> None:
    """Victims for whom a claim is no longer reserved do not hold it any more."""
    claim = state.cluster.devices.claims.claims.get(key)
    consumers = {found.uid for found in (claim.status.reserved_for if claim is not None else None) or ()}
    for uid in state.preemptions.released(key, consumers):
        enqueue.activate_preempting(state, state.preemptions.victim_gone(uid))


def class_changed(state: SchedulerState, now: float) -> None:
    """A device class was made, changed or deleted."""
    claims = state.cluster.devices.claims.users.values()
    users = sorted({uid for uids in claims for uid in uids})
    _look_again(state, (state.forest.members[uid] for uid in users if uid in state.forest.members), now)


def stale_claims(state: SchedulerState, members: Iterable[Member]) -> Iterator[DeallocateClaim]:
    """Claims with devices that keep pods from being placed and serve nobody who runs, as a crash between the claims
    and the binds of a gang leaves them: without their devices the pods may fit elsewhere."""
    pending = {member.uid: member for member in members if member.pod.spec.resource_claims}
    groups = {
        member.group.obj.metadata.uid
        for member in pending.values()
        if member.group is not None and member.group.obj is not None and not member.group.bound
    }
    claims = state.cluster.devices.claims
    keys = {key for member in pending.values() for _, key in claim_keys(member.pod) if key is not None}
    for key in sorted(keys):
        claim = claims.claims.get(key)
        if claim is None or claim.status.allocation is None or key in state.cluster.devices.promised:
            continue
        consumers = tuple(found.uid for found in claim.status.reserved_for or ())
        running = claims.users.get(key, set()) - pending.keys()
        mine = all(uid in pending or uid in groups for uid in consumers)
        if consumers and mine and not running:
            yield DeallocateClaim(ObjectRef("ResourceClaim", *key, claim.metadata.uid), consumers)


def _look_again(state: SchedulerState, members: Iterable[Member], now: float) -> None:
    """Give pending pods the shape that they have now; where it is another one, their entity is tried again."""
    for member in members:
        if member.state != PENDING or member.foreign or member.assumed or member.shape is None:
            continue
        before = member.shape
        member.shape = None
        if state.shape_of(member) is before:
            continue
        state.version += 1
        if member.group is not None:
            enqueue.review_tree(state, member.group.root(), now)
        else:
            enqueue.review_pod(state, member, now)
