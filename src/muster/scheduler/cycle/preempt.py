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


def promised(world: SchedulerState, root: QueuedEntity, demand: GroupRequest) -> Placed | None:
    """The seats that were made free for a root, once all its victims are gone and if nobody took them."""
    under_way = world.preempting.get(root.key)
    if under_way is None or under_way.victims:
        return None
    fault = validate(under_way.placed, demand, world.cluster, held=world.held_against(root))
    return under_way.placed if fault is None else None


def keep_waiting(world: SchedulerState, root: QueuedEntity, demand: GroupRequest) -> list[Decision]:
    """Stay set aside while the eviction under way suffices; otherwise it is called off."""
    under_way = world.preempting.get(root.key)
    if under_way is not None and _still_holds(world, root, demand, under_way):
        world.queue.set_aside(root, PREEMPTING)
        return []
    return call_off(world, root)


def make_room(world: SchedulerState, root: QueuedEntity, demand: GroupRequest, now: float) -> list[Decision]:
    """For a root that does not fit: wait for room that is on its way, or evict. Else its state stays as it is."""
    decisions = keep_waiting(world, root, demand)
    if root.state != PREEMPTING and _may(root):
        eviction = _going_suffices(world, root, demand) or _choose(world, root, demand, now)
        if eviction is not None:
            decisions += _start(world, root, eviction)
    return decisions


def _may(root: QueuedEntity) -> bool:
    if root.group is not None:
        return may_preempt(root.group)
    assert root.member is not None
    return root.member.traits[2] != api.NEVER


def _still_holds(
    world: SchedulerState, root: QueuedEntity, demand: GroupRequest, under_way: PreemptionInProgress
) -> bool:
    if not under_way.victims or not under_way.victims.isdisjoint(world.refused):
        return False
    return _valid(world, root, demand, under_way.placed, under_way.victims)


def _valid(
    world: SchedulerState, root: QueuedEntity, demand: GroupRequest, placed: Placed, evicted: Collection[str]
) -> bool:
    held = world.held_against(root)
    return validate(placed, demand, world.cluster, evicted=frozenset(evicted), held=held) is None


def _going_suffices(world: SchedulerState, root: QueuedEntity, demand: GroupRequest) -> PreemptionPlan | None:
    """Pods that are on their way out anyway may free enough; then nobody else has to go."""
    going = world.going()
    if not going:
        return None
    with world.evaluator.trial() as trial:
        for shape, slot in world.held_against(root):
            trial.place(shape, slot)
        trial.evict_all(sorted(going))
        verdict = plan(demand, trial, Budget(world.config.budget_steps))
    if not isinstance(verdict, Placed) or not _valid(world, root, demand, verdict, going):
        return None
    return PreemptionPlan(verdict, (), 0)


def _choose(world: SchedulerState, root: QueuedEntity, demand: GroupRequest, now: float) -> PreemptionPlan | None:
    word = _word(world.ref_of(root))
    if not worth_preempting_for(demand, world.evaluator):  # no need to ask who could go
        world.rounds.append(PreemptionAttempt(word, NO_VICTIMS))
        return None
    world.refused = {uid: until for uid, until in world.refused.items() if until > now}
    going = world.going()
    spared = going | world.refused.keys()
    found = world.census.below(
        root.priority, world.forest, world.cluster, world.version, marked=world.orphans, spared=spared
    )
    if found.in_flight:
        world.awaiting_binds.add(root.key)
    outcome = select_victims(
        demand,
        world.evaluator,
        units=found.units,
        quorums=found.quorums,
        budgets=list(world.budgets.values()),
        held=world.held_against(root),
        leaving=going,
        budget=Budget(world.config.budget_steps),
    )
    if isinstance(outcome, NoCandidates):
        world.rounds.append(PreemptionAttempt(word, NO_VICTIMS if outcome.hopeless else UNDECIDED))
        return None
    victims = {uid for unit in outcome.units for uid in unit.uids}
    if not _valid(world, root, demand, outcome.placed, victims | going):
        world.rounds.append(PreemptionAttempt(word, REFUSED))
        return None
    world.rounds.append(PreemptionAttempt(word, NOMINATED, len(victims), len(outcome.units), outcome.budget_violations))
    return outcome


# --- start -----------------------------------------------------------------------------------------


def _start(world: SchedulerState, root: QueuedEntity, eviction: PreemptionPlan) -> Iterator[Decision]:
    """Mark, tell, nominate. The deletes follow in a later turn, if the plan still holds then."""
    me = world.ref_of(root)
    chosen = [uid for unit in eviction.units for uid in unit.uids]
    nodes = {seat.node for seat in eviction.placed.seats}
    waited_for = {uid for uid in world.going() if world.cluster.pods[uid].node in nodes}
    yield from _mark(world, root, eviction, me)
    yield from _hold_seats(world, root, eviction.placed)
    world.orphans -= set(chosen)
    world.preempting[root.key] = PreemptionInProgress(eviction.placed, waited_for | set(chosen), set(chosen))
    world.queue.set_aside(root, PREEMPTING)
    root.lack.wants = ()
    text = f"waiting for {len(waited_for | set(chosen))} pods to leave"
    root.verdict, root.message = FOR_VICTIMS, text
    if root.group is not None:
        for group in root.group.subtree():
            said = world.conditions.initially_scheduled(group, "False", FOR_VICTIMS, text)
            if said is not None:
                yield said


