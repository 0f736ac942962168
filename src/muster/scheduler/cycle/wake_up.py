"""Which waiting entities are tried again: those that a change since their last attempt could help, one class at a time.

Classes that a change concerns are found in one array pass (room) or by terms and plugins (rules). In the order of the
line each is then checked by counting; the first that passes gets its turn, before anything lower in line. What is left
after that turn decides about the next. A class that does not pass is not tried, nor is one whose last attempt knew of
the change already.
"""

from __future__ import annotations

from muster.scheduler.cycle.connected_pods import is_connected
from muster.scheduler.cycle.fit_check import Rooms, most_that_fit
from muster.scheduler.placement.request import shapes_of
from muster.scheduler.queue.entity import EntityState
from muster.scheduler.queue.waiting_classes import WaitingClass
from muster.scheduler.state.scheduler_state import SchedulerState

MOST_CHECKS = 128  # classes in one cycle: about 25 ms, 60 ms on a busy machine


def wake_waiting(state: SchedulerState, now: float) -> bool:
    """Put the first entities in line that could fit now; False if there were too many to check in this cycle."""
    signals, queue = state.signals, state.queue
    if queue.has_woken:
        return True
    if not signals.pending:
        return _check_by_timer(state, now)
    if not len(queue.waiting):
        signals.clear()
        return True
    rooms = Rooms(state)
    concerned = sorted(_concerned(state, rooms), key=lambda waiting: waiting.first().sort_key)
    for number, waiting in enumerate(concerned):
        if number == MOST_CHECKS:
            return False
        count = most_that_fit(state, rooms, waiting)
        if count:
            _wake(state, waiting, count, concerned[number + 1 :], now)
            if queue.has_woken:
                return True
        else:
            queue.waiting.set_stamp(waiting, signals.stamp)
    signals.clear()
    return True


def _wake(state: SchedulerState, waiting: WaitingClass, count: int, others: list[WaitingClass], now: float) -> None:
    """As many of a class as its count allows, as long as no other class has its turn in between."""
    limit = min((other.first().sort_key for other in others), default=None)
    chosen = [waiting.first()] if count == 1 else waiting.in_order()[:count]
    for entity in chosen:
        if entity is chosen[0] or limit is None or entity.sort_key < limit:
            state.queue.wake(entity, now)


def _concerned(state: SchedulerState, rooms: Rooms) -> list[WaitingClass]:
    """The classes that a change after their last attempt could help."""
    signals, waiting = state.signals, state.queue.waiting
    found = {id(one): one for one in waiting.with_a_seat(signals.slots, rooms.of)}
    latest = max((*signals.pods.values(), *signals.evictable_pods.values(), *signals.plugins.values()), default=0)
    # Pods without anti-affinity can only matter to those whose own terms select them.
    pods = (*signals.pods, *(footprint for footprint, _ in signals.evictable_pods))
    selecting = any(footprint.pod.spec.affinity is not None for footprint in pods)
    for one in waiting if latest else ():
        if one.stamp < latest and id(one) not in found and _rule_may_be_over(state, one, selecting):
            found[id(one)] = one
    return list(found.values())


def _rule_may_be_over(state: SchedulerState, waiting: WaitingClass, selecting: bool) -> bool:
    signals, hints = state.signals, waiting.hints
    if hints.request is None:
        return False
    if any(signals.plugins.get(plugin, 0) > waiting.stamp for plugin in hints.plugins):
        return True
    if not hints.has_terms and not selecting:
        return False
    newer = signals.pods_since(waiting.stamp, hints.priority, preempts=hints.preempts)
    shapes = shapes_of(hints.request).values()
    return any(is_connected(shape, footprint, state.cluster) for footprint in newer for shape in shapes)


def wake_marking(state: SchedulerState, now: float) -> None:
    """Entities whose victims are only marked so far look again before anybody is evicted, if room appeared."""
    preempting = state.preemptions.entities()
    if not preempting or not state.signals.pending:
        return
    rooms = Rooms(state)
    for key in preempting:
        preemption, entity = state.preemptions.get(key), state.queue.entities.get(key)
        if preemption is None or not preemption.marked or entity is None or entity.state is not EntityState.PREEMPTING:
            continue
        waiting = state.queue.waiting.get(entity.hints.key)
        if waiting is not None and waiting.stamp < state.signals.stamp and most_that_fit(state, rooms, waiting):
            state.queue.wake(entity, now)


# --- undecided -------------------------------------------------------------------------------------


def wake_undecided(state: SchedulerState, now: float) -> None:
    """The first of each undecided class that any change came after: room that was lost can have decided about it."""
    for waiting in _undecided_before(state):
        if state.queue.retry_at(waiting.first()) <= now:
            waiting.version = state.version  # the verdict of the first is that of all
            state.queue.wake(waiting.first(), now)


def next_undecided(state: SchedulerState) -> float | None:
    """When the next undecided entity is due."""
    return min((state.queue.retry_at(waiting.first()) for waiting in _undecided_before(state)), default=None)


def _undecided_before(state: SchedulerState) -> list[WaitingClass]:
    return [waiting for waiting in state.queue.waiting.undecided() if waiting.version != state.version]


# --- the fallback ----------------------------------------------------------------------------------


def _check_by_timer(state: SchedulerState, now: float) -> bool:
    """Classes whose last attempt was in another state of the cluster than now, and that pass the check.

    What this finds was missed: a change that mattered was not signalled.
    """
    rooms = Rooms(state)
    for _ in range(MOST_CHECKS):
        waiting = state.queue.next_unchecked()
        if waiting is None:
            return True
        if waiting.version == state.version:
            continue
        if waiting.hints.request is None or most_that_fit(state, rooms, waiting):
            state.queue.wake(waiting.first(), now, by_timer=True)
            if state.queue.has_woken:
                return True
    return not state.queue.has_unchecked
