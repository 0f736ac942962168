"""The scheduling cycle of one entity: plan, check, and turn the outcome into decisions.

An entity that was placed is bound; one that cannot be placed tries preemption and otherwise becomes unschedulable,
with a reason on every object it concerns. Nothing of a failed entity is bound, and no cycle both binds and evicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.scheduler.checking.validate import validate
from muster.scheduler.cycle import preempt, reserve, search
from muster.scheduler.cycle.binding import bind
from muster.scheduler.cycle.confirm import confirmed
from muster.scheduler.cycle.evaluate import MOST_SHAPES, Evaluation, current_request, evaluate_first_slice
from muster.scheduler.cycle.report import clear_nominations, report_fault, report_groups, report_pod
from muster.scheduler.cycle.requeue import capacity_of
from muster.scheduler.groups.group import Group
from muster.scheduler.groups.validity import SCHEDULER_ERROR, TreeFault, find_fault
from muster.scheduler.interface.decisions import Decision
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest, shapes_of
from muster.scheduler.placement.verdict import DomainsEvaluated, Infeasible, Placed, SearchStats, Undecided
from muster.scheduler.queue.entity import CapacityHint, EntityState, QueuedEntity, RequeueHints
from muster.scheduler.state.requeue_signals import BINDS_IN_FLIGHT
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.kept_room import with_kept_room
from muster.scheduler.status.messages import message_of
from muster.scheduler.status.still_running import still_running
from muster.scheduler.status.waiting import incomplete_above, own_wait


def schedule_one(state: SchedulerState, entity: QueuedEntity, now: float) -> list[Decision]:
    """Try an entity once."""
    fault = find_fault(entity.group, state.forest) if entity.group is not None else None
    if fault is not None:
        return list(_reject(state, entity, fault, now))
    request = current_request(state, entity)
    freed = preempt.freed_placement(state, entity, request)
    if freed is not None:
        return list(_place(state, entity, freed))
    kept = search.of_request(state, entity, request)
    evaluation = evaluate_first_slice(state, entity, request, search=kept is None)
    if isinstance(evaluation, Evaluation):
        search.drop(state, entity.key, now)
        return conclude(state, entity, evaluation, now)
    if evaluation is None or search.keep(state, entity, request, evaluation):
        return list(_wait_for_search(state, entity, request, now))
    undecided = Undecided(SearchStats(evaluation.budget.spent))
    return conclude(state, entity, Evaluation(request, undecided, {}, DomainsEvaluated()), now)


def run_search_slice(state: SchedulerState, now: float) -> list[Decision]:
    """One slice of the search whose turn it is; what follows if that ends it."""
    ended = search.run_slice(state, now)
    if ended is None:
        return []
    entity, evaluation = ended
    state.queue.activate(entity)
    decisions = conclude(state, entity, evaluation, now)
    if isinstance(evaluation.verdict, Undecided) and entity.state is EntityState.UNSCHEDULABLE:
        # Its answer came too late or not at all: once more, from the cluster as it is then.
        state.queue.retry(entity)
    return decisions


def conclude(state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation, now: float) -> list[Decision]:
    """What follows from a verdict."""
    request, domains = evaluation.request, evaluation.domains
    if domains.domains:
        state.measurements.add_domains(replace(domains, profile=state.scheduler_of(entity)))
    evaluation.verdict = confirmed(state, entity, evaluation)
    match evaluation.verdict:
        case Placed() as placed:
            wrong = validate(placed, request, state.cluster, nominated=state.nominated_against(entity))
            if wrong is not None:
                return list(_reject(state, entity, TreeFault(SCHEDULER_ERROR, f"the plan was refused: {wrong}"), now))
            return list(_place(state, entity, placed))
        case Infeasible():
            decisions = preempt.make_room(state, entity, request, now)
        case Undecided():
            decisions = preempt.keep_waiting(state, entity, request)
    if entity.state is EntityState.PREEMPTING:
        return decisions
    return [*decisions, *_fail(state, entity, evaluation, now)]


# --- success ---------------------------------------------------------------------------------------


def _place(state: SchedulerState, entity: QueuedEntity, placed: Placed) -> Iterator[Decision]:
    yield from preempt.cancel(state, entity)
    yield from bind(state, [(entity, assignment) for assignment in placed.assignments])
    entity.set_outcome("Placed", "")
    for member in state.members_of(entity) if entity.group is not None else ():
        yield from report_pod(state, member, "there was no room for this pod beside the members that were placed")


# --- failure ---------------------------------------------------------------------------------------


def _reject(state: SchedulerState, entity: QueuedEntity, fault: TreeFault, now: float) -> Iterator[Decision]:
    """An invalid tree: said on every object, tried again only when one of them changes."""
    yield from preempt.cancel(state, entity)
    yield from clear_nominations(state, entity)
    if entity.group is not None:
        yield from report_fault(state, entity.group, fault)
    elif entity.member is not None:
        yield from report_pod(state, entity.member, fault.message, reason=SCHEDULER_ERROR)
    state.queue.add_unschedulable(entity, RequeueHints(), now)
    entity.set_outcome(fault.reason, fault.message)


def _fail(state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation, now: float) -> Iterator[Decision]:
    """No placement was found: said on every object; the entity waits for a change that could help."""
    verdict = evaluation.verdict
    assert not isinstance(verdict, Placed)
    reason = "PlacementNotGuaranteed" if isinstance(verdict, Undecided) else "Unschedulable"
    yield from clear_nominations(state, entity)
    if entity.group is not None:
        kept, running = reserve.text_of(state, entity.key), still_running(entity.group, state.config.profiles)
        said = "; ".join(each for each in (kept, running) if each)
        yield from report_groups(state, entity.group.subtree(), lambda group: _reason_of(group, reason, verdict, said))
        state.reservations.ask()
    text = message_of(verdict, entity.key)
    entity.set_outcome(reason, text)
    for member in state.members_of(entity):
        diagnosis = evaluation.diagnoses.get(state.shape_of(member).id)
        own = diagnosis.message_text() if diagnosis is not None else f"pod group is unschedulable, {text}"
        yield from report_pod(state, member, text if isinstance(verdict, Undecided) else own, reason)
    was_requeued = entity.epoch == state.queue.epoch
    awaits_binds = state.preemptions.take_awaiting_binds(entity.key)
    state.queue.add_unschedulable(entity, _hints(state, evaluation, awaits_binds=awaits_binds), now)
    if was_requeued:
        state.queue.requeue_next(entity, lambda hint: capacity_of(state, hint), now)


def _wait_for_search(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, now: float
) -> Iterator[Decision]:
    """The search goes on in later cycles. Nothing is said on the objects before it has ended."""
    yield from preempt.keep_waiting(state, entity, request)
    if entity.state is not EntityState.PREEMPTING:
        state.queue.add_unschedulable(entity, _weak_hints(request), now)
        entity.set_outcome("Searching", "the search for a placement goes on")


def _reason_of(group: Group, reason: str, verdict: Infeasible | Undecided, kept: str) -> tuple[str, str]:
    """A group without its members waits for them, whatever became of the rest of its tree.

    `kept` says what room is kept for the tree and which of its pods are; that is said on its root.
    """
    if not group.admissible:
        return own_wait(group)
    text = incomplete_above(group) or message_of(verdict, group.key)
    return reason, text if group.parent is not None else with_kept_room(text, kept)


def _hints(state: SchedulerState, evaluation: Evaluation, *, awaits_binds: bool) -> RequeueHints:
    """What must change before another attempt is worth its cost."""
    request = evaluation.request
    rejected_by = frozenset(
        name for diagnosis in evaluation.diagnoses.values() for name in diagnosis.rejected_by if isinstance(name, str)
    )
    if awaits_binds:
        rejected_by |= {BINDS_IN_FLIGHT}
    exact = _exact_hint(state, request)
    if exact is not None and isinstance(evaluation.verdict, Infeasible):
        return RequeueHints((exact,), rejected_by)
    return _weak_hints(request, rejected_by)


def _weak_hints(request: GroupRequest, rejected_by: frozenset[str] = frozenset()) -> RequeueHints:
    shapes = list(shapes_of(request).values())[:MOST_SHAPES]
    return RequeueHints(tuple(CapacityHint(shape, 1, weak=True) for shape in shapes), rejected_by)


def _exact_hint(state: SchedulerState, request: GroupRequest) -> CapacityHint | None:
    """An entity of one group and one independent shape lacks exactly so many seats, which can be counted at once."""
    if not isinstance(request, PodGroupRequest) or request.domains or not request.members:
        return None
    shape = request.members[0].shape
    if not state.evaluator.independent(shape) or any(member.shape.id != shape.id for member in request.members):
        return None
    return CapacityHint(shape, max(1, request.need), request.topology or None)
