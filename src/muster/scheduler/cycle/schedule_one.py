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


def attempt(world: SchedulerState, root: QueuedEntity, now: float) -> list[Decision]:
    """Try a root once."""
    fault = find_fault(root.group, world.forest) if root.group is not None else None
    if fault is not None:
        return list(_reject(world, root, fault, now))
    demand = current_request(world, root)
    promised = preempt.promised(world, root, demand)
    if promised is not None:
        return list(_commit(world, root, promised))
    outcome = evaluate(world, root, demand)
    if outcome.judging.domains:
        world.judged.append(Judged(world.scheduler_of(root), outcome.judging.domains, outcome.judging.feasible))
    match outcome.verdict:
        case Placed() as placed:
            wrong = validate(placed, outcome.demand, world.cluster, held=world.held_against(root))
            if wrong is not None:
                return list(_reject(world, root, TreeFault("SchedulerError", f"the plan was refused: {wrong}"), now))
            return list(_commit(world, root, placed))
        case Infeasible():
            decisions = preempt.make_room(world, root, demand, now)
        case Undecided():
            decisions = preempt.keep_waiting(world, root, demand)
    return decisions if root.state == PREEMPTING else [*decisions, *_park(world, root, outcome, now)]


# --- success ---------------------------------------------------------------------------------------


def _commit(world: SchedulerState, root: QueuedEntity, placed: Placed) -> Iterator[Decision]:
    yield from preempt.call_off(world, root)
    yield from take_seats(world, [(root, seat) for seat in placed.seats])
    root.verdict, root.message = "Placed", ""
    for member in world.members_of(root) if root.group is not None else ():
        yield from _tell_pod(world, member, "there was no room for this pod beside the members that were placed")


def take_seats(world: SchedulerState, seated: Sequence[tuple[QueuedEntity, Assignment]]) -> Iterator[Decision]:
    """Count pods as seated from now on, and ask for their binds."""
    world.version += 1
    found = world.forest.members
    members = [found[seat.uid] for _, seat in seated]
    footprints = [world.shape_of(member).footprint for member in members]
    nodes = [seat.node for _, seat in seated]
    pods = [member.pod for member in members]
    world.cluster.assume_many(zip(pods, footprints, nodes, strict=True))
    world.forest.assume(zip(members, nodes, strict=True))
    for (root, _), member, footprint, node in zip(seated, members, footprints, nodes, strict=True):
        root.in_flight.add(member.uid)
        if footprint.claims:
            yield from _ask_for_volumes(world, member, footprint.claims)
        yield Bind(member.ref, node)
    for root in {root.key: root for root, _ in seated}.values():
        world.queue.settle(root)
        world.queue.set_aside(root, BINDING)


def _ask_for_volumes(world: SchedulerState, member: Member, claims: Iterable[str]) -> Iterator[Decision]:
    """Claims that waited for their pod: a free volume that was counted on is kept for them, or one is made there."""
    storage = world.cluster.storage
    namespace = member.ref.namespace
    for name in claims:
        key = (namespace, name)
        claim = storage.claims.get(key)
        if claim is None or bound(claim):
            continue
        ref = ObjectRef("PersistentVolumeClaim", namespace, name, claim.metadata.uid)
        kept = storage.reservations.kept_for(key)
        yield PromiseVolume(kept, ref) if kept else SelectVolumeNode(ref, storage.first_user(key))


# --- failure ---------------------------------------------------------------------------------------


def _reject(world: SchedulerState, root: QueuedEntity, fault: TreeFault, now: float) -> Iterator[Decision]:
    """A tree with a fault: said on every object, tried again only when one of them changes."""
    yield from preempt.call_off(world, root)
    yield from _clear_nominations(world, root)
    if root.group is not None:
        yield from tell_groups(world, root.group.subtree(), lambda group: fault)
    for member in world.members_of(root):
        yield from _tell_pod(world, member, fault.message, reason="SchedulerError")
    world.queue.park(root, RequeueHints(), now)
    root.verdict, root.message = fault.reason, fault.message


