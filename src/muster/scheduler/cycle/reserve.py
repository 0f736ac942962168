"""Which groups hold a reservation, and where: chosen, computed again when something changed, and dropped.

A group that has been waiting for longer than the configured patience, and is complete, is entitled to have room kept
for it; for each scheduler name the first ones in the order of the queue hold a reservation. Nothing here depends on
what was decided before: the same objects at the same time give the same reservations, so they survive a restart.

Computing them is paced: at most once a second, and less often where a computation takes many placements.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from muster.api import groups as api
from muster.scheduler.cache.run_times import overstays_from, seconds_of
from muster.scheduler.cycle.evaluate import current_request
from muster.scheduler.cycle.holders import learn_times
from muster.scheduler.cycle.soonest_place import Place, known_start, soonest_place
from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups.group import Group
from muster.scheduler.groups.validity import find_fault
from muster.scheduler.interface.decisions import MOST_NOTE, Decision, RecordEvent
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, groups
from muster.scheduler.preemption.resolvability import worth_preempting_for
from muster.scheduler.queue.entity import EntityState, QueuedEntity
from muster.scheduler.state.reservations import DISTRUST_SECONDS, Reservation
from muster.scheduler.state.scheduler_state import SchedulerState, owner_of
from muster.scheduler.status.kept_room import KEPT, kept_text, start_text, where_text, with_kept_room

Wait = tuple[QueuedEntity, float]  # an entity, and since when it waits or is entitled to a reservation

WAITING = frozenset((EntityState.ACTIVE, EntityState.BACKOFF, EntityState.UNSCHEDULABLE))
FAILED = ("Unschedulable", "PlacementNotGuaranteed")  # outcomes that a condition says

INTERVAL = 1.0  # seconds between two computations
CELLS_PER_SECOND = 50_000  # pods, and nodes times placements: a computation is followed by a pause in proportion
MOST_TRIED = 16  # groups for which a place is looked for in one computation

MADE, MOVED, ENDED, OVERSTAYED = "made", "moved", "ended", "overstayed"


# --- when ------------------------------------------------------------------------------------------


def review(state: SchedulerState, now: float) -> Iterator[Decision]:
    """Bring the reservations up to date, if that is due; what changed is said on the groups."""
    reservations = state.reservations
    reservations.now = now
    if not state.config.reservations.enabled:
        return
    for reservation in list(reservations):
        if _settled(state, reservation):
            reservations.drop(reservation.entity)
            _signal(state, reservation)
    if not _is_due(state, now):
        return
    waits = _waits(state, now)
    entitled = _said_to_hold(waits) if reservations.as_said else _patient(state, waits, now)
    yield from _report_overstays(state, now)
    found, placements = derive(state, entitled, now)
    if reservations.learning:
        return  # it goes on in the next cycle
    before = {each.entity: each for each in reservations}
    reservations.replace_all(found)
    reservations.asked, reservations.version = False, state.version
    pace = (len(state.cluster.pods) + placements * len(state.cluster.index)) / CELLS_PER_SECOND
    reservations.not_before = now + max(INTERVAL, pace)
    reservations.due = min(_times(state, waits, now), default=None)
    yield from _report_changes(state, before)


def next_due(state: SchedulerState) -> float | None:
    """When the reservations are to be reviewed even if no event comes."""
    reservations = state.reservations
    if not state.config.reservations.enabled:
        return None
    changed = reservations.asked or (bool(reservations) and reservations.version != state.version)
    if not changed:
        return reservations.due
    return reservations.not_before if reservations.due is None else min(reservations.due, reservations.not_before)


def _is_due(state: SchedulerState, now: float) -> bool:
    due = next_due(state)
    return due is not None and due <= now


def _settled(state: SchedulerState, reservation: Reservation) -> bool:
    """Whether the entity is gone, is being bound, waits for victims, or lacks something."""
    entity = state.queue.entities.get(reservation.entity)
    return entity is None or entity.uid != reservation.uid or entity.state not in WAITING


def _times(state: SchedulerState, waits: list[Wait], now: float) -> Iterator[float]:
    """When patience ends, and when pods on kept nodes overstay."""
    patience = state.config.reservations.patience
    yield from (since + patience for _, since in waits if since + patience > now)
    for reservation in state.reservations:
        for uid in _pods_on(state, reservation):
            until = overstays_from(state.forest.members[uid].pod, now)
            if until is not None and until > now:
                yield until


# --- who -------------------------------------------------------------------------------------------


def waiting_since(entity: QueuedEntity, now: float) -> float | None:
    """Since when a complete group has been said to wait; None for everything that holds no reservation."""
    group = entity.group
    if group is None or entity.state not in WAITING or group.quorum_bound or not group.pending_below:
        return None
    types = _CONDITIONS if not group.scheduled_once else (api.QUORUM_MET,)
    conditions = group.obj.status.conditions if group.obj is not None else None
    for condition in conditions or ():
        if condition.type in types and condition.status == "False":
            return seconds_of(condition.last_transition_time)
    return math.floor(now)  # it is about to be said


_CONDITIONS = (api.POD_GROUP_INITIALLY_SCHEDULED, api.POD_GROUP_SCHEDULED, api.COMPOSITE_INITIALLY_SCHEDULED)


def _waits(state: SchedulerState, now: float) -> list[Wait]:
    """Seats are nominated for entities whose victims leave; after a restart that is known before their first cycle."""
    served = state.nominations.entities()
    entities = (entity for entity in state.queue.entities.values() if entity.key not in served)
    found = ((entity, waiting_since(entity, now)) for entity in entities)
    return [(entity, since) for entity, since in found if since is not None]


def _patient(state: SchedulerState, waits: list[Wait], now: float) -> list[Wait]:
    """The entities whose patience is over, and since when."""
    patience = state.config.reservations.patience
    return [(entity, since + patience) for entity, since in waits if since + patience <= now]


def _said_to_hold(waits: list[Wait]) -> list[Wait]:
    return [wait for wait in waits if KEPT in _message_of(wait[0])]


def derive(state: SchedulerState, entitled: list[Wait], now: float) -> tuple[list[Reservation], int]:
    """The reservations that entitled entities hold at this time, and how many placements were tried for them.

    Those that are said to hold one do: whoever asks does not know the settings of the scheduler that said so. While the
    times of pods are being learned there are none yet.
    """
    state.reservations.learning = False
    most, profiles, as_said = state.config.reservations.most, state.config.profiles, state.reservations.as_said
    found: list[Reservation] = []
    held: Counter[str] = Counter()
    tried = placements = 0
    for entity, since in sorted(entitled, key=lambda each: each[0].sort_key):
        scheduler = scheduler_name(entity)
        if not as_said and (tried >= MOST_TRIED or all(held[name] >= most for name in profiles)):
            break
        if not as_said and (scheduler not in profiles or held[scheduler] >= most):
            continue
        tried += 1
        reservation, count = reserve(state, entity, found, since, now)
        if state.reservations.learning:
            return [], 0
        placements += count
        if reservation is not None:
            found.append(reservation)
            held[scheduler] += 1
    return found, placements


def adopt_said(state: SchedulerState, now: float) -> None:
    """From now on, the groups hold reservations that are said to hold one on their conditions: for questions."""
    state.reservations.now, state.reservations.as_said = now, True
    found, _ = derive(state, _said_to_hold(_waits(state, now)), now)
    while state.reservations.learning:
        found, _ = derive(state, _said_to_hold(_waits(state, now)), now)
    state.reservations.replace_all(found)


def expected_start(state: SchedulerState, entity: QueuedEntity) -> float | None:
    """When a waiting entity will fit, if it is known when the pods in its way end and nobody comes before it."""
    reservation = state.reservations.get(entity.key)
    if reservation is not None:
        return reservation.start
    if entity.state not in WAITING or (entity.group is not None and find_fault(entity.group, state.forest)):
        return None
    request = current_request(state, entity)
    if not worth_preempting_for(request, state.evaluator):
        return None
    return known_start(state, entity.key, request, state.nominated_against(entity), state.reservations.now)


def _message_of(entity: QueuedEntity) -> str:
    conditions = entity.group.obj.status.conditions if entity.group is not None and entity.group.obj else None
    return next((c.message for c in conditions or () if c.type in _CONDITIONS), "")


def scheduler_name(entity: QueuedEntity) -> str:
    """The scheduler that a tree's pending pods name."""
    assert entity.group is not None
    pending = (member for leaf in entity.group.leaves() for member in leaf.pending.values())
    first = next(pending, None)
    return first.traits[0] if first is not None else ""


