"""Seats held for members that do not exist yet, from the first bind of their tree to the last member.

The first members of a tree are bound only with a plan for all (`cycle.evaluate` asks for expected members as for
pending ones); what the plan gives to expected members is held here. A member that comes and requests what was expected
takes the seat of its ordinal; one that requests something else is planned with the rest, and the seat goes. Seats are
given back when the tree goes, when nothing of it is bound any more, and after `Config.expected_members_timeout` without
a new member. Nothing here is remembered: the members that are bound, the annotations and the times on the objects say
which seats there should be, and a tree that lacks one is put in line for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from muster.scheduler.cache.run_times import seconds_of
from muster.scheduler.checking.validate import validate
from muster.scheduler.cycle.choose_victims import nominated_placement
from muster.scheduler.cycle.evaluate import current_request, evaluate
from muster.scheduler.groups.expected import ExpectedMember, expected_members, expected_pod, holds_no_claims
from muster.scheduler.groups.group import Group, Member, priority_of
from muster.scheduler.interface.decisions import MOST_NOTE, Decision, RecordEvent
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import CompositeRequest, GroupRequest, leaves, rebuilt
from muster.scheduler.placement.verdict import Placed
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.state.measurements import HELD, LOST, TAKEN, TIMED_OUT
from muster.scheduler.state.nominations import Nomination
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.held_seats import (
    FOR_EXPECTED,
    MISSING,
    NEVER_FIT,
    claims_text,
    ended_text,
    held_text,
    never_text,
)

# --- which seats there should be -------------------------------------------------------------------


def settle(state: SchedulerState, top: Group, now: float) -> None:
    """After a change of a tree: members that came take their seats, and what is not expected any more is given back."""
    key = top.key
    if not (top.exists and top.counts.leaves_bound):
        if state.nominations.holding() or top.counts.expecting:
            state.nominations.forget(key)
        return
    held = state.nominations.held(key)
    if not held:
        return
    expected = {member.uid for leaf in top.leaves() for member in expected_members(leaf)}
    for leaf in top.leaves():
        waiting = [one for one in sorted(leaf.pending.values(), key=_order) if not one.gated]
        newcomers = [one for one in waiting if one.uid not in state.nominations]
        for seat in held:
            member = state.forest.members.get(seat.uid)
            if seat.group != leaf.key or seat.uid in expected or (member is not None and member.uid in leaf.pending):
                continue
            _take(state, seat, newcomers)


def _order(member: Member) -> tuple[int, str, str]:
    return member.order


def _take(state: SchedulerState, seat: Nomination, newcomers: list[Member]) -> None:
    """The seat of a member that is not expected any more goes to a newcomer of the same requests, or back."""
    for member in newcomers:
        shape = state.shape_of(member)
        if shape.amounts == seat.shape.amounts:
            newcomers.remove(member)
            state.nominations.nominate(
                Nomination(member.uid, shape, seat.node, seat.priority, seat.entity, seat.group, seat.deadline)
            )
            state.measurements.add_held(TAKEN, 1)
            break
    state.nominations.remove(seat.uid)


def member_arrived(state: SchedulerState, top: Group, now: float) -> None:
    """A member was created: the others have their time again."""
    state.nominations.extend(top.key, now + state.config.expected_members_timeout)


def wants_seats(state: SchedulerState, top: Group, now: float) -> bool:
    """Whether seats should be held for a tree that is bound in part, and are not; it is in line for them then."""
    wants = _lacks_seats(state, top) and not top.in_flight
    until = _held_until(state, top, now) if wants else None
    if until is not None and until <= now:
        state.nominations.end(top.key)
        until = None
    if state.nominations.has_ended(top.key):
        until = None
    state.nominations.want(top.key, until if not top.pending_below else None)
    return until is not None


def _lacks_seats(state: SchedulerState, top: Group) -> bool:
    counts = top.counts
    if not (counts.expecting and counts.leaves_bound and top.exists and top.admissible) or top.gated:
        return False
    if not state.expected_scheduler(top):
        return False
    seats: dict[EntityKey, int] = {}
    for seat in state.nominations.held(top.key):
        if seat.group is not None:
            seats[seat.group] = seats.get(seat.group, 0) + 1
    partly = any(0 < leaf.bound < leaf.minimum - seats.get(leaf.key, 0) for leaf in top.leaves())
    return partly or not _satisfied(top, seats)


def _satisfied(group: Group, seats: dict[EntityKey, int]) -> bool:
    if group.is_leaf:
        return group.bound + seats.get(group.key, 0) >= group.minimum
    return sum(_satisfied(child, seats) for child in group.ordered_children()) >= group.minimum


def _held_until(state: SchedulerState, top: Group, now: float) -> float:
    """Until when seats are held: so long after the last member was created or bound, by the times on the objects."""
    times = [
        time
        for leaf in top.leaves()
        for member in (*leaf.pending.values(), *leaf.running.values())
        for time in _times_of(member)
    ]
    return min(now, max(times, default=now)) + state.config.expected_members_timeout


def _times_of(member: Member) -> Iterator[float]:
    created = seconds_of(member.pod.metadata.creation_timestamp)
    if created is not None:
        yield created
    for condition in member.pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "True":
            yield seconds_of(condition.last_transition_time) or 0.0


# --- plans -----------------------------------------------------------------------------------------


def held_placement(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> Placed | None:
    """The placement on the seats that are held, if they are enough for all of a request and still hold."""
    nodes = {seat.uid: seat.node for seat in state.nominations.held(entity.key)}
    if not nodes or any(member.uid not in nodes for leaf in leaves(request) for member in leaf.members):
        return None
    with state.evaluator.trial() as trial:
        placed = nominated_placement(trial, request, nodes)
    if placed is None or len(placed.assignments) < sum(len(leaf.members) for leaf in leaves(request)):
        return None
    fault = validate(placed, request, state.cluster, nominated=state.nominated_against(entity))
    return placed if fault is None else None


def is_expected(state: SchedulerState, uid: str) -> bool:
    """Whether an assignment is for a member that does not exist yet."""
    return uid not in state.forest.members


def starts_nobody(state: SchedulerState, entity: QueuedEntity, placed: Placed) -> bool:
    """Whether a plan for a tree that has not begun seats only members that do not exist: nothing would come of it."""
    begun = entity.group is None or entity.group.counts.leaves_bound > 0
    return not begun and all(is_expected(state, one.uid) for one in placed.assignments)


def without_later_groups(state: SchedulerState, request: GroupRequest) -> GroupRequest:
    """The request without the PodGroups of which no member exists."""

    def change(group: GroupRequest) -> GroupRequest:
        if isinstance(group, CompositeRequest) or group.bound:
            return group
        later = all(is_expected(state, member.uid) for member in group.members)
        return msgspec.structs.replace(group, members=()) if later else group

    return rebuilt(request, change)


def hold(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, placed: Placed, now: float
) -> Iterator[Decision]:
    """Hold the seats that a plan gives to expected members, and no others; said on the groups."""
    before = state.nominations.held(entity.key)
    expected = [one for one in placed.assignments if is_expected(state, one.uid)]
    if entity.group is None or not (expected or before):
        return
    binds = len(expected) < len(placed.assignments)
    deadline = now + state.config.expected_members_timeout if binds else _held_until(state, entity.group, now)
    found = {member.uid: (leaf.key, member.shape) for leaf in leaves(request) for member in leaf.members}
    state.nominations.release(entity.key, {seat.uid for seat in before} - {one.uid for one in expected})
    for one in expected:
        group, shape = found[one.uid]
        state.nominations.nominate(Nomination(one.uid, shape, one.node, entity.priority, entity.key, group, deadline))
    known = {seat.uid for seat in before}
    state.measurements.add_held(HELD, sum(one.uid not in known for one in expected))
    yield from _report(state, entity.group, deadline, first=not before)


def _report(state: SchedulerState, top: Group, deadline: float, *, first: bool) -> Iterator[Decision]:
    held = state.nominations.held(top.key)
    for group in top.subtree():
        own = {leaf.key for leaf in group.leaves()}
        seats = [seat for seat in held if seat.group in own]
        if not seats:
            continue
        text = held_text(group, len(seats), {seat.node for seat in seats}, deadline)
        if any(holds_no_claims(leaf) for leaf in group.leaves()):
            text = f"{text}; {claims_text()}"
        condition = state.conditions.initially_scheduled(group, "False", FOR_EXPECTED, text)
        if condition is not None:
            yield condition
        if first and group is top:
            yield RecordEvent(group.ref, "Normal", "SeatsHeld", "Scheduling", text[:MOST_NOTE])


def adopt(state: SchedulerState, now: float) -> None:
    """Hold the seats that should be held, as the first cycles of a scheduler would: for questions, without cycles."""
    wanting = [one for one in state.queue.entities.values() if one.group is not None and not one.group.pending_below]
    for entity in sorted(wanting, key=lambda one: one.sort_key):
        request = current_request(state, entity)
        verdict = evaluate(state, entity, request).verdict
        nominated = state.nominated_against(entity)
        if isinstance(verdict, Placed) and validate(verdict, request, state.cluster, nominated=nominated) is None:
            for _ in hold(state, entity, request, verdict, now):
                pass  # what would be said is said already


# --- housekeeping ----------------------------------------------------------------------------------


def lost_seats(state: SchedulerState) -> list[EntityKey]:
    """The trees whose held seats cannot be had any more: their node changed, or a higher priority took the room."""
    lost: list[EntityKey] = []
    for key in state.nominations.take_changed(state.signals.log):
        top = state.top(key)
        if top is None or top.in_flight:
            continue  # its own attempt will tell
        if top.pending_below:
            _release_taken(state, key)
            continue
        entity = QueuedEntity(key, group=top, priority=priority_of(top), partly_bound=top.partly_bound)
        if held_placement(state, entity, current_request(state, entity)) is None:
            state.measurements.add_held(LOST, len(state.nominations.held(key)))
            state.nominations.release(key)
            lost.append(key)
    return lost


def _release_taken(state: SchedulerState, key: EntityKey) -> None:
    """Give back the seats of a tree on nodes that have no room for them any more; its pending pods keep it in line."""
    cluster = state.cluster
    for node in sorted({seat.node for seat in state.nominations.held(key)}):
        slot = cluster.index.get(node)
        seats = {uid: seat.shape for uid, seat in state.nominations.held_by_uid(key).items() if seat.node == node}
        if slot is not None:
            free = cluster.alloc[:, slot] - cluster.used[:, slot]
            for shape in seats.values():
                vector = shape.footprint.vector
                free[: len(vector)] -= vector
            if (free >= 0).all():
                continue
        state.measurements.add_held(LOST, len(seats))
        state.nominations.release(key, seats)


def time_out(state: SchedulerState, now: float) -> list[EntityKey]:
    """The trees whose members did not come in time: their seats are given back."""
    overdue = state.nominations.overdue(now)
    for key in overdue:
        state.measurements.add_held(TIMED_OUT, len(state.nominations.held(key)))
        state.nominations.end(key)
        state.nominations.want(key, None)
    return overdue


def report_never_fits(state: SchedulerState, leaf: Group) -> Iterator[Decision]:
    """Members for which nothing is held, because others are completed by then, may not even fit when nobody runs."""
    for number, template in enumerate(leaf.expectation.later):
        names = state.config.profiles
        scheduler = template.pod_template.spec.scheduler_name
        profile = names[scheduler] if scheduler in names else next(iter(names.values()))
        pod = expected_pod(ExpectedMember(leaf.key, number, template), profile.scheduler_name, priority_of(leaf.root()))
        seats = state.evaluator.empty_capacity(state.evaluator.shape(pod, profile))
        if leaf.topology is not None:
            domains = state.cluster.labels(leaf.topology)[: len(seats)]
            seats = np.bincount(domains, weights=seats, minlength=2)[1:].astype(np.int64)
        most = int(seats.max(initial=0) if leaf.topology is not None else seats.sum())
        if most < template.count:
            text = never_text(template.count, most, leaf.topology)
            yield RecordEvent(leaf.ref, "Warning", NEVER_FIT, "Scheduling", text[:MOST_NOTE])


def report_ended(state: SchedulerState) -> Iterator[Decision]:
    """It is said on the groups that nothing is held for them any more."""
    for key in state.nominations.take_ended():
        top = state.forest.groups.get(key)
        if top is None or not top.exists:
            continue
        for group in top.subtree():
            if not group.counts.expecting:
                continue
            text = ended_text(group, state.config.expected_members_timeout)
            condition = state.conditions.initially_scheduled(group, "False", MISSING, text)
            if condition is not None:
                yield condition
                yield RecordEvent(group.ref, "Warning", MISSING, "Scheduling", text[:MOST_NOTE])
