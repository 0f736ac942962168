"""Pods as the watches show them, and the API's answers to binds and evictions."""

from __future__ import annotations

from msgspec.structs import force_setattr, replace

from muster.api import durations, types
from muster.api.gates import GANG_SCHEDULING
from muster.scheduler.cycle import enqueue, failed_binds, held_seats, pod_signals
from muster.scheduler.groups.group import (
    FAILED,
    LEAVING,
    PENDING,
    RUNNING,
    SUCCEEDED,
    Group,
    Member,
    entity_key,
    group_name,
    state_of,
)
from muster.scheduler.interface.decisions import RecordEvent
from muster.scheduler.interface.keys import EntityKey, ObjectRef
from muster.scheduler.state.scheduler_state import SchedulerState


def pod_updated(state: SchedulerState, pod: types.Pod, now: float) -> None:
    """A pod exists in this form."""
    known, node = state.forest.members.get(pod.metadata.uid), pod.spec.node_name
    if known is not None:
        if known.pod.spec.node_name and not node:
            return  # an older view: pods are never unbound
        if _schedules_alike(known.pod, pod):
            _share_parts(known.pod, pod)
            known.pod = pod
            return
    foreign, group = pod.spec.scheduler_name not in state.config.profiles, _group_of(state, pod)
    if known is None and foreign and not node and group is None:
        return  # another scheduler's pod, until it is bound
    state.version += 1
    counted = pod_signals.before_event(state, pod.metadata.uid) if known is not None and node else None
    if known is None and not node:
        _check_duration(state, pod)
    _update_cluster(state, pod, known)
    if known is not None and state.bind_failures:
        state.bind_failures.pod_changed(entity_key(known), pod.metadata.uid)
    if pod.spec.resource_claims:
        state.cluster.devices.claims.set_user(pod)
    before = _entity_left(known, group)
    member = state.forest.put_member(pod, group, foreign=foreign)
    member.shape = None
    if node:
        pod_signals.pod_updated(state, member, counted)
        state.assumed.confirm(member.uid)
        if node in state.lost_nodes:
            state.forest.set_lost(member, True)  # the node was lost while the bind was in flight
    elif member.state == PENDING and not foreign:
        state.shape_of(member)  # computed on arrival, so that a cycle over thousands does not wait for it
    if known is None and member.group is not None and state.nominations:
        held_seats.member_arrived(state, member.group.root(), now)
    _review(state, member, before, now)


