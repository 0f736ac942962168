"""Conditions and events on the objects of an entity after an attempt, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from muster.scheduler.groups.group import Group, Member
from muster.scheduler.interface.decisions import MOST_NOTE, Decision, Nominate, RecordEvent
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.conditions import POD_SCHEDULED


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


def clear_nominations(state: SchedulerState, entity: QueuedEntity) -> Iterator[Decision]:
    """A failed attempt keeps no seat, whichever cycle nominated it."""
    state.nominations.clear(entity.key)
    for member in state.members_of(entity):
        if member.pod.status.nominated_node_name:
            yield Nominate(member.ref, "")
