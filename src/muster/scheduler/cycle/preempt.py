"""The life of an eviction: chosen, marked, seats held, deleted, waited for; or called off.

Eviction is delayed: nothing is marked unless the whole plan after it passed `validate`, nothing is deleted
before everything is marked and nominated (one turn earlier), and the plan is checked again right before.
While victims leave, their room is held; no second eviction starts for a root whose first still suffices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from muster.api import groups as api
from muster.scheduler.checking.validate import validate
from muster.scheduler.cycle.evaluate import request_of
from muster.scheduler.groups.group import RUNNING, Group, may_preempt
from muster.scheduler.interface.decisions import Decision, Evict, Nominate, RecordEvent
from muster.scheduler.interface.keys import EntityKey, ObjectRef
from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.placement.verdict import Budget, Placed
from muster.scheduler.planning.plan import plan
from muster.scheduler.preemption.resolvability import worth_preempting_for
from muster.scheduler.preemption.result import (
    NO_VICTIMS,
    NOMINATED,
    REFUSED,
    UNDECIDED,
    NoCandidates,
    PreemptionAttempt,
    PreemptionPlan,
)
from muster.scheduler.preemption.select import select_victims
from muster.scheduler.queue.entity import PREEMPTING, CapacityHint, QueuedEntity, RequeueHints
from muster.scheduler.state.nominations import Nomination
from muster.scheduler.state.preemptions import PreemptionInProgress
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.conditions import PREEMPTION_BY_SCHEDULER
from muster.scheduler.status.waiting import FOR_VICTIMS

CALLED_OFF = "PreemptionCalledOff"


IN_FLIGHT = "BindsInFlight"  # what a root lacks whose victims would be pods that are just being bound


def promised(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> Placed | None:
    """The seats that were made free for a root, once all its victims are gone and if nobody took them."""
    under_way = state.preempting.get(entity.key)
    if under_way is None or under_way.victims:
        return None
    fault = validate(under_way.placed, request, state.cluster, held=state.held_against(entity))
    return under_way.placed if fault is None else None


def keep_waiting(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> list[Decision]:
    """Stay set aside while the eviction under way suffices; otherwise it is called off."""
    under_way = state.preempting.get(entity.key)
    if under_way is not None and _still_holds(state, entity, request, under_way):
        state.queue.set_aside(entity, PREEMPTING)
        return []
    return call_off(state, entity)


def make_room(state: SchedulerState, entity: QueuedEntity, request: GroupRequest, now: float) -> list[Decision]:
    """For a root that does not fit: wait for room that is on its way, or evict. Else its state stays as it is."""
    decisions = keep_waiting(state, entity, request)
    if entity.state != PREEMPTING and _may(entity):
        eviction = _going_suffices(state, entity, request) or _choose(state, entity, request, now)
        if eviction is not None:
            decisions += _start(state, entity, eviction)
    return decisions


def _may(entity: QueuedEntity) -> bool:
    if entity.group is not None:
        return may_preempt(entity.group)
    assert entity.member is not None
    return entity.member.traits[2] != api.NEVER


def _still_holds(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, under_way: PreemptionInProgress
) -> bool:
    if not under_way.victims or not under_way.victims.isdisjoint(state.refused):
        return False
    return _valid(state, entity, request, under_way.placed, under_way.victims)


def _valid(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, placed: Placed, evicted: Collection[str]
) -> bool:
    held = state.held_against(entity)
    return validate(placed, request, state.cluster, evicted=frozenset(evicted), held=held) is None


def _going_suffices(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> PreemptionPlan | None:
    """Pods that are on their way out anyway may free enough; then nobody else has to go."""
    going = state.going()
    if not going:
        return None
    with state.evaluator.trial() as trial:
        for shape, slot in state.held_against(entity):
            trial.place(shape, slot)
        trial.evict_all(sorted(going))
        verdict = plan(request, trial, Budget(state.config.budget_steps))
    if not isinstance(verdict, Placed) or not _valid(state, entity, request, verdict, going):
        return None
    return PreemptionPlan(verdict, (), 0)


def _choose(state: SchedulerState, entity: QueuedEntity, request: GroupRequest, now: float) -> PreemptionPlan | None:
    word = _word(state.ref_of(entity))
    if not worth_preempting_for(request, state.evaluator):  # no need to ask who could go
        state.rounds.append(PreemptionAttempt(word, NO_VICTIMS))
        return None
    state.refused = {uid: until for uid, until in state.refused.items() if until > now}
    going = state.going()
    spared = going | state.refused.keys()
    found = state.victim_index.below(
        entity.priority, state.forest, state.cluster, state.version, marked=state.orphans, spared=spared
    )
    if found.in_flight:
        state.awaiting_binds.add(entity.key)
    outcome = select_victims(
        request,
        state.evaluator,
        units=found.victims,
        quorums=found.quorums,
        budgets=list(state.budgets.values()),
        held=state.held_against(entity),
        leaving=going,
        budget=Budget(state.config.budget_steps),
    )
    if isinstance(outcome, NoCandidates):
        state.rounds.append(PreemptionAttempt(word, NO_VICTIMS if outcome.hopeless else UNDECIDED))
        return None
    victims = {uid for unit in outcome.victims for uid in unit.uids}
    if not _valid(state, entity, request, outcome.placed, victims | going):
        state.rounds.append(PreemptionAttempt(word, REFUSED))
        return None
    state.rounds.append(
        PreemptionAttempt(word, NOMINATED, len(victims), len(outcome.victims), outcome.budget_violations)
    )
    return outcome


# --- start -----------------------------------------------------------------------------------------


def _start(state: SchedulerState, entity: QueuedEntity, eviction: PreemptionPlan) -> Iterator[Decision]:
    """Mark, tell, nominate. The deletes follow in a later turn, if the plan still holds then."""
    me = state.ref_of(entity)
    chosen = [uid for unit in eviction.victims for uid in unit.uids]
    nodes = {seat.node for seat in eviction.placed.assignments}
    waited_for = {uid for uid in state.going() if state.cluster.pods[uid].node in nodes}
    yield from _mark(state, entity, eviction, me)
    yield from _hold_seats(state, entity, eviction.placed)
    state.orphans -= set(chosen)
    state.preempting[entity.key] = PreemptionInProgress(eviction.placed, waited_for | set(chosen), set(chosen))
    state.queue.set_aside(entity, PREEMPTING)
    entity.hints.capacity = ()
    text = f"waiting for {len(waited_for | set(chosen))} pods to leave"
    entity.verdict, entity.message = FOR_VICTIMS, text
    if entity.group is not None:
        for group in entity.group.subtree():
            said = state.conditions.initially_scheduled(group, "False", FOR_VICTIMS, text)
            if said is not None:
                yield said


def _mark(state: SchedulerState, entity: QueuedEntity, eviction: PreemptionPlan, me: ObjectRef) -> Iterator[Decision]:
    word = _word(me)
    scheduler = state.scheduler_of(entity)
    text = f"{scheduler}: preempting to accommodate a higher priority {word}"
    note = f"Preempted by {word} {me.namespace}/{me.name} ({me.uid})"
    for uid in (uid for unit in eviction.victims for uid in unit.uids):
        victim = state.forest.members[uid].ref
        said = state.conditions.set(victim, api.DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, text)
        if said is not None:
            yield said
    for group in _evicted_groups(state, eviction):
        state.conditions.evicted_groups.add(group.ref.uid)
        said = state.conditions.set(group.ref, api.DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, text)
        if said is not None:
            yield said
            yield RecordEvent(group.ref, "Normal", "Preempted", "Preempting", note, me)
    for uid in (uid for unit in eviction.victims for uid in unit.uids):
        yield RecordEvent(state.forest.members[uid].ref, "Normal", "Preempted", "Preempting", note, me)


def _evicted_groups(state: SchedulerState, eviction: PreemptionPlan) -> list[Group]:
    """Groups all of whose running pods are among the victims."""
    gone = {uid for unit in eviction.victims for uid in unit.uids}
    touched: dict[EntityKey, Group] = {}
    for uid in gone:
        group = state.forest.members[uid].group
        while group is not None:
            touched[group.key] = group
            group = group.parent if not group.cyclic else None
    whole = [g for g in touched.values() if g.exists and all(leaf.running.keys() <= gone for leaf in g.leaves())]
    return sorted(whole, key=lambda group: group.key)


def _hold_seats(state: SchedulerState, entity: QueuedEntity, placed: Placed) -> Iterator[Decision]:
    for seat in placed.assignments:
        member = state.forest.members[seat.uid]
        member.nominated = seat.node
        state.holds[seat.uid] = Nomination(seat.uid, state.shape_of(member), seat.node, entity.priority, entity.key)
        yield Nominate(member.ref, seat.node)


def _word(me: ObjectRef) -> str:
    return {"PodGroup": "podgroup", "CompositePodGroup": "compositepodgroup"}.get(me.kind, "pod")


# --- going on --------------------------------------------------------------------------------------


def proceed(state: SchedulerState, now: float) -> list[Decision]:
    """Ask for the deletion of victims that were marked in an earlier turn, if the plan still holds."""
    decisions: list[Decision] = []
    for key, under_way in list(state.preempting.items()):
        entity = state.queue.entities.get(key)
        if not under_way.marked or entity is None or entity.state != PREEMPTING:
            continue
        request = request_of(entity, state.shape_of, state.domain_of)
        if not _still_holds(state, entity, request, under_way):
            decisions += call_off(state, entity)
            state.queue.add_unschedulable(
                entity, RequeueHints(), now
            )  # a failure like any other: too many in a row earn a backoff
            state.queue.requeue(entity, now)
            continue
        me = state.ref_of(entity)
        victims = [state.forest.members[uid] for uid in sorted(under_way.marked) if uid in state.forest.members]
        decisions += [Evict(member.ref, me) for member in victims if member.state == RUNNING]
        under_way.marked.clear()
    return decisions


def wake_waiting(state: SchedulerState) -> None:
    """Room appeared elsewhere: a root that waits for victims may do without them."""
    for key in list(state.preempting):
        entity = state.queue.entities.get(key)
        if entity is None or entity.state != PREEMPTING:
            continue
        if any(state.capacity(want)[0] >= want.seats for want in _wants(state, entity)):
            state.queue.activate(entity)


def _wants(state: SchedulerState, entity: QueuedEntity) -> list[CapacityHint]:
    """What must appear before another look is worth its cost: exact for one shape, a hint for several."""
    shapes = {shape.id: shape for shape in map(state.shape_of, state.members_of(entity))}
    top = entity.group
    if len(shapes) != 1 or (top is not None and not top.is_leaf):
        return [CapacityHint(shape, 1, weak=True) for shape in shapes.values()]
    seats = 1 if top is None else max(1, top.minimum - top.bound)
    return [CapacityHint(shape, seats, top.topology if top is not None else None) for shape in shapes.values()]


# --- giving back -----------------------------------------------------------------------------------


def call_off(state: SchedulerState, entity: QueuedEntity) -> list[Decision]:
    """The root needs its victims no more: take the marks back, give the seats back."""
    under_way = state.preempting.pop(entity.key, None)
    decisions: list[Decision] = []
    if under_way is not None:
        decisions += unmark(state, under_way.marked | (under_way.victims & state.refused.keys()))
    for member in state.members_of(entity):
        if member.nominated:
            decisions.append(Nominate(member.ref, ""))
    state.release(entity.key)
    return decisions


def unmark(state: SchedulerState, uids: set[str]) -> list[Decision]:
    """Tell pods that were to leave that they may stay, unless someone else needs them gone."""
    wanted = {uid for under_way in state.preempting.values() for uid in under_way.victims}
    decisions: list[Decision] = []
    for uid in sorted(uids - (wanted - state.refused.keys())):
        member = state.forest.members.get(uid)
        if member is None or member.state != RUNNING:
            continue
        decisions += _not_a_target(state, member.ref)
        group = member.group
        while group is not None:
            if group.ref.uid in state.conditions.evicted_groups:
                state.conditions.evicted_groups.discard(group.ref.uid)
                decisions += _not_a_target(state, group.ref)
            group = group.parent if not group.cyclic else None
    return decisions


def _not_a_target(state: SchedulerState, about: ObjectRef) -> list[Decision]:
    text = "the room is no longer needed"
    said = state.conditions.set(about, api.DISRUPTION_TARGET, "False", CALLED_OFF, text)
    return [said] if said is not None else []


def still_leaving(state: SchedulerState, group: Group) -> bool:
    """Is a pod of the group marked to leave, or on its way out?"""
    targets = state.orphans.union(*(under_way.victims for under_way in state.preempting.values()))
    return any(not targets.isdisjoint(leaf.running) for leaf in group.leaves())