def _check_duration(state: SchedulerState, pod: types.Pod) -> None:
    """A duration that cannot be read does not count, which its pod is told."""
    annotations = pod.metadata.annotations
    text = annotations.expected_duration if annotations is not None else None
    if text is not None and not durations.is_duration(text):
        ref = ObjectRef("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
        note = f"{types.EXPECTED_DURATION} has no effect: {text[:80]!r} {durations.MALFORMED}"
        state.conditions.post(RecordEvent(ref, "Warning", "InvalidExpectedDuration", "Scheduling", note))


def _group_of(state: SchedulerState, pod: types.Pod) -> EntityKey | None:
    name = group_name(pod)
    if not name or not state.gates.enabled(GANG_SCHEDULING):
        return None
    profile = state.config.profiles.get(pod.spec.scheduler_name)
    in_gangs = profile is None or "GangScheduling" in profile.enabled
    return EntityKey("PodGroup", pod.metadata.namespace, name) if in_gangs else None


def _entity_left(known: Member | None, group: EntityKey | None) -> EntityKey | None:
    """The entity that a pod was scheduled with, if it names another group now."""
    if known is None or (known.group.key if known.group is not None else None) == group:
        return None
    return entity_key(known)


def _update_cluster(state: SchedulerState, pod: types.Pod, known: Member | None) -> None:
    """Bring the pods on nodes up to date."""
    cluster = state.cluster
    pod_state = state_of(pod)
    if known is not None and pod_state not in (PENDING, RUNNING):
        state.assumed.forget(known)
    if not pod.spec.node_name:
        return
    if pod_state in (SUCCEEDED, FAILED):
        if pod.metadata.uid in cluster.pods:
            _leave_node(state, pod)
    else:
        cluster.change("Pod", pod)


def _leave_node(state: SchedulerState, pod: types.Pod) -> None:
    pod_signals.pod_left(state, state.forest.members[pod.metadata.uid])
    state.preemptions.pod_left_node(pod.metadata.uid)
    state.cluster.remove("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def _review(state: SchedulerState, member: Member, before: EntityKey | None, now: float) -> None:
    """After a pod changed: its entity's place in the queue, its group's status, the entities that wait for it to go."""
    if member.state == LEAVING and member.uid in state.cluster.pods:
        state.preemptions.pod_terminating(member.uid)
    if member.state == LEAVING:
        state.preemptions.victim_leaving(member.uid)
    elif member.state in (SUCCEEDED, FAILED):
        _victim_gone(state, member)
    if member.group is not None:
        state.checks.members_changed(member.group.key)
        _check_schedulers(state, member.group)
        enqueue.review_tree(state, member.group.root(), now, cause=member.group)
    else:
        enqueue.review_pod(state, member, now)
    if before is not None and before != entity_key(member):
        enqueue.root_changed(state, before, now)


def _victim_gone(state: SchedulerState, victim: Member) -> None:
    """A pod is gone or has ended. Whoever waits for it goes on once its claims are no longer reserved for it."""
    held = state.cluster.devices.claims.holding(victim.pod) if victim.pod.spec.resource_claims else ()
    if held and state.preemptions.waiting_for(victim.uid):
        state.preemptions.claims_of_victim(victim.uid, held)
    else:
        enqueue.activate_preempting(state, state.preemptions.victim_gone(victim.uid))


def _check_schedulers(state: SchedulerState, group: Group) -> None:
    """A pod of another scheduler makes its tree invalid; when it is gone the tree may be valid again."""
    top = group.root()
    if top.foreign_below or state.checks.is_invalid(top.key):
        state.checks.tree_changed(top.key)


def pod_deleted(state: SchedulerState, uid: str, now: float) -> None:
    """A pod is gone."""
    member = state.forest.members.get(uid)
    if member is None:
        return
    state.version += 1
    state.assumed.remove(member)
    if member.uid in state.cluster.pods:
        _leave_node(state, member.pod)
    key = entity_key(member)
    state.bind_failures.pod_changed(key, member.uid)
    state.forest.remove_member(member.uid)
    state.conditions.forget(member.uid)
    state.nominations.remove(member.uid)
    state.preemptions.forget_pod(member.uid)
    state.reservations.forget_pod(member.uid)
    state.run_times.forget(member.uid)
    state.cluster.devices.claims.remove_user(member.uid)
    _victim_gone(state, member)
    if member.group is not None:
        state.checks.members_changed(member.group.key)
        _check_schedulers(state, member.group)
        enqueue.review_tree(state, member.group.root(), now, answered=True)
        return
    entity = state.queue.entities.get(key)
    if entity is not None and entity.uid == member.uid:
        enqueue.remove(state, key)


def _schedules_alike(old: types.Pod, new: types.Pod) -> bool:
    """Whether two forms of a pod differ in nothing that scheduling reads."""
    before, after = old.metadata, new.metadata
    return (
        old.spec == new.spec
        and old.status.phase == new.status.phase
        and before.deletion_timestamp == after.deletion_timestamp
        and before.labels == after.labels
        and old.status.resource_claim_statuses == new.status.resource_claim_statuses
    )


def _share_parts(old: types.Pod, new: types.Pod) -> None:
    """Let a pod refer to the equal parts of its last form, and free its own: it stays equal to what it was."""
    force_setattr(new, "spec", old.spec)
    if new.metadata.labels is not None:
        force_setattr(new.metadata, "labels", old.metadata.labels)


# --- answers of the API ----------------------------------------------------------------------------


def bind_succeeded(state: SchedulerState, uid: str, node: str, now: float) -> None:
    """The API accepted a bind. What the watch will show is taken as shown."""
    member = state.forest.members.get(uid)
    if member is None:
        return
    state.assumed.bind_answered(member)
    note = f"Successfully assigned {member.ref.namespace}/{member.ref.name} to {node}"
    state.conditions.post(RecordEvent(member.ref, "Normal", "Scheduled", "Binding", note))
    if not member.pod.spec.node_name:
        spec = replace(member.pod.spec, node_name=node)
        pod_updated(state, replace(member.pod, spec=spec), now)
    if member.group is not None:
        enqueue.review_tree(state, member.group.root(), now, answered=True)


def bind_failed(state: SchedulerState, uid: str, reason: str, cause: str, now: float) -> None:
    """The API refused a bind for good, or it is known not to have happened."""
    member = state.forest.members.get(uid)
    if member is None:
        return
    state.assumed.bind_answered(member)
    failed_binds.record(state, member, cause, reason, seen=not member.assumed)
    if member.assumed:
        state.version += 1
        state.assumed.forget(member)
    if member.group is not None:
        state.checks.members_changed(member.group.key)
        enqueue.review_tree(state, member.group.root(), now, answered=True)
    else:
        enqueue.review_pod(state, member, now)


def eviction_failed(state: SchedulerState, uid: str, now: float) -> None:
    """A victim stays: the entities that wait for it plan again, without it for a while."""
    state.preemptions.refused(uid, now)
    member = state.forest.members.get(uid)
    if member is not None and member.group is not None:
        state.checks.members_changed(member.group.key)  # it may have been given back: that is due again later
    enqueue.activate_preempting(state, state.preemptions.waiting_for(uid))
