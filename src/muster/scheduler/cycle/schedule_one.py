"""The scheduling cycle of one entity: plan, check, and turn the outcome into decisions.

An entity that was placed is bound; one that cannot be placed tries preemption and otherwise becomes unschedulable,
with a reason on every object it concerns. Nothing of a failed entity is bound, and no cycle both binds and evicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.scheduler.checking.validate import validate
from muster.scheduler.cycle import device_events, enqueue, held_seats, preempt, reserve, search
from muster.scheduler.cycle.binding import bind, choose_devices
from muster.scheduler.cycle.evaluate import (
    Evaluation,
    current_request,
    evaluate,
    evaluate_beside_room,
    evaluate_first_slice,
)
from muster.scheduler.cycle.proofs import checked_verdict
from muster.scheduler.cycle.report import clear_nominations, report_fault, report_groups, report_pod
from muster.scheduler.cycle.requeue_hints import (
    failure_hints,
    fault_hints,
    holding_hints,
    preempting_hints,
    searching_hints,
)
from muster.scheduler.groups.group import Group
from muster.scheduler.groups.validity import SCHEDULER_ERROR, TreeFault, find_fault
from muster.scheduler.interface.decisions import Decision
from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.placement.verdict import DomainsEvaluated, Infeasible, Placed, SearchStats, Undecided
from muster.scheduler.queue.entity import EntityState, QueuedEntity, RequeueHints
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.held_seats import expected_text
from muster.scheduler.status.kept_room import with_kept_room
from muster.scheduler.status.messages import message_of
from muster.scheduler.status.still_running import still_running
from muster.scheduler.status.waiting import incomplete_above, own_wait


def schedule_one(state: SchedulerState, entity: QueuedEntity, now: float) -> list[Decision]:
    """Try an entity once."""
    fault = find_fault(entity.group, state.forest) if entity.group is not None else None
    if fault is not None:
        return list(_reject(state, entity, fault, fault_hints(state, entity), now))
    request = current_request(state, entity)
    freed = preempt.freed_placement(state, entity, request) or held_seats.held_placement(state, entity, request)
    if freed is not None:
        return list(_place(state, entity, request, freed, now))
    kept = search.of_request(state, entity, request)
    evaluation = evaluate_first_slice(state, entity, request, search=kept is None)
    if isinstance(evaluation, Evaluation):
        search.drop(state, entity.key, now)
        return handle_verdict(state, entity, evaluation, now)
    if evaluation is None or search.keep(state, entity, request, evaluation):
        return list(_wait_for_search(state, entity, request, now))
    undecided = Undecided(SearchStats(evaluation.budget.spent))
    return handle_verdict(state, entity, Evaluation(request, undecided, {}, DomainsEvaluated(), state.version), now)


def run_search_slice(state: SchedulerState, now: float) -> list[Decision]:
    """One slice of the search whose turn it is; what follows if that ends it."""
    ended = search.run_slice(state, now)
    if ended is None:
        return []
    entity, evaluation = ended
    state.queue.activate(entity)
    return handle_verdict(state, entity, evaluation, now)


def handle_verdict(state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation, now: float) -> list[Decision]:
    """What follows from a verdict."""
    request, domains = evaluation.request, evaluation.domains
    if domains.domains:
        state.measurements.add_domains(replace(domains, profile=state.scheduler_of(entity)))
    evaluation.verdict = checked_verdict(state, entity, evaluation)
    match evaluation.verdict:
        case Placed() as placed if held_seats.starts_nobody(state, entity, placed):
            others = held_seats.without_later_groups(state, request)
            return handle_verdict(state, entity, evaluate(state, entity, others), now)
        case Placed() as placed:
            wrong = validate(placed, request, state.cluster, nominated=state.nominated_against(entity))
            if wrong is not None:
                beside = evaluate_beside_room(state, entity, request)
                if beside is not None:
                    return handle_verdict(state, entity, beside, now)
                fault = TreeFault(SCHEDULER_ERROR, f"the plan was refused: {wrong}")
                return list(_reject(state, entity, fault, failure_hints(state, entity, evaluation), now))
            return list(_place(state, entity, request, placed, now))
        case Infeasible():
            decisions = preempt.post_filter(state, entity, request, now)
        case Undecided():
            decisions = preempt.keep_waiting(state, entity, request)
    if entity.state is EntityState.PREEMPTING:
        state.queue.await_room(entity, preempting_hints(state, entity, request), now)
        return decisions
    return [*decisions, *_fail(state, entity, evaluation, now)]


# --- success ---------------------------------------------------------------------------------------


def _place(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, placed: Placed, now: float
) -> Iterator[Decision]:
    """Bind the pods of a placement that exist, and hold the seats of those that do not."""
    existing = [one for one in placed.assignments if not held_seats.is_expected(state, one.uid)]
    devices = choose_devices(state, existing)
    if isinstance(devices, str):
        fault = TreeFault(SCHEDULER_ERROR, f"the plan was refused: {devices}")
        yield from _reject(state, entity, fault, fault_hints(state, entity), now)
        return
    yield from preempt.cancel(state, entity)
    yield from bind(state, [(entity, assignment) for assignment in existing], devices)
    entity.set_outcome("Placed", "")
    yield from held_seats.hold(state, entity, request, placed, now)
    if not existing:
        assert entity.group is not None
        if entity.group.pending_below or held_seats.wants_seats(state, entity.group, now):
            state.queue.add_unschedulable(entity, holding_hints(state, entity, request), now)
        else:
            enqueue.remove(state, entity.key)
    left = entity.group is not None and entity.group.pending_below
    for member in state.members_of(entity) if left else ():
        yield from report_pod(state, member, "there was no room for this pod beside the members that were placed")


# --- failure ---------------------------------------------------------------------------------------


def _reject(
    state: SchedulerState, entity: QueuedEntity, fault: TreeFault, hints: RequeueHints, now: float
) -> Iterator[Decision]:
    """An invalid tree or plan: said on every object of the entity."""
    yield from preempt.cancel(state, entity)
    yield from clear_nominations(state, entity)
    if entity.group is not None:
        yield from report_fault(state, entity.group, fault)
    elif entity.member is not None:
        yield from report_pod(state, entity.member, fault.message, reason=SCHEDULER_ERROR)
    state.queue.add_unschedulable(entity, hints, now)
    entity.set_outcome(fault.reason, fault.message)


def _fail(state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation, now: float) -> Iterator[Decision]:
    """No placement was found: said on every object; the entity waits for a change that could help."""
    verdict = evaluation.verdict
    assert not isinstance(verdict, Placed)
    reason = "PlacementNotGuaranteed" if isinstance(verdict, Undecided) else "Unschedulable"
    yield from clear_nominations(state, entity)
    if entity.group is not None:
        kept, running = reserve.text_of(state, entity.key), still_running(entity.group, state.config.profiles)
        expected = expected_text(entity.group)
        said = "; ".join(each for each in (kept, running, expected) if each)
        yield from report_groups(state, entity.group.subtree(), lambda group: _reason_of(group, reason, verdict, said))
        state.reservations.ask()
    text = message_of(verdict, entity.key)
    entity.set_outcome(reason, text)
    for member in state.members_of(entity):
        diagnosis = evaluation.diagnoses.get(state.shape_of(member).id)
        own = diagnosis.message_text() if diagnosis is not None else f"pod group is unschedulable, {text}"
        yield from report_pod(state, member, text if isinstance(verdict, Undecided) else own, reason)
    if isinstance(verdict, Infeasible):
        yield from device_events.stale_claims(state, state.members_of(entity))
    state.queue.add_unschedulable(entity, failure_hints(state, entity, evaluation), now)


def _wait_for_search(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, now: float
) -> Iterator[Decision]:
    """The search goes on in later cycles. Nothing is said on the objects before it has ended."""
    yield from preempt.keep_waiting(state, entity, request)
    if entity.state is EntityState.PREEMPTING:
        state.queue.await_room(entity, preempting_hints(state, entity, request), now)
    else:
        state.queue.add_unschedulable(entity, searching_hints(state, entity, request), now)
        entity.set_outcome("Searching", "the search for a placement goes on")


def _reason_of(group: Group, reason: str, verdict: Infeasible | Undecided, kept: str) -> tuple[str, str]:
    """A group without its members waits for them, whatever became of the rest of its tree.

    `kept` says what room is kept for the tree and which of its pods are; that is said on its root.
    """
    if not group.admissible:
        return own_wait(group)
    text = incomplete_above(group) or message_of(verdict, group.key)
    return reason, text if group.parent is not None else with_kept_room(text, kept)
