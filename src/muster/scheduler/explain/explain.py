"""Why an entity is not scheduled, from the same state and by the same planner as the decision itself.

An explanation changes nothing that a decision depends on. Every sentence is derived from a verdict with its proof, from
the objects of the tree or from the queue; `suggestions` adds what would help, each tried first.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any

import msgspec

from muster.scheduler.cycle.evaluate import Evaluation, evaluate
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.explain.device_sentences import device_sentences
from muster.scheduler.explain.explanation import Domain, Explanation, Level, Rejection, ReportedCondition, Shortfall
from muster.scheduler.explain.holders import holders, inside_of
from muster.scheduler.explain.sentences import (
    empty_seats,
    few,
    name_of,
    preemption_sentence,
    requeue_sentence,
    reservation_sentence,
    unschedulable_sentence,
    why_never,
)
from muster.scheduler.explain.suggestions import CHANGEABLE, Through, suggest
from muster.scheduler.groups.group import PENDING, Group, Member, awaits_priority, entity_key, priority_of
from muster.scheduler.groups.validity import find_fault
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.placement.verdict import Infeasible, Placed, Shortage, Undecided
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status import waiting
from muster.scheduler.status.held_seats import FOR_EXPECTED, MISSING, ended_text, held_text
from muster.scheduler.status.messages import (
    amount_text,
    count_text,
    domain_text,
    have_text,
    is_resource,
    kind_word,
    nearest,
    place_text,
    shortages_of,
)

MOST_HOLDERS = 5
MOST_DOMAINS = 3
MOST_REJECTIONS = 6
SCHEDULED = (
    "PodScheduled",
    "PodGroupInitiallyScheduled",
    "PodGroupScheduled",
    "CompositePodGroupInitiallyScheduled",
)
Found = QueuedEntity | Group | Member


@dataclass(frozen=True, slots=True)
class Target:
    """The object that was asked about, and the entity it is scheduled with."""

    kind: str
    name: str
    found: Found


@dataclass(frozen=True, slots=True)
class _Asked:
    """How suggestions are looked for."""

    through: Through
    changeable: Set[str]


def find(scheduler: Scheduler, kind: str, namespace: str, name: str) -> Target | None:
    """The entity an object is scheduled with, the object itself if it is not pending, or None if it is unknown."""
    state = scheduler.state
    if kind == "Pod":
        wanted = (namespace, name)
        member = next((m for m in state.forest.members.values() if (m.ref.namespace, m.ref.name) == wanted), None)
        return Target(kind, name, _of_member(state, member)) if member is not None else None
    group = state.forest.groups.get(EntityKey(kind, namespace, name))
    if group is None or not group.exists:
        return None
    settled = group.pending_below == 0 and group.quorum_bound
    return Target(kind, name, group if settled else state.queue.entities.get(group.root().key, group))


def find_of_job(scheduler: Scheduler, namespace: str, name: str) -> Target | None:
    """A Job is explained by the entity of one of its pods, a pending one if there is one."""
    state = scheduler.state
    pods = [m for m in state.forest.members.values() if m.ref.namespace == namespace and _is_of_job(m, name)]
    first = min(pods, key=lambda member: (member.state != PENDING, member.order), default=None)
    if first is None:
        return None
    found = _of_member(state, first)
    return Target("Job", name, first.group if isinstance(found, Member) and first.group is not None else found)


def _is_of_job(member: Member, job: str) -> bool:
    return any(owner.kind == "Job" and owner.name == job for owner in member.pod.metadata.owner_references or ())


def _of_member(state: SchedulerState, member: Member) -> Found:
    return state.queue.entities.get(entity_key(member), member) if member.state == PENDING else member


def explain(
    scheduler: Scheduler, target: Target, through: Through = iter, changeable: Set[str] = CHANGEABLE
) -> Explanation:
    """The explanation of a target.

    `through` may count the sources of suggestions as they are tried; `changeable` names the fields of groups that the
    server lets change.
    """
    found = target.found
    if isinstance(found, Member):
        return _of_pod(scheduler.state, found)
    if isinstance(found, Group):
        return _of_group(scheduler.state, found)
    if found.group is not None and not found.group.pending_below and scheduler.state.nominations.held(found.key):
        asked = scheduler.state.forest.groups.get(EntityKey(target.kind, found.key.namespace, target.name))
        return _of_group(scheduler.state, asked or found.group)
    return _of_entity(scheduler, found, target, _Asked(through, changeable))


# --- objects that are not in the queue ---------------------------------------------------------------


def _of_pod(state: SchedulerState, member: Member) -> Explanation:
    ref = member.ref
    where = f" on {member.node}" if member.node else ""
    words = {"running": f"runs{where}", "leaving": f"is being deleted{where}", "failed": f"has failed{where}"}
    words |= {"succeeded": f"has finished{where}", "pending": f"is about to be bound{where}"}
    state_words = f"is placed by scheduler {member.traits[0]}" if member.foreign else words[member.state]
    sentence = f"pod {ref.name} {state_words}"
    levels = tuple(_levels(state, member.group.root(), ())) if member.group is not None else ()
    return Explanation("Pod", ref.namespace, ref.name, "Running", sentence, member.traits[1], levels)


def _of_group(state: SchedulerState, group: Group) -> Explanation:
    top = group.root()
    levels = tuple(_levels(state, top, ()))
    verdict, sentence, requeued = _group_state(state, group)
    priority = priority_of(top)
    return Explanation(*group.key, verdict, sentence, priority, levels, condition=_condition(group.obj), wakes=requeued)


def _group_state(state: SchedulerState, group: Group) -> tuple[str, str, str]:
    """Verdict, sentence and what requeues it, of a group without pending pods."""
    name = f"{kind_word(group.key.kind)} {group.key.name}"
    what = "members" if group.is_leaf else "child groups"
    have = have_text(group.confirmed, group.minimum, what) + " are bound"
    if group.quorum_bound:
        place = _in_domain(state, group)
        return "Running", f"{name} waits for nothing: {have}{place}", ""
    if group.counts.expecting and group.root().counts.leaves_bound:
        return _expecting(state, group, name)
    if not group.scheduled_once:
        reason, missing = waiting.own_wait(group)
        return reason, f"{name} waits: {missing}", "when what is missing is created"
    text = f"{name} is below its minimum: {have}, and no pod of it is pending"
    return "BelowMinimum", text, "when its controller, or whoever made its pods, makes new ones"


def _expecting(state: SchedulerState, group: Group, name: str) -> tuple[str, str, str]:
    """The same for a group that has begun and expects members."""
    below = {leaf.key for leaf in group.leaves()}
    seats = [seat for seat in state.nominations.held(group.root().key) if seat.group in below]
    if not seats:
        limit = state.config.expected_members_timeout
        return MISSING, f"{name} waits: {ended_text(group, limit)}", "when the next member is created"
    deadline = max(seat.deadline or 0.0 for seat in seats)
    text = held_text(group, len(seats), {seat.node for seat in seats}, deadline)
    return FOR_EXPECTED, f"{name} waits: {text}", "when the next member is created"


def _in_domain(state: SchedulerState, group: Group) -> str:
    key = group.topology
    places = _places(state, group, key) if key else set[str]()
    return f", in {domain_text(key, places.pop())}" if key and len(places) == 1 else ""


# --- entities in the queue -------------------------------------------------------------------------


def _of_entity(scheduler: Scheduler, entity: QueuedEntity, target: Target, asked: _Asked) -> Explanation:
    state = scheduler.state
    base = Explanation(
        *entity.key,
        "",
        "",
        entity.priority,
        since=entity.created,
        position=_position(scheduler, entity),
        waiting=len(state.queue.entities),
        condition=_condition(entity.group.obj if entity.group is not None else entity.member),
    )
    return _not_tried(state, entity, base, target) or _tried(scheduler, entity, base, target, asked)


def _not_tried(state: SchedulerState, entity: QueuedEntity, base: Explanation, target: Target) -> Explanation | None:
    """Why an entity, or the child group that was asked about, is not tried at all; None if it is."""
    fault = find_fault(entity.group, state.forest) if entity.group is not None else None
    if fault is not None:
        text = f"{name_of(entity)} cannot be scheduled as it is: {fault.message}"
        return _with(base, entity, state, fault.reason, text, target, wakes="when one of its objects changes")
    if entity.group is not None and not _is_complete(entity.group):
        return _incomplete(state, entity, base, target)
    if entity.member is not None and entity.member.gated:
        gates = ", ".join(gate.name for gate in entity.member.pod.spec.scheduling_gates or ())
        text = f"{name_of(entity)} is held back by scheduling gates: {gates}"
        return _with(base, entity, state, waiting.GATED, text, target, wakes="when its scheduling gates are removed")
    asked = state.forest.groups.get(EntityKey(target.kind, entity.key.namespace, target.name))
    if asked is not None and asked is not entity.group and asked.exists:
        own = _child_wait(asked)
        if own is not None:
            text = f"{kind_word(asked.key.kind)} {asked.key.name} waits: {own[1]}"
            wakes = "when the missing pods and groups are created; its tree starts without it meanwhile if it can"
            return _with(base, entity, state, own[0], text, None, wakes=wakes)
    return None


def _tried(scheduler: Scheduler, entity: QueuedEntity, base: Explanation, target: Target, asked: _Asked) -> Explanation:
    """What the planner finds for an entity now."""
    state = scheduler.state
    evaluation = evaluate(state, entity)
    if isinstance(evaluation.verdict, Placed):
        ahead = f"; {base.position - 1} ahead of it in the queue may take the room first" if base.position > 1 else ""
        text = f"{name_of(entity)} fits now{ahead}"
        return _with(base, entity, state, "Placed", text, target, wakes="when its turn comes")
    leaving = _leaving_suffice(state, entity, evaluation.request)
    if leaving:
        pods = count_text(len(leaving), "pod")
        text = f"{name_of(entity)} has its seats once {pods} have left that are on their way out"
        wakes = f"when they are gone: {few(sorted(state.forest.members[uid].ref.name for uid in leaving))}"
        return _with(base, entity, state, waiting.FOR_VICTIMS, text, target, wakes=wakes)
    return _unschedulable(scheduler, entity, evaluation, base, target, asked)


def _with(
    base: Explanation,
    entity: QueuedEntity,
    state: SchedulerState,
    verdict: str,
    sentence: str,
    target: Target | None,
    *,
    wakes: str,
    shortages: tuple[Shortage, ...] = (),
    request: GroupRequest | None = None,
    **more: Any,
) -> Explanation:
    """The explanation with its tree; first how the object that was asked about belongs to it."""
    levels = tuple(_levels(state, entity.group, shortages, request)) if entity.group is not None else ()
    if target is not None and target.kind != "Job" and (target.kind, target.name) != (entity.key.kind, entity.key.name):
        sentence = f"{kind_word(target.kind)} {target.name} is decided together with its tree: {sentence}"
    return msgspec.structs.replace(base, verdict=verdict, sentence=sentence, levels=levels, wakes=wakes, **more)


def _is_complete(top: Group) -> bool:
    return top.exists and top.admissible and not top.gated and not awaits_priority(top)


def _incomplete(state: SchedulerState, entity: QueuedEntity, base: Explanation, target: Target) -> Explanation:
    assert entity.group is not None
    reasons = {reason.group.key: reason for reason in waiting.wait_reasons(entity.group)}
    asked = EntityKey(target.kind, entity.key.namespace, target.name)
    own = reasons.get(asked) or reasons.get(entity.key) or next(iter(reasons.values()), None)
    if own is None:
        text = f"{name_of(entity)} does not exist, with {count_text(entity.group.pending_below, 'pod')} waiting for it"
        return _with(base, entity, state, waiting.FOR_POD_GROUP, text, target, wakes="when it is created")
    text = f"{kind_word(own.group.key.kind)} {own.group.key.name} waits: {own.message}"
    wakes = {
        waiting.FOR_PARENT: f"when compositepodgroup {entity.key.name} is created",
        waiting.GATED: "when the scheduling gates are removed",
        waiting.FOR_PRIORITY: "when the PriorityClass exists and Muster has filled in its value",
        waiting.FOR_MEMBERS: "when the missing pods are created",
    }.get(own.reason, "when the missing pods and groups are created")
    return _with(base, entity, state, own.reason, text, None, wakes=wakes)


def _child_wait(group: Group) -> tuple[str, str] | None:
    """What is missing of a child group in a tree that can be scheduled without it."""
    if not group.admissible:
        return waiting.own_wait(group)
    missing = waiting.incomplete_above(group)
    return (waiting.FOR_CHILDREN, missing) if missing else None


def _leaving_suffice(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> list[str]:
    """Pods that are terminating, or marked as victims, without which the entity fits."""
    leaving = sorted(
        state.preemptions.leaving() | {uid for uid in state.preemptions.unclaimed if uid in state.cluster.pods}
    )
    if not leaving or not isinstance(evaluate(state, entity, request, leaving).verdict, Placed):
        return []
    return leaving


def _unschedulable(
    scheduler: Scheduler,
    entity: QueuedEntity,
    evaluation: Evaluation,
    base: Explanation,
    target: Target,
    asked: _Asked,
) -> Explanation:
    state, verdict = scheduler.state, evaluation.verdict
    assert isinstance(verdict, Infeasible | Undecided)
    shortages = shortages_of(verdict)
    first = nearest(shortages, shortages[0].group) if shortages else None
    where = domain_text(first.topology, first.domain) if first is not None and first.domain else ""
    return _with(
        base,
        entity,
        state,
        "Infeasible" if isinstance(verdict, Infeasible) else "Undecided",
        unschedulable_sentence(state, entity, evaluation, first),
        target,
        wakes=requeue_sentence(evaluation.request),
        shortages=shortages,
        request=evaluation.request,
        remark=why_never(state, evaluation, first) if first is not None else "",
        rules=tuple(_rejections(state, entity))[:MOST_REJECTIONS],
        holders=holders(state, entity.key, first, MOST_HOLDERS) if first is not None else (),
        held_in=where,
        devices=device_sentences(state, evaluation.request),
        preemption=preemption_sentence(state, entity, evaluation),
        reservation=reservation_sentence(state, entity),
        suggestions=tuple(suggest(scheduler, entity, evaluation, asked.through, asked.changeable)),
    )


# --- the parts -------------------------------------------------------------------------------------


def _position(scheduler: Scheduler, entity: QueuedEntity) -> int:
    return next((place for place, each in enumerate(scheduler.view().queue(), 1) if each is entity), 0)


def _condition(obj: object) -> ReportedCondition | None:
    """The scheduling condition of a pod or group, as it is stored."""
    owner = obj.pod if isinstance(obj, Member) else obj
    status = getattr(owner, "status", None)
    for condition in (getattr(status, "conditions", None) or ()) if status is not None else ():
        if condition.type in SCHEDULED:
            since = condition.last_transition_time or ""
            return ReportedCondition(condition.status, condition.reason, condition.message, since)
    return None


def _places(state: SchedulerState, group: Group, key: str) -> set[str]:
    return {state.domain_of(m.node, key) for leaf in group.leaves() for m in leaf.running.values()}


def _levels(
    state: SchedulerState,
    top: Group | None,
    shortages: Iterable[Shortage],
    request: GroupRequest | None = None,
    depth: int = 0,
) -> Iterable[Level]:
    if top is None:
        return
    key = top.topology
    places = _places(state, top, key) if key else set[str]()
    own = sorted((s for s in shortages if s.group == top.key), key=lambda s: (s.needed - s.seats, -s.seats))
    yield Level(
        top.key.kind,
        top.key.name,
        depth,
        top.minimum,
        top.confirmed,
        top.pending_below,
        top.quorum_bound,
        key,
        places.pop() if len(places) == 1 else None,
        tuple(_domain(state, s, request) for s in own[:MOST_DOMAINS]),
        top.exists,
    )
    for child in top.ordered_children():
        yield from _levels(state, child, shortages, request, depth + 1)


def _domain(state: SchedulerState, shortage: Shortage, request: GroupRequest | None) -> Domain:
    lacking = tuple(
        Shortfall(what, amount_text(what, amount) if is_resource(what) else str(amount))
        for what, amount in shortage.lacking
    )
    seats = empty_seats(state, request, shortage.group) if request is not None else None
    when_empty = None
    if seats is not None:
        when_empty = int(seats[inside_of(state, shortage.topology, shortage.domain)].sum())
    return Domain(
        shortage.topology,
        shortage.domain,
        shortage.seats,
        shortage.needed,
        shortage.nodes,
        lacking,
        place_text(shortage),
        when_empty,
    )


def _rejections(state: SchedulerState, entity: QueuedEntity) -> Iterable[Rejection]:
    """Which plugin rejected how many nodes, for each shape of pending pods."""
    by_shape: dict[int, list[Member]] = {}
    for member in state.members_of(entity):
        by_shape.setdefault(state.shape_of(member).id, []).append(member)
    for members in by_shape.values():
        with state.evaluator.trial() as trial:
            diagnosis = trial.diagnose(state.shape_of(members[0]))
        first, count = members[0].ref.name, len(members)
        if diagnosis.message:
            yield Rejection(first, diagnosis.message, diagnosis.total, diagnosis.total, count)
        for text, nodes in sorted(diagnosis.counts.items(), key=lambda item: (-item[1], item[0])):
            yield Rejection(first, text, nodes, diagnosis.total, count)


__all__ = ["Explanation", "Target", "explain", "find", "find_of_job"]
