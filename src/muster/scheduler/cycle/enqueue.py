"""Where an entity belongs in the queue after a change: out of it, incomplete, in line, or still binding.

One place decides that for single pods and for trees, so every event handler ends here.
"""

from __future__ import annotations

from muster.scheduler.cycle import failed_binds, held_seats
from muster.scheduler.groups.group import PENDING, Group, Member, awaits_priority, entity_key, priority_of
from muster.scheduler.interface.decisions import Nominate
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import EntityState, QueuedEntity
from muster.scheduler.state.scheduler_state import SchedulerState

# --- trees -----------------------------------------------------------------------------------------


def review_tree(
    state: SchedulerState, top: Group, now: float, *, answered: bool = False, cause: Group | None = None
) -> None:
    """Move the entity of a tree to the state that the tree's counters demand.

    `answered`: a bind was answered or a pod is gone. A failed entity is not tried again for a member (`cause` is its
    group) of a group that is still incomplete: nothing could come of it.
    """
    entity = state.queue.entities.get(top.key)
    wants_seats = False
    if top.counts.expecting or state.nominations:
        held_seats.settle(state, top, now)
        wants_seats = held_seats.wants_seats(state, top, now)
    if top.pending_below == 0 and not top.in_flight and not wants_seats:
        if entity is not None:
            state.notices.stop(top.key)
            remove(state, top.key)
        return
    if entity is None:
        if top.pending_below == 0 and not wants_seats:
            return
        entity = state.queue.add(QueuedEntity(top.key, group=top), now)
    if top.pending_below or wants_seats:
        before = entity.priority
        _describe(entity, top)
        if entity.priority < before and entity.state is EntityState.PREEMPTING:
            stop_preempting(state, top.key)  # a member of lower priority joined: its victims may be above it now
            state.queue.activate(entity)
    if top.in_flight:
        if entity.state is not EntityState.BINDING:
            stop_preempting(state, top.key)
            state.queue.set_binding(entity)
        return
    if entity.state is EntityState.BINDING:
        failed_binds.end_round(state, entity, now)
    if not _is_ready(state, top):
        stop_preempting(state, top.key)
        state.queue.set_incomplete(entity)
        state.notices.start(top.key, now)
    elif cause is None or cause.admitted or entity.state not in (EntityState.UNSCHEDULABLE, EntityState.BACKOFF):
        state.notices.stop(top.key)
        _line_up(state, entity, answered, now)


def _is_ready(state: SchedulerState, top: Group) -> bool:
    valid = not top.cyclic and not state.checks.is_invalid(top.key)
    something = top.placeable or (top.pending_below == 0 and top.admissible)  # the latter looks for seats to hold
    return top.exists and something and not top.gated and valid and not awaits_priority(top)


def _line_up(state: SchedulerState, entity: QueuedEntity, answered: bool, now: float) -> None:
    in_line = entity.state in (EntityState.INCOMPLETE, EntityState.ACTIVE, EntityState.PREEMPTING)
    if state.bind_failures and now < (until := state.bind_failures.until(entity.key)):
        state.queue.back_off(entity, until)
    elif in_line or (answered and entity.state is EntityState.BINDING):
        state.queue.activate(entity)
    else:
        state.queue.requeue(entity, now)


def _describe(entity: QueuedEntity, top: Group) -> None:
    entity.group = top
    entity.priority = priority_of(top)
    entity.created = top.created
    entity.uid = top.obj.metadata.uid if top.obj is not None else ""
    entity.partly_bound = top.partly_bound


def root_changed(state: SchedulerState, old: EntityKey, now: float) -> None:
    """What was queued under `old` is in another tree now: its preemption ends, and what is left of it is reviewed."""
    remove(state, old)
    state.nominations.forget(old)
    left = state.forest.groups.get(old)
    if left is not None and left.root() is left:
        review_tree(state, left, now)


# --- pods ------------------------------------------------------------------------------------------


def review_pod(state: SchedulerState, member: Member, now: float) -> None:
    """The same for a pod that is in no group."""
    key = entity_key(member)
    entity = state.queue.entities.get(key)
    if entity is not None and entity.uid != member.uid:
        remove(state, key)
        entity = None
    if member.state != PENDING:
        if entity is not None:
            remove(state, key)
        return
    if member.in_flight:
        return
    if entity is None:
        created = member.pod.metadata.creation_timestamp or ""
        entity = state.queue.add(QueuedEntity(key, member=member, created=created, uid=member.uid), now)
    entity.member, entity.priority = member, member.traits[1]
    answered = entity.state is EntityState.BINDING
    if answered:
        failed_binds.end_round(state, entity, now)
    if member.gated:
        state.queue.set_incomplete(entity)
    else:
        _line_up(state, entity, answered, now)


# --- leaving ---------------------------------------------------------------------------------------


def remove(state: SchedulerState, key: EntityKey) -> None:
    """Nothing is left to schedule under this key."""
    state.queue.remove(key)
    state.bind_failures.forget(key)
    stop_preempting(state, key)


def stop_preempting(state: SchedulerState, key: EntityKey) -> None:
    """The entity cannot be scheduled now: the next cycle takes its marks and nominations back."""
    state.preemptions.abandon(key)
    for uid in state.nominations.clear(key):
        member = state.forest.members.get(uid)
        if member is not None:
            state.conditions.post(Nominate(member.ref, ""))


def activate_preempting(state: SchedulerState, keys: list[EntityKey]) -> None:
    """Entities that wait for victims look again."""
    for key in keys:
        entity = state.queue.entities.get(key)
        if entity is not None and entity.state is EntityState.PREEMPTING:
            state.queue.activate(entity)
