"""Housekeeping: what a cycle does before it takes the next entity in line.

Decisions of event handlers, timers, trees that may have become invalid, groups that reached or lost their minimum,
entities that a change could help, wait reasons, deletions of marked victims, and trees that were bound in part for
too long.
"""

from __future__ import annotations

from collections.abc import Iterator

from muster.scheduler.cycle import enqueue, give_back, held_seats, pod_signals, preempt, reserve
from muster.scheduler.cycle.report import report_fault, report_waits
from muster.scheduler.cycle.wake_up import next_undecided, wake_marking, wake_undecided
from muster.scheduler.groups.group import Group
from muster.scheduler.groups.validity import INVALID, TreeFault, find_fault, mixed_schedulers
from muster.scheduler.interface.decisions import Decision
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.scheduler_state import SchedulerState


def housekeeping(state: SchedulerState, now: float) -> Iterator[Decision]:
    """Everything that is due now, in order."""
    yield from state.conditions.take_posted()
    state.queue.flush_timers(now)
    yield from _validate_trees(state, now)
    yield from _review_groups(state, now)
    yield from _review_held_seats(state, now)
    yield from reserve.review(state, now)
    _look_again(state, now)
    yield from _report_waits(state, now)
    yield from preempt.proceed(state, now)
    yield from give_back.give_back(state, now)


def next_due(state: SchedulerState) -> float | None:
    """When something becomes due even if no event comes."""
    due = list(state.checks.due_times(state.config.bind_timeout))
    times = (
        state.queue.next_due(),
        state.notices.next_due(),
        state.preemptions.next_expiry(),
        reserve.next_due(state),
        next_undecided(state),
        state.nominations.next_deadline(),
    )
    due += [time for time in times if time is not None]
    return min(due, default=None)


def _look_again(state: SchedulerState, now: float) -> None:
    """Victims that may be chosen again, preemptions whose plan holds no longer, what is undecided, the fallback."""
    for uid in state.preemptions.expire_refusals(now):
        pod_signals.evictable_again(state, uid)
    preempt.recheck(state)
    wake_marking(state, now)
    wake_undecided(state, now)
    state.queue.start_fallback(now)


# --- groups ----------------------------------------------------------------------------------------


def _validate_trees(state: SchedulerState, now: float) -> Iterator[Decision]:
    """Trees whose objects changed may have become invalid, or valid again."""
    for key in state.checks.take_trees():
        top = state.top(key)
        if top is None:
            state.checks.clear_fault(key)
            continue
        fault = _fault_of(state, top)
        if fault is not None:
            state.checks.set_fault(top.key, fault)
            yield from report_fault(state, top, fault)
            enqueue.review_tree(state, top, now)
        elif state.checks.clear_fault(top.key):
            enqueue.review_tree(state, top, now)


def _fault_of(state: SchedulerState, top: Group) -> TreeFault | None:
    """What makes a tree invalid whether it is complete or not; other faults are found when it is tried."""
    fault = find_fault(top, state.forest)
    if fault is not None and fault.reason == INVALID:
        return fault
    return mixed_schedulers(top) if top.pending_below and top.foreign_below else None


def _review_groups(state: SchedulerState, now: float) -> Iterator[Decision]:
    """Conditions of groups whose bound members changed, and of the groups above them."""
    changed: dict[EntityKey, Group] = {}
    for key in state.checks.take_groups():
        group = state.forest.groups.get(key)
        while group is not None and group.key not in changed:
            changed[group.key] = group
            group = group.parent if not group.cyclic else None
    for group in sorted(changed.values(), key=lambda g: (not g.is_leaf, g.key)):
        yield from state.conditions.review(group, state.preemptions.is_losing_pods)
        if group.expectation.later and state.checks.is_first_look(group.ref.uid):
            yield from held_seats.report_never_fits(state, group)
    for top in {g.root().key: g.root() for g in changed.values()}.values():
        state.checks.set_partly_bound(top.key, _is_partly_bound(state, top), now)


def _is_partly_bound(state: SchedulerState, top: Group) -> bool:
    """A tree that never ran as a whole, is bound in part and still queued."""
    # Without its root nobody knows whether the tree ran.
    partly = top.exists and not top.scheduled_once and not top.quorum_bound and top.counts.leaves_confirmed > 0
    return partly and not top.counts.expecting and top.key in state.queue.entities


def _review_held_seats(state: SchedulerState, now: float) -> Iterator[Decision]:
    """Seats of expected members that cannot be had any more are looked for anew; after a time they are given back."""
    for key in (*held_seats.time_out(state, now), *held_seats.lost_seats(state)):
        top = state.top(key)
        if top is not None:
            enqueue.review_tree(state, top, now)
    yield from held_seats.report_ended(state)


# --- waiting ---------------------------------------------------------------------------------------


def _report_waits(state: SchedulerState, now: float) -> Iterator[Decision]:
    """Conditions and events with what incomplete trees wait for."""
    for key in state.notices.due(now):
        top = state.forest.groups.get(key)
        entity = state.queue.entities.get(key)
        if top is None or entity is None or state.checks.is_invalid(key):
            state.notices.stop(key)
            continue
        yield from report_waits(state, entity, top, pods=state.notices.pods_due(key, top.pending_below, now))