def reserve(
    state: SchedulerState, entity: QueuedEntity, earlier: list[Reservation], since: float, now: float
) -> tuple[Reservation | None, int]:
    """The reservation of an entity beside those of earlier ones, and how many placements were tried for it."""
    assert entity.group is not None
    if find_fault(entity.group, state.forest) is not None:
        return None, 0
    request = current_request(state, entity)
    if request.satisfied or not worth_preempting_for(request, state.evaluator):
        return None, 0
    state.reservations.learning = not learn_times(state, now)
    if state.reservations.learning:
        return None, 0
    kept: list[tuple[Shape, int]] = state.nominations.against(entity.key, entity.priority)
    kept += [(shape, state.cluster.index[node]) for each in earlier for shape, node in each.seats]
    place, placements = soonest_place(state, entity.key, request, kept, now)
    if place is None:
        return None, placements
    return _reservation(entity, request, place, since), placements


def _reservation(entity: QueuedEntity, request: GroupRequest, place: Place, since: float) -> Reservation:
    shapes = {m.uid: m.shape for group in groups(request) for m in getattr(group, "members", ())}
    domain_of = dict(place.placed.domains)
    domains = ((group.topology, domain_of[group.key]) for group in groups(request) if group.key in domain_of)
    start = place.start if place.leaving else since
    return Reservation(
        entity.key,
        entity.uid,
        scheduler_name(entity),
        entity.priority,
        tuple(dict.fromkeys(domains)),
        tuple((shapes[assignment.uid], assignment.node) for assignment in place.placed.assignments),
        tuple(sorted(holder.uid for holder in place.leaving)),
        since,
        None if start is None else float(math.ceil(start)),
    )