def _park(world: SchedulerState, root: QueuedEntity, outcome: Evaluation, now: float) -> Iterator[Decision]:
    verdict = outcome.verdict
    assert not isinstance(verdict, Placed)
    reason = "PlacementNotGuaranteed" if isinstance(verdict, Undecided) else "Unschedulable"
    yield from _clear_nominations(world, root)
    if root.group is not None:
        yield from tell_groups(world, root.group.subtree(), lambda group: _word_of(group, reason, verdict))
    text = message_of(verdict, root.key)
    root.verdict, root.message = reason, text
    for member in world.members_of(root):
        refusal = outcome.refusals.get(world.shape_of(member).id)
        own = refusal.text() if refusal is not None else f"pod group is unschedulable, {text}"
        yield from _tell_pod(world, member, text if isinstance(verdict, Undecided) else own)
    was_woken = root.epoch == world.queue.epoch
    lack = _lack(world, outcome)
    if root.key in world.awaiting_binds:
        world.awaiting_binds.discard(root.key)
        lack.culprits |= {preempt.IN_FLIGHT}
    world.queue.park(root, lack, now)
    if was_woken:
        world.queue.pass_on(root, world.capacity, now)


def tell_groups(
    world: SchedulerState, groups: Iterable[Group], word_of: Callable[[Group], tuple[str, str]]
) -> Iterator[Decision]:
    """The False condition of every group of a failed tree, with an event when the verdict changed."""
    for group in groups:
        reason, message = word_of(group)
        said = world.conditions.initially_scheduled(group, "False", reason, message)
        if said is not None:
            yield said
            yield RecordEvent(group.ref, "Warning", "FailedScheduling", "Scheduling", message[:MOST_NOTE])


def _word_of(group: Group, reason: str, verdict: Infeasible | Undecided) -> tuple[str, str]:
    """A group without its members waits for them, whatever became of the rest of its tree."""
    if not group.admissible:
        return own_wait(group)
    return reason, incomplete_above(group) or message_of(verdict, group.key)


def _tell_pod(world: SchedulerState, member: Member, message: str, reason: str = "Unschedulable") -> Iterator[Decision]:
    world.conditions.learn(member.uid, member.pod.status.conditions)
    said = world.conditions.say(member.ref, POD_SCHEDULED, "False", reason, message)
    if said is not None:
        yield said
        yield RecordEvent(member.ref, "Warning", "FailedScheduling", "Scheduling", message[:MOST_NOTE])


def _clear_nominations(world: SchedulerState, root: QueuedEntity) -> Iterator[Decision]:
    """A failed attempt keeps no seat, whichever cycle nominated it."""
    world.release(root.key)
    for member in world.members_of(root):
        if member.pod.status.nominated_node_name or member.nominated:
            member.nominated = ""
            yield Nominate(member.ref, "")


def _lack(world: SchedulerState, outcome: Evaluation) -> RequeueHints:
    """What a change must bring before another attempt is worth its cost."""
    demand = outcome.demand
    culprits = frozenset(
        culprit for refusal in outcome.refusals.values() for culprit in refusal.culprits if isinstance(culprit, str)
    )
    strong = _one_want(world, demand)
    if strong is not None and isinstance(outcome.verdict, Infeasible):
        return RequeueHints((strong,), culprits)
    shapes: dict[int, Shape] = {}
    for leaf in leaves(demand):
        for member in leaf.members:
            shapes.setdefault(member.shape.id, member.shape)
    wants = tuple(CapacityHint(shape, 1, weak=True) for shape in list(shapes.values())[:MOST_WANTS])
    return RequeueHints(wants, culprits)


def _one_want(world: SchedulerState, demand: GroupRequest) -> CapacityHint | None:
    """A root of one leaf and one independent shape lacks exactly so many seats, countable at once."""
    if not isinstance(demand, PodGroupRequest) or demand.domains or not demand.members:
        return None
    shape = demand.members[0].shape
    if not world.evaluator.independent(shape) or any(member.shape.id != shape.id for member in demand.members):
        return None
    return CapacityHint(shape, max(1, demand.need), demand.topology)