def _mark(world: SchedulerState, root: QueuedEntity, eviction: PreemptionPlan, me: ObjectRef) -> Iterator[Decision]:
    word = _word(me)
    scheduler = world.scheduler_of(root)
    text = f"{scheduler}: preempting to accommodate a higher priority {word}"
    note = f"Preempted by {word} {me.namespace}/{me.name} ({me.uid})"
    for uid in (uid for unit in eviction.units for uid in unit.uids):
        victim = world.forest.members[uid].ref
        said = world.conditions.say(victim, api.DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, text)
        if said is not None:
            yield said
    for group in _evicted_groups(world, eviction):
        world.conditions.evicted.add(group.ref.uid)
        said = world.conditions.say(group.ref, api.DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, text)
        if said is not None:
            yield said
            yield RecordEvent(group.ref, "Normal", "Preempted", "Preempting", note, me)
    for uid in (uid for unit in eviction.units for uid in unit.uids):
        yield RecordEvent(world.forest.members[uid].ref, "Normal", "Preempted", "Preempting", note, me)


def _evicted_groups(world: SchedulerState, eviction: PreemptionPlan) -> list[Group]:
    """Groups all of whose running pods are among the victims."""
    gone = {uid for unit in eviction.units for uid in unit.uids}
    touched: dict[EntityKey, Group] = {}
    for uid in gone:
        group = world.forest.members[uid].group
        while group is not None:
            touched[group.key] = group
            group = group.parent if not group.cyclic else None
    whole = [g for g in touched.values() if g.seen and all(leaf.running.keys() <= gone for leaf in g.leaves())]
    return sorted(whole, key=lambda group: group.key)


def _hold_seats(world: SchedulerState, root: QueuedEntity, placed: Placed) -> Iterator[Decision]:
    for seat in placed.seats:
        member = world.forest.members[seat.uid]
        member.nominated = seat.node
        world.holds[seat.uid] = Nomination(seat.uid, world.shape_of(member), seat.node, root.priority, root.key)
        yield Nominate(member.ref, seat.node)


def _word(me: ObjectRef) -> str:
    return {"PodGroup": "podgroup", "CompositePodGroup": "compositepodgroup"}.get(me.kind, "pod")


# --- going on --------------------------------------------------------------------------------------


def proceed(world: SchedulerState, now: float) -> list[Decision]:
    """Ask for the deletion of victims that were marked in an earlier turn, if the plan still holds."""
    decisions: list[Decision] = []
    for key, under_way in list(world.preempting.items()):
        root = world.queue.roots.get(key)
        if not under_way.marked or root is None or root.state != PREEMPTING:
            continue
        demand = request_of(root, world.shape_of, world.domain_of)
        if not _still_holds(world, root, demand, under_way):
            decisions += call_off(world, root)
            world.queue.park(root, RequeueHints(), now)  # a failure like any other: too many in a row earn a backoff
            world.queue.wake(root, now)
            continue
        me = world.ref_of(root)
        victims = [world.forest.members[uid] for uid in sorted(under_way.marked) if uid in world.forest.members]
        decisions += [Evict(member.ref, me) for member in victims if member.state == RUNNING]
        under_way.marked.clear()
    return decisions


def wake_waiting(world: SchedulerState) -> None:
    """Room appeared elsewhere: a root that waits for victims may do without them."""
    for key in list(world.preempting):
        root = world.queue.roots.get(key)
        if root is None or root.state != PREEMPTING:
            continue
        if any(world.capacity(want)[0] >= want.seats for want in _wants(world, root)):
            world.queue.activate(root)


def _wants(world: SchedulerState, root: QueuedEntity) -> list[CapacityHint]:
    """What must appear before another look is worth its cost: exact for one shape, a hint for several."""
    shapes = {shape.id: shape for shape in map(world.shape_of, world.members_of(root))}
    top = root.group
    if len(shapes) != 1 or (top is not None and not top.is_leaf):
        return [CapacityHint(shape, 1, weak=True) for shape in shapes.values()]
    seats = 1 if top is None else max(1, top.minimum - top.bound)
    return [CapacityHint(shape, seats, top.topology if top is not None else None) for shape in shapes.values()]


# --- giving back -----------------------------------------------------------------------------------


def call_off(world: SchedulerState, root: QueuedEntity) -> list[Decision]:
    """The root needs its victims no more: take the marks back, give the seats back."""
    under_way = world.preempting.pop(root.key, None)
    decisions: list[Decision] = []
    if under_way is not None:
        decisions += unmark(world, under_way.marked | (under_way.victims & world.refused.keys()))
    for member in world.members_of(root):
        if member.nominated:
            decisions.append(Nominate(member.ref, ""))
    world.release(root.key)
    return decisions


def unmark(world: SchedulerState, uids: set[str]) -> list[Decision]:
    """Tell pods that were to leave that they may stay, unless someone else needs them gone."""
    wanted = {uid for under_way in world.preempting.values() for uid in under_way.victims}
    decisions: list[Decision] = []
    for uid in sorted(uids - (wanted - world.refused.keys())):
        member = world.forest.members.get(uid)
        if member is None or member.state != RUNNING:
            continue
        decisions += _not_a_target(world, member.ref)
        group = member.group
        while group is not None:
            if group.ref.uid in world.conditions.evicted:
                world.conditions.evicted.discard(group.ref.uid)
                decisions += _not_a_target(world, group.ref)
            group = group.parent if not group.cyclic else None
    return decisions


def _not_a_target(world: SchedulerState, about: ObjectRef) -> list[Decision]:
    text = "the room is no longer needed"
    said = world.conditions.say(about, api.DISRUPTION_TARGET, "False", CALLED_OFF, text)
    return [said] if said is not None else []


def still_leaving(world: SchedulerState, group: Group) -> bool:
    """Is a pod of the group marked to leave, or on its way out?"""
    targets = world.orphans.union(*(under_way.victims for under_way in world.preempting.values()))
    return any(not targets.isdisjoint(leaf.running) for leaf in group.leaves())