# --- what is said ----------------------------------------------------------------------------------


def text_of(state: SchedulerState, key: EntityKey) -> str:
    """The words about the room that is kept for an entity; empty without a reservation."""
    reservation = state.reservations.get(key)
    if reservation is None:
        return ""
    return kept_text(reservation.domains, sorted(reservation.nodes), reservation.start)


def _report_changes(state: SchedulerState, before: dict[EntityKey, Reservation]) -> Iterator[Decision]:
    after = {each.entity: each for each in state.reservations}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None and (old.place, old.start) == (new.place, new.start):
            continue
        if old is not None:
            _signal(state, old)
        for slot in _slots(state, new) if new is not None else ():
            state.signals.taken(slot)
        entity = state.queue.entities.get(key)
        if entity is None or entity.group is None:
            continue
        yield from _report_event(state, entity.group, old, new)
        if entity.reason in FAILED:
            text = with_kept_room(entity.message, text_of(state, key))
            condition = state.conditions.initially_scheduled(entity.group, "False", entity.reason, text)
            if condition is not None:
                yield condition


def _report_event(
    state: SchedulerState, group: Group, old: Reservation | None, new: Reservation | None
) -> Iterator[Decision]:
    if new is None:
        assert old is not None
        state.measurements.add_reservation(ENDED)
        note = f"room is no longer kept {_where(old)}"
        yield RecordEvent(group.ref, "Normal", "ReservationEnded", "Scheduling", note[:MOST_NOTE])
        return
    if old is not None and old.place == new.place:
        return
    pods = len(new.leaving)
    wait = f"{pods} pods have to leave first, expected start {start_text(new.start)}"
    if old is None:
        state.measurements.add_reservation(MADE)
        note = f"room is kept {_where(new)}: {wait}"
        yield RecordEvent(group.ref, "Normal", "RoomReserved", "Scheduling", note[:MOST_NOTE])
        return
    state.measurements.add_reservation(MOVED)
    takers = _takers(state, old)
    why = f", because {takers} took room there" if takers else ""
    note = f"room is kept {_where(new)} instead of {_where(old)}{why}: {wait}"
    yield RecordEvent(group.ref, "Normal", "ReservationMoved", "Scheduling", note[:MOST_NOTE])


def _where(reservation: Reservation) -> str:
    return where_text(reservation.domains, sorted(reservation.nodes))


def _takers(state: SchedulerState, old: Reservation) -> str:
    """The pods of a higher priority on nodes that were kept, and were not among those that had to leave."""
    members = (state.forest.members[uid] for uid in _pods_on(state, old) if uid not in old.leaving)
    names = sorted(m.ref.name for m in members if m.traits[1] > old.priority)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def _report_overstays(state: SchedulerState, now: float) -> Iterator[Decision]:
    """Pods on kept nodes that are still there although they were to be gone. They are left alone."""
    reservations = state.reservations
    reservations.forget_promises()
    for reservation in reservations:
        group = state.forest.groups.get(reservation.entity)
        for uid in _pods_on(state, reservation):
            member = state.forest.members[uid]
            if member.pod.metadata.deletion_timestamp is not None:
                continue
            until = overstays_from(member.pod, now)
            if until is None or until > now:
                continue
            if reservations.overstays(uid, owner_of(member), until + DISTRUST_SECONDS) and group is not None:
                state.measurements.add_reservation(OVERSTAYED)
                note = f"pod {member.ref.namespace}/{member.ref.name} was to be gone and still runs on {member.node}"
                yield RecordEvent(group.ref, "Warning", "PodOverstays", "Scheduling", note[:MOST_NOTE], member.ref)


def _pods_on(state: SchedulerState, reservation: Reservation) -> list[str]:
    slots = _slots(state, reservation)
    pods = (entry.pod.metadata.uid for slot in slots for entry in state.cluster.pods_on(slot))
    return [uid for uid in pods if uid in state.forest.members]


def _signal(state: SchedulerState, reservation: Reservation) -> None:
    """Room that was kept may be used again."""
    for slot in _slots(state, reservation):
        state.signals.capacity(slot)


def _slots(state: SchedulerState, reservation: Reservation) -> list[int]:
    """Of the nodes on which room is kept, those that exist."""
    index = state.cluster.index
    return [index[node] for node in sorted(reservation.nodes) if node in index]
