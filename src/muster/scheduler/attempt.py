"""One root, one snapshot, one verdict: plan, check, and turn the outcome into decisions.

A placed root is assumed and bound; a root that cannot be placed tries preemption and otherwise is parked
with words on every object it concerns. Nothing of a failed root binds, and no attempt both binds and evicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from muster.scheduler import evicting
from muster.scheduler.conditions import POD_SCHEDULED
from muster.scheduler.decisions import Bind, Decision, Emit, KeepVolume, Nominate, Ref, SelectNode
from muster.scheduler.demands import demand_of
from muster.scheduler.faults import Fault, find_fault
from muster.scheduler.groups import Group, Member
from muster.scheduler.planning import plan, validate
from muster.scheduler.planning.demand import Demand, Leaf, leaves
from muster.scheduler.planning.verdict import Budget, Infeasible, Judging, Placed, Seat, Undecided, Verdict
from muster.scheduler.queue import BINDING, PREEMPTING, Lack, Root, Want
from muster.scheduler.refusals import Refusals
from muster.scheduler.shapes import Shape
from muster.scheduler.storage import bound
from muster.scheduler.waiting import incomplete_above, own_wait
from muster.scheduler.words import say_verdict
from muster.scheduler.world import Judged, World

RETRY_FACTOR = 10  # an undecided search is repeated once, with so many times the steps
MOST_WANTS = 16  # distinct shapes a parked root is listed under
MOST_NOTE = 1024  # the API cuts event notes here


class Outcome:
    """A verdict with what is needed to explain it."""

    __slots__ = ("demand", "judging", "refusals", "verdict")

    def __init__(self, demand: Demand, verdict: Verdict, refusals: dict[int, Refusals], judging: Judging) -> None:
        self.demand = demand
        self.verdict = verdict
        self.refusals = refusals  # shape id -> why not one more of it fits anywhere
        self.judging = judging


def attempt(world: World, root: Root, now: float) -> list[Decision]:
    """Try a root once."""
    fault = find_fault(root.group, world.forest) if root.group is not None else None
    if fault is not None:
        return list(_reject(world, root, fault, now))
    demand = current_demand(world, root)
    promised = evicting.promised(world, root, demand)
    if promised is not None:
        return list(_commit(world, root, promised))
    outcome = evaluate(world, root, demand)
    if outcome.judging.domains:
        world.judged.append(Judged(world.scheduler_of(root), outcome.judging.domains, outcome.judging.feasible))
    match outcome.verdict:
        case Placed() as placed:
            wrong = validate(placed, outcome.demand, world.cluster, held=world.held_against(root))
            if wrong is not None:
                return list(_reject(world, root, Fault("SchedulerError", f"the plan was refused: {wrong}"), now))
            return list(_commit(world, root, placed))
        case Infeasible():
            decisions = evicting.make_room(world, root, demand, now)
        case Undecided():
            decisions = evicting.keep_waiting(world, root, demand)
    return decisions if root.state == PREEMPTING else [*decisions, *_park(world, root, outcome, now)]


def evaluate(world: World, root: Root, demand: Demand | None = None, evicted: Iterable[str] = ()) -> Outcome:
    """What could be done for a root now, for another demand, or without some pods; changes nothing."""
    demand = demand or current_demand(world, root)
    steps = world.config.budget_steps
    with world.cluster.trial() as trial:
        for shape, slot in world.held_against(root):
            trial.place(shape, slot)
        trial.evict_all(evicted)
        judging = Judging()
        verdict = plan(demand, trial, Budget(steps), judging=judging)
        if isinstance(verdict, Undecided):
            verdict = plan(demand, trial, Budget(steps * RETRY_FACTOR), judging=judging)
        refusals: dict[int, Refusals] = {}
        if not isinstance(verdict, Placed):
            for shape in _shapes(world, root):
                if not trial.seats(shape).any():
                    refusals[shape.id] = trial.why_not(shape)
    return Outcome(demand, verdict, refusals, judging)


def current_demand(world: World, root: Root) -> Demand:
    """What a root asks for. A selector met for the first time tells pods apart anew: then shapes are asked again."""
    while True:
        known = len(world.cluster.tallies.keys)
        demand = demand_of(root, world.shape_of, world.domain_of)
        if len(world.cluster.tallies.keys) == known:
            return demand


def _shapes(world: World, root: Root) -> list[Shape]:
    seen: dict[int, Shape] = {}
    for member in world.members_of(root):
        shape = world.shape_of(member)
        seen.setdefault(shape.id, shape)
    return list(seen.values())[:MOST_WANTS]


# --- success ---------------------------------------------------------------------------------------


def _commit(world: World, root: Root, placed: Placed) -> Iterator[Decision]:
    yield from evicting.call_off(world, root)
    yield from take_seats(world, [(root, seat) for seat in placed.seats])
    root.verdict, root.message = "Placed", ""
    for member in world.members_of(root) if root.group is not None else ():
        yield from _tell_pod(world, member, "there was no room for this pod beside the members that were placed")


def take_seats(world: World, seated: Sequence[tuple[Root, Seat]]) -> Iterator[Decision]:
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


def _ask_for_volumes(world: World, member: Member, claims: Iterable[str]) -> Iterator[Decision]:
    """Claims that waited for their pod: a free volume that was counted on is kept for them, or one is made there."""
    storage = world.cluster.storage
    namespace = member.ref.namespace
    for name in claims:
        key = (namespace, name)
        claim = storage.claims.get(key)
        if claim is None or bound(claim):
            continue
        ref = Ref("PersistentVolumeClaim", namespace, name, claim.metadata.uid)
        kept = storage.reservations.kept_for(key)
        yield KeepVolume(kept, ref) if kept else SelectNode(ref, storage.first_user(key))


# --- failure ---------------------------------------------------------------------------------------


def _reject(world: World, root: Root, fault: Fault, now: float) -> Iterator[Decision]:
    """A tree with a fault: said on every object, tried again only when one of them changes."""
    yield from evicting.call_off(world, root)
    yield from _clear_nominations(world, root)
    if root.group is not None:
        yield from tell_groups(world, root.group.subtree(), lambda group: fault)
    for member in world.members_of(root):
        yield from _tell_pod(world, member, fault.message, reason="SchedulerError")
    world.queue.park(root, Lack(), now)
    root.verdict, root.message = fault.reason, fault.message


def _park(world: World, root: Root, outcome: Outcome, now: float) -> Iterator[Decision]:
    verdict = outcome.verdict
    assert not isinstance(verdict, Placed)
    reason = "PlacementNotGuaranteed" if isinstance(verdict, Undecided) else "Unschedulable"
    yield from _clear_nominations(world, root)
    if root.group is not None:
        yield from tell_groups(world, root.group.subtree(), lambda group: _word_of(group, reason, verdict))
    text = say_verdict(verdict, root.key)
    root.verdict, root.message = reason, text
    for member in world.members_of(root):
        refusal = outcome.refusals.get(world.shape_of(member).id)
        own = refusal.text() if refusal is not None else f"pod group is unschedulable, {text}"
        yield from _tell_pod(world, member, text if isinstance(verdict, Undecided) else own)
    was_woken = root.epoch == world.queue.epoch
    lack = _lack(outcome)
    if root.key in world.awaiting_binds:
        world.awaiting_binds.discard(root.key)
        lack.culprits |= {evicting.IN_FLIGHT}
    world.queue.park(root, lack, now)
    if was_woken:
        world.queue.pass_on(root, world.capacity, now)


def tell_groups(
    world: World, groups: Iterable[Group], word_of: Callable[[Group], tuple[str, str]]
) -> Iterator[Decision]:
    """The False condition of every group of a failed tree, with an event when the verdict changed."""
    for group in groups:
        reason, message = word_of(group)
        said = world.conditions.initially_scheduled(group, "False", reason, message)
        if said is not None:
            yield said
            yield Emit(group.ref, "Warning", "FailedScheduling", "Scheduling", message[:MOST_NOTE])


def _word_of(group: Group, reason: str, verdict: Infeasible | Undecided) -> tuple[str, str]:
    """A group without its members waits for them, whatever became of the rest of its tree."""
    if not group.admissible:
        return own_wait(group)
    return reason, incomplete_above(group) or say_verdict(verdict, group.key)


def _tell_pod(world: World, member: Member, message: str, reason: str = "Unschedulable") -> Iterator[Decision]:
    world.conditions.learn(member.uid, member.pod.status.conditions)
    said = world.conditions.say(member.ref, POD_SCHEDULED, "False", reason, message)
    if said is not None:
        yield said
        yield Emit(member.ref, "Warning", "FailedScheduling", "Scheduling", message[:MOST_NOTE])


def _clear_nominations(world: World, root: Root) -> Iterator[Decision]:
    """A failed attempt keeps no seat, whichever cycle nominated it."""
    world.release(root.key)
    for member in world.members_of(root):
        if member.pod.status.nominated_node_name or member.nominated:
            member.nominated = ""
            yield Nominate(member.ref, "")


def _lack(outcome: Outcome) -> Lack:
    """What a change must bring before another attempt is worth its cost."""
    demand = outcome.demand
    culprits = frozenset(
        culprit for refusal in outcome.refusals.values() for culprit in refusal.culprits if isinstance(culprit, str)
    )
    strong = _one_want(demand)
    if strong is not None and isinstance(outcome.verdict, Infeasible):
        return Lack((strong,), culprits)
    shapes: dict[int, Shape] = {}
    for leaf in leaves(demand):
        for member in leaf.members:
            shapes.setdefault(member.shape.id, member.shape)
    wants = tuple(Want(shape, 1, weak=True) for shape in list(shapes.values())[:MOST_WANTS])
    return Lack(wants, culprits)


def _one_want(demand: Demand) -> Want | None:
    """A root of one leaf and one independent shape lacks exactly so many seats, countable at once."""
    if not isinstance(demand, Leaf) or demand.domains or not demand.members:
        return None
    shape = demand.members[0].shape
    if not shape.independent or any(member.shape.id != shape.id for member in demand.members):
        return None
    return Want(shape, max(1, demand.need), demand.topology)
