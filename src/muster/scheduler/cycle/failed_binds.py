"""What is said when binds failed: on the pod, and on the groups of its tree once every bind of the round is answered.

The same failure is said once. When the entity is tried again is for `state.bind_failures` to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from muster.scheduler.cycle.report import report_groups, report_pod
from muster.scheduler.groups.group import Member, entity_key
from muster.scheduler.groups.validity import SCHEDULER_ERROR
from muster.scheduler.interface.decisions import MOST_NOTE, Decision, RecordEvent
from muster.scheduler.interface.events import FORBIDDEN, LOST_RACE, POD_CHANGED
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.state.bind_failures import FailedRound
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.messages import MAX_CONDITION_MESSAGE


def record(state: SchedulerState, member: Member, cause: str, reason: str, *, seen: bool) -> None:
    """One bind failed; `seen`: the watch has shown what became of the pod."""
    state.bind_failures.failed(entity_key(member), member.uid, member.ref.name, cause, reason, seen=seen)
    if seen:
        return
    if cause in (LOST_RACE, POD_CHANGED):
        note = f"it is placed again: {reason}"[:MOST_NOTE]
        state.conditions.post(RecordEvent(member.ref, "Normal", "LostRace", "Binding", note))
        return
    for decision in report_pod(state, member, f"binding failed: {reason}", reason=SCHEDULER_ERROR):
        state.conditions.post(decision)


def end_round(state: SchedulerState, entity: QueuedEntity, now: float) -> None:
    """Every bind of an entity is answered: what failed is said on its groups."""
    failure = state.bind_failures.end_round(entity.key, now)
    if failure is None:
        return
    for decision in _report(state, entity, failure):
        state.conditions.post(decision)


def _report(state: SchedulerState, entity: QueuedEntity, failure: FailedRound) -> Iterator[Decision]:
    waits = "; it is tried again when the right is there" if failure.cause == FORBIDDEN else ""
    text = f"binding pod {failure.pod} failed: {failure.reason}{waits}"[:MAX_CONDITION_MESSAGE]
    entity.set_outcome(SCHEDULER_ERROR, text)
    if entity.group is not None:
        yield from report_groups(state, entity.group.subtree(), lambda group: (SCHEDULER_ERROR, text))
