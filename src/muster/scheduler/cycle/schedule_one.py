"""One root, one snapshot, one verdict: plan, check, and turn the outcome into decisions.

A placed root is assumed and bound; a root that cannot be placed tries preemption and otherwise is parked
with words on every object it concerns. Nothing of a failed root binds, and no attempt both binds and evicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from muster.scheduler.cache.volumes import bound
from muster.scheduler.checking.validate import validate
from muster.scheduler.cycle import preempt
from muster.scheduler.cycle.evaluate import MOST_WANTS, Evaluation, current_request, evaluate
from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups.group import Group, Member
from muster.scheduler.groups.validity import TreeFault, find_fault
from muster.scheduler.interface.decisions import Bind, Decision, Nominate, PromiseVolume, RecordEvent, SelectVolumeNode
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest, leaves
from muster.scheduler.placement.verdict import Assignment, Infeasible, Judged, Placed, Undecided
from muster.scheduler.queue.entity import BINDING, PREEMPTING, CapacityHint, QueuedEntity, RequeueHints
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.conditions import POD_SCHEDULED
from muster.scheduler.status.messages import message_of
from muster.scheduler.status.waiting import incomplete_above, own_wait

MOST_NOTE = 1024  # the API cuts event notes here


def attempt(state: SchedulerState, entity: QueuedEntity, now: float) -> list[Decision]:
    """Try a root once."""
    fault = find_fault(entity.group, state.forest) if entity.group is not None else None
    if fault is not None:
        return list(_reject(state, entity, fault, now))
    request = current_request(state, entity)
    promised = preempt.promised(state, entity, request)
    if promised is not None:
        return list(_commit(state, entity, promised))
    outcome = evaluate(state, entity, request)
    if outcome.domains.domains:
        state.judged.append(Judged(state.scheduler_of(entity), outcome.domains.domains, outcome.domains.feasible))
    match outcome.verdict:
        case Placed() as placed:
            wrong = validate(placed, outcome.request, state.cluster, held=state.held_against(entity))
            if wrong is not None:
                return list(_reject(state, entity, TreeFault("SchedulerError", f"the plan was refused: {wrong}"), now))
            return list(_commit(state, entity, placed))
        case Infeasible():
            decisions = preempt.make_room(state, entity, request, now)
        case Undecided():
            decisions = preempt.keep_waiting(state, entity, request)
    return decisions if entity.state == PREEMPTING else [*decisions, *_park(state, entity, outcome, now)]


# --- success ---------------------------------------------------------------------------------------


def _commit(state: SchedulerState, entity: QueuedEntity, placed: Placed) -> Iterator[Decision]:
    yield from preempt.call_off(state, entity)
    yield from take_seats(state, [(entity, seat) for seat in placed.assignments])
    entity.verdict, entity.message = "Placed", ""
    for member in state.members_of(entity) if entity.group is not None else ():
        yield from _tell_pod(state, member, "there was no room for this pod beside the members that were placed")


def take_seats(state: SchedulerState, seated: Sequence[tuple[QueuedEntity, Assignment]]) -> Iterator[Decision]:
    """Count pods as seated from now on, and ask for their binds."""
    state.version += 1
    found = state.forest.members
    members = [found[seat.uid] for _, seat in seated]
    footprints = [state.shape_of(member).footprint for member in members]
    nodes = [seat.node for _, seat in seated]
    pods = [member.pod for member in members]
    state.cluster.assume_many(zip(pods, footprints, nodes, strict=True))
    state.forest.assume(zip(members, nodes, strict=True))
    for (entity, _), member, footprint, node in zip(seated, members, footprints, nodes, strict=True):
        entity.in_flight.add(member.uid)
        if footprint.claims:
            yield from _ask_for_volumes(state, member, footprint.claims)
        yield Bind(member.ref, node)
    for entity in {entity.key: entity for entity, _ in seated}.values():
        state.queue.reset_backoff(entity)
        state.queue.set_aside(entity, BINDING)


def _ask_for_volumes(state: SchedulerState, member: Member, claims: Iterable[str]) -> Iterator[Decision]:
    """Claims that waited for their pod: a free volume that was counted on is kept for them, or one is made there."""
    storage = state.cluster.volumes
    namespace = member.ref.namespace
    for name in claims:
        key = (namespace, name)
        claim = storage.claims.get(key)
        if claim is None or bound(claim):
            continue
        ref = ObjectRef("PersistentVolumeClaim", namespace, name, claim.metadata.uid)
        kept = storage.promised.volume_of(key)
        yield PromiseVolume(kept, ref) if kept else SelectVolumeNode(ref, storage.node_of_first_user(key))


# --- failure ---------------------------------------------------------------------------------------


def _reject(state: SchedulerState, entity: QueuedEntity, fault: TreeFault, now: float) -> Iterator[Decision]:
    """A tree with a fault: said on every object, tried again only when one of them changes."""
    yield from preempt.call_off(state, entity)
    yield from _clear_nominations(state, entity)
    if entity.group is not None:
        yield from tell_groups(state, entity.group.subtree(), lambda group: fault)
    for member in state.members_of(entity):
        yield from _tell_pod(state, member, fault.message, reason="SchedulerError")
    state.queue.add_unschedulable(entity, RequeueHints(), now)
    entity.verdict, entity.message = fault.reason, fault.message


def _park(state: SchedulerState, entity: QueuedEntity, outcome: Evaluation, now: float) -> Iterator[Decision]:
    verdict = outcome.verdict
    assert not isinstance(verdict, Placed)
    reason = "PlacementNotGuaranteed" if isinstance(verdict, Undecided) else "Unschedulable"
    yield from _clear_nominations(state, entity)
    if entity.group is not None:
        yield from tell_groups(state, entity.group.subtree(), lambda group: _word_of(group, reason, verdict))
    text = message_of(verdict, entity.key)
    entity.verdict, entity.message = reason, text
    for member in state.members_of(entity):
        refusal = outcome.diagnoses.get(state.shape_of(member).id)
        own = refusal.message_text() if refusal is not None else f"pod group is unschedulable, {text}"
        yield from _tell_pod(state, member, text if isinstance(verdict, Undecided) else own)
    was_woken = entity.epoch == state.queue.epoch
    hints = _lack(state, outcome)
    if entity.key in state.awaiting_binds:
        state.awaiting_binds.discard(entity.key)
        hints.rejected_by |= {preempt.IN_FLIGHT}
    state.queue.add_unschedulable(entity, hints, now)
    if was_woken:
        state.queue.requeue_next(entity, state.capacity, now)


def tell_groups(
    state: SchedulerState, groups: Iterable[Group], word_of: Callable[[Group], tuple[str, str]]
) -> Iterator[Decision]:
    """The False condition of every group of a failed tree, with an event when the verdict changed."""
    for group in groups:
        reason, message = word_of(group)
        said = state.conditions.initially_scheduled(group, "False", reason, message)
        if said is not None:
            yield said
            yield RecordEvent(group.ref, "Warning", "FailedScheduling", "Scheduling", message[:MOST_NOTE])


def _word_of(group: Group, reason: str, verdict: Infeasible | Undecided) -> tuple[str, str]:
    """A group without its members waits for them, whatever became of the rest of its tree."""
    if not group.admissible:
        return own_wait(group)
    return reason, incomplete_above(group) or message_of(verdict, group.key)


def _tell_pod(state: SchedulerState, member: Member, message: str, reason: str = "Unschedulable") -> Iterator[Decision]:
    state.conditions.observe(member.uid, member.pod.status.conditions)
    said = state.conditions.set(member.ref, POD_SCHEDULED, "False", reason, message)
    if said is not None:
        yield said
        yield RecordEvent(member.ref, "Warning", "FailedScheduling", "Scheduling", message[:MOST_NOTE])


def _clear_nominations(state: SchedulerState, entity: QueuedEntity) -> Iterator[Decision]:
    """A failed attempt keeps no seat, whichever cycle nominated it."""
    state.release(entity.key)
    for member in state.members_of(entity):
        if member.pod.status.nominated_node_name or member.nominated:
            member.nominated = ""
            yield Nominate(member.ref, "")


def _lack(state: SchedulerState, outcome: Evaluation) -> RequeueHints:
    """What a change must bring before another attempt is worth its cost."""
    request = outcome.request
    culprits = frozenset(
        culprit for refusal in outcome.diagnoses.values() for culprit in refusal.rejected_by if isinstance(culprit, str)
    )
    strong = _one_want(state, request)
    if strong is not None and isinstance(outcome.verdict, Infeasible):
        return RequeueHints((strong,), culprits)
    shapes: dict[int, Shape] = {}
    for leaf in leaves(request):
        for member in leaf.members:
            shapes.setdefault(member.shape.id, member.shape)
    wants = tuple(CapacityHint(shape, 1, weak=True) for shape in list(shapes.values())[:MOST_WANTS])
    return RequeueHints(wants, culprits)


def _one_want(state: SchedulerState, request: GroupRequest) -> CapacityHint | None:
    """A root of one leaf and one independent shape lacks exactly so many seats, countable at once."""
    if not isinstance(request, PodGroupRequest) or request.domains or not request.members:
        return None
    shape = request.members[0].shape
    if not state.evaluator.independent(shape) or any(member.shape.id != shape.id for member in request.members):
        return None
    return CapacityHint(shape, max(1, request.need), request.topology)
