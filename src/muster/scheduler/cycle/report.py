"""Conditions and events on the objects of an entity, each once: after an attempt, and while it cannot be tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from muster.scheduler.groups.group import Group, Member
from muster.scheduler.groups.validity import SCHEDULER_ERROR, TreeFault
from muster.scheduler.interface.decisions import MOST_NOTE, Decision, Nominate, RecordEvent
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status import waiting
from muster.scheduler.status.conditions import POD_SCHEDULED
from muster.scheduler.status.kept_room import with_kept_room
from muster.scheduler.status.messages import MAX_CONDITION_MESSAGE
from muster.scheduler.status.still_running import still_running


def report_groups(
    state: SchedulerState, groups: Iterable[Group], reason_of: Callable[[Group], tuple[str, str]]
) -> Iterator[Decision]:
    """The False condition of every group of a failed tree, with an event when it changed."""
    for group in groups:
        reason, message = reason_of(group)
        condition = state.conditions.initially_scheduled(group, "False", reason, message)
        if condition is not None:
            yield condition
            yield RecordEvent(group.ref, "Warning", "FailedScheduling", "Scheduling", message[:MOST_NOTE])


def report_pod(
    state: SchedulerState, member: Member, message: str, reason: str = "Unschedulable"
) -> Iterator[Decision]:
    """`PodScheduled` False on a pod, with an event when it changed."""
    state.conditions.observe(member.uid, member.pod.status.conditions)
    condition = state.conditions.set(member.ref, POD_SCHEDULED, "False", reason, message)
    if condition is not None:
        yield condition
        yield RecordEvent(member.ref, "Warning", "FailedScheduling", "Scheduling", message[:MOST_NOTE])


def report_fault(state: SchedulerState, top: Group, fault: TreeFault) -> Iterator[Decision]:
    """An invalid tree, on every group of it and on every pod that waits for it."""
    yield from report_groups(state, top.subtree(), lambda group: fault)
    for member in _pending(top):
        yield from report_pod(state, member, fault.message, reason=SCHEDULER_ERROR)
    entity = state.queue.entities.get(top.key)
    if entity is not None:
        entity.set_outcome(fault.reason, fault.message)


# --- waiting ---------------------------------------------------------------------------------------


def report_waits(state: SchedulerState, entity: QueuedEntity, top: Group, *, pods: bool) -> Iterator[Decision]:
    """What an incomplete tree waits for, on its groups and, if they are told too, on its pods."""
    waits = {wait.group.key: wait for wait in waiting.wait_reasons(top)}
    running = still_running(top, state.config.profiles)
    for wait in waits.values():
        text = with_kept_room(wait.message, running if wait.group is top else "")
        entity.set_outcome(wait.reason, text)
        condition = state.conditions.initially_scheduled(wait.group, "False", wait.reason, text)
        if condition is not None:
            yield condition
            yield RecordEvent(wait.group.ref, "Normal", wait.reason, "Scheduling", text[:MOST_NOTE])
    for member in _pending(top) if pods else ():
        assert member.group is not None
        wait = waits.get(member.group.key)
        name = member.group.key.name
        if not member.group.exists:
            yield from _report_waiting_pod(state, member, waiting.FOR_POD_GROUP, f"pod group {name} does not exist")
        elif wait is not None:
            yield from _report_waiting_pod(state, member, wait.reason, f"pod group {name} waits: {wait.message}")


def _report_waiting_pod(state: SchedulerState, member: Member, reason: str, message: str) -> Iterator[Decision]:
    """`PodScheduled` False with what its group waits for; one event for each reason, however the numbers change."""
    if member.gated:
        return  # the API server says so on the pod itself
    state.conditions.observe(member.uid, member.pod.status.conditions)
    before = state.conditions.last(member.uid, POD_SCHEDULED)
    condition = state.conditions.set(member.ref, POD_SCHEDULED, "False", reason, message[:MAX_CONDITION_MESSAGE])
    if condition is not None:
        yield condition
        if before is None or before[1] != reason:
            yield RecordEvent(member.ref, "Warning", "FailedScheduling", "Scheduling", message[:MOST_NOTE])


def _pending(top: Group) -> list[Member]:
    """The pending pods of a tree, in the order in which they are placed."""
    return sorted((m for leaf in top.leaves() for m in leaf.pending.values()), key=lambda member: member.order)


# --- nominations -----------------------------------------------------------------------------------


def clear_nominations(state: SchedulerState, entity: QueuedEntity) -> Iterator[Decision]:
    """A failed attempt keeps no seat, whichever cycle nominated it."""
    state.nominations.clear(entity.key)
    for member in state.members_of(entity):
        if member.pod.status.nominated_node_name:
            yield Nominate(member.ref, "")
