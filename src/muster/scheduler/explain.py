"""Why a root waits, from the same world and by the same planner as the decision itself.

Asking changes nothing that a decision depends on. Every sentence here is derived from a verdict with its proof, from
the objects of the tree or from the queue; `suggestions` adds what would help, each tried first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.scheduler import preemption, waiting
from muster.scheduler.attempt import Outcome, evaluate
from muster.scheduler.capacity import seats_when_empty
from muster.scheduler.cycle import Brain
from muster.scheduler.demands import root_key
from muster.scheduler.explanation import Domain, Explanation, Lack, Level, Rule, Said, Suggestion
from muster.scheduler.faults import find_fault, may_preempt
from muster.scheduler.groups import PENDING, Group, Member
from muster.scheduler.holders import holders, inside_of
from muster.scheduler.planning.demand import Demand, GroupKey, Leaf, leaves
from muster.scheduler.planning.verdict import Budget, Infeasible, Placed, Shortage, Undecided
from muster.scheduler.queue import FALLBACK_SECONDS, Root
from muster.scheduler.suggestions import suggest
from muster.scheduler.words import (
    is_resource,
    kind_word,
    nearest,
    say_amount,
    say_count,
    say_domain,
    say_place,
    say_shortage,
    short_key,
    shortages_of,
)
from muster.scheduler.world import World

MOST_HOLDERS = 5
MOST_DOMAINS = 3
MOST_RULES = 6
SCHEDULED = (
    "PodScheduled",
    "PodGroupInitiallyScheduled",
    "PodGroupScheduled",
    "CompositePodGroupInitiallyScheduled",
)

Found = Root | Group | Member


@dataclass(frozen=True, slots=True)
class Target:
    """What was asked about, and under what it is decided."""

    kind: str
    name: str
    found: Found


def find(brain: Brain, kind: str, namespace: str, name: str) -> Target | None:
    """The root under which an object is decided, the object itself if it waits for nothing, or None if unknown."""
    world = brain.world
    if kind == "Pod":
        wanted = (namespace, name)
        member = next((m for m in world.forest.members.values() if (m.ref.namespace, m.ref.name) == wanted), None)
        return Target(kind, name, _of_member(world, member)) if member is not None else None
    group = world.forest.groups.get(GroupKey(kind, namespace, name))
    if group is None or not group.seen:
        return None
    settled = group.pending_below == 0 and group.quorum_bound
    return Target(kind, name, group if settled else world.queue.roots.get(group.root().key, group))


def find_of_job(brain: Brain, namespace: str, name: str) -> Target | None:
    """A Job is explained by the root of one of its pods, a pending one if there is one."""
    world = brain.world
    pods = [m for m in world.forest.members.values() if m.ref.namespace == namespace and _is_of_job(m, name)]
    first = min(pods, key=lambda member: (member.state != PENDING, member.order), default=None)
    if first is None:
        return None
    found = _of_member(world, first)
    return Target("Job", name, first.group if isinstance(found, Member) and first.group is not None else found)


def _is_of_job(member: Member, job: str) -> bool:
    return any(owner.kind == "Job" and owner.name == job for owner in member.pod.metadata.owner_references or ())


def _of_member(world: World, member: Member) -> Found:
    return world.queue.roots.get(root_key(member), member) if member.state == PENDING else member


def explain(brain: Brain, target: Target) -> Explanation:
    """Say why."""
    found = target.found
    if isinstance(found, Member):
        return _of_pod(brain.world, found)
    if isinstance(found, Group):
        return _of_group(brain.world, found)
    return _of_root(brain, found, target)


# --- what is not in the queue ----------------------------------------------------------------------


def _of_pod(world: World, member: Member) -> Explanation:
    ref = member.ref
    where = f" on {member.node}" if member.node else ""
    words = {"running": f"runs{where}", "leaving": f"is being deleted{where}", "failed": f"has failed{where}"}
    words |= {"succeeded": f"has finished{where}", "pending": f"is about to be bound{where}"}
    sentence = f"pod {ref.name} {words[member.state]}"
    levels = tuple(_levels(world, member.group.root(), ())) if member.group is not None else ()
    return Explanation("Pod", ref.namespace, ref.name, "Running", sentence, member.traits[1], levels)


def _of_group(world: World, group: Group) -> Explanation:
    top = group.root()
    levels = tuple(_levels(world, top, ()))
    verdict, sentence, wakes = _say_group(world, group)
    priority = (group.obj.spec.priority or 0) if group.obj is not None else 0
    return Explanation(*group.key, verdict, sentence, priority, levels, condition=_said_of(group), wakes=wakes)


def _say_group(world: World, group: Group) -> tuple[str, str, str]:
    """Verdict, sentence and what it waits for, of a group without pending pods."""
    name = f"{kind_word(group.key.kind)} {group.key.name}"
    what = "members" if group.is_leaf else "child groups"
    have = f"{group.confirmed} of {group.minimum} {what} are bound"
    if group.quorum_bound:
        place = _say_home(world, group)
        return "Running", f"{name} waits for nothing: {have}{place}", ""
    if not group.scheduled_once:
        reason, missing = waiting.own_wait(group)
        return reason, f"{name} waits: {missing}", "the objects that are missing"
    text = f"{name} is below its minimum: {have}, and no pod of it is pending"
    return "BelowMinimum", text, "pods that take the place of those that are gone; whoever made them must make new ones"


def _say_home(world: World, group: Group) -> str:
    key = group.topology
    places = _places(world, group, key) if key else set[str]()
    return f", in {say_domain(key, places.pop())}" if key and len(places) == 1 else ""


# --- what is in the queue --------------------------------------------------------------------------


def _of_root(brain: Brain, root: Root, target: Target) -> Explanation:
    world = brain.world
    base = Explanation(
        *root.key,
        "",
        "",
        root.priority,
        since=root.created,
        position=_position(brain, root),
        waiting=len(world.queue.roots),
        condition=_said_of(root.group) if root.group is not None else _said(root.member),
    )
    fault = find_fault(root.group, world.forest) if root.group is not None else None
    if fault is not None:
        text = f"{_me(root)} cannot be scheduled as it is: {fault.message}"
        return _with(base, root, world, fault.reason, text, target, wakes="a change of one of its objects")
    if root.group is not None and not (root.group.seen and root.group.admissible and not root.group.gated):
        return _unready(world, root, base, target)
    if root.member is not None and root.member.gated:
        gates = ", ".join(gate.name for gate in root.member.pod.spec.scheduling_gates or ())
        text = f"{_me(root)} is held back by scheduling gates: {gates}"
        return _with(base, root, world, waiting.GATED, text, target, wakes="the removal of its scheduling gates")
    outcome = evaluate(world, root)
    if isinstance(outcome.verdict, Placed):
        ahead = f" after {say_count(base.position - 1, 'other')}" if base.position > 1 else ""
        text = f"{_me(root)} fits now and is bound when its turn comes{ahead}"
        return _with(base, root, world, "Placed", text, target, wakes="its turn")
    leaving = _leaving_suffice(world, root, outcome.demand)
    if leaving:
        text = f"{_me(root)} has its seats once {say_count(len(leaving), 'pod')} have left that are on their way out"
        wakes = "the end of " + _few(sorted(world.forest.members[uid].ref.name for uid in leaving))
        return _with(base, root, world, waiting.FOR_VICTIMS, text, target, wakes=wakes)
    return _stuck(brain, root, outcome, base, target)


def _with(
    base: Explanation,
    root: Root,
    world: World,
    verdict: str,
    sentence: str,
    target: Target,
    *,
    wakes: str,
    shortages: tuple[Shortage, ...] = (),
    demand: Demand | None = None,
    **more: object,
) -> Explanation:
    """The explanation with its tree; says first how the object that was asked about belongs to it."""
    import msgspec

    levels = tuple(_levels(world, root.group, shortages, demand)) if root.group is not None else ()
    if target.kind != "Job" and (target.kind, target.name) != (root.key.kind, root.key.name):
        sentence = f"{kind_word(target.kind)} {target.name} is decided together with its tree: {sentence}"
    return msgspec.structs.replace(base, verdict=verdict, sentence=sentence, levels=levels, wakes=wakes, **more)


def _unready(world: World, root: Root, base: Explanation, target: Target) -> Explanation:
    assert root.group is not None
    notices = {notice.group.key: notice for notice in waiting.notices(root.group)}
    asked = GroupKey(target.kind, root.key.namespace, target.name)
    own = notices.get(asked) or notices.get(root.key) or next(iter(notices.values()), None)
    if own is None:
        text = f"{_me(root)} does not exist, and {say_count(root.group.pending_below, 'pod')} name it"
        return _with(base, root, world, waiting.FOR_POD_GROUP, text, target, wakes="its creation")
    text = f"{kind_word(own.group.key.kind)} {own.group.key.name} waits: {own.message}"
    wakes = {
        waiting.FOR_PARENT: f"the creation of compositepodgroup {root.key.name}",
        waiting.GATED: "the removal of the scheduling gates",
        waiting.FOR_MEMBERS: "the pods that are missing",
    }.get(own.reason, "the pods and groups that are missing")
    target = Target(own.group.key.kind, own.group.key.name, target.found) if own.group.key == asked else target
    found = _with(base, root, world, own.reason, text, Target(root.key.kind, root.key.name, root), wakes=wakes)
    return found


def _leaving_suffice(world: World, root: Root, demand: Demand) -> list[str]:
    """Pods that are leaving, or marked to leave, after which the root fits."""
    going = sorted(world.going() | {uid for uid in world.orphans if uid in world.cluster.pods})
    if not going or not isinstance(evaluate(world, root, demand, going).verdict, Placed):
        return []
    return going


def _stuck(brain: Brain, root: Root, outcome: Outcome, base: Explanation, target: Target) -> Explanation:
    world, verdict = brain.world, outcome.verdict
    assert isinstance(verdict, Infeasible | Undecided)
    shortages = shortages_of(verdict)
    first = nearest(shortages, shortages[0].group) if shortages else None
    remark, where = "", ""
    if first is not None and first.domain:
        where = say_domain(first.topology, first.domain)
        remark = _say_never(world, outcome.demand, first)
    return _with(
        base,
        root,
        world,
        "Infeasible" if isinstance(verdict, Infeasible) else "Undecided",
        _say_stuck(world, root, outcome, first),
        target,
        wakes=_say_wakes(outcome.demand),
        shortages=shortages,
        demand=outcome.demand,
        remark=remark,
        rules=tuple(_rules(world, root))[:MOST_RULES],
        holders=holders(world, root.key, first, MOST_HOLDERS) if first is not None else (),
        held_in=where,
        preemption=_say_preemption(world, root, outcome),
        suggestions=tuple(suggest(brain, root, outcome)),
    )


# --- sentences -------------------------------------------------------------------------------------


def _me(root: Root) -> str:
    return f"{kind_word(root.key.kind)} {root.key.name}"


def _say_stuck(world: World, root: Root, outcome: Outcome, first: Shortage | None) -> str:
    group = root.group
    if isinstance(outcome.verdict, Undecided):
        what = "was not placed within the search budget, a place may exist"
    elif group is not None and group.quorum_bound:
        what = f"runs with its minimum, {say_count(group.pending_below, 'more pod')} find no place"
    elif group is not None and group.scheduled_once:
        things = "members" if group.is_leaf else "child groups"
        what = f"runs below its minimum ({group.confirmed} of {group.minimum} {things} are bound), the rest does not fit"
    else:
        what = "does not fit"
    refused = outcome.refusals.get(world.shape_of(root.member).id) if root.member is not None else None
    if refused is not None:
        return f"{_me(root)} {what}: {refused.text().rstrip('.')}"
    if first is None:
        return f"{_me(root)} {what}"
    whose = f"{kind_word(first.group.kind)} {first.group.name}: " if first.group != root.key else ""
    return f"{_me(root)} {what}: {whose}{say_shortage(first)}"


def _say_never(world: World, demand: Demand, first: Shortage) -> str:
    """Whether even empty domains are too small."""
    best = _most_when_empty(world, demand, first)
    if best is None or best >= first.needed:
        return ""
    noun = short_key(first.topology)
    return f"no {noun} can hold it as the nodes are: the largest would have {say_count(best, 'seat')} if it were empty"


def _most_when_empty(world: World, demand: Demand, first: Shortage) -> int | None:
    import numpy as np

    seats = _empty_seats(world, demand, first.group)
    if seats is None:
        return None
    sums = np.bincount(world.cluster.labels(first.topology), weights=seats)[1:]
    return int(sums.max()) if len(sums) else 0


def _say_preemption(world: World, root: Root, outcome: Outcome) -> str:
    if isinstance(outcome.verdict, Undecided):
        return "not considered: nobody is evicted for a placement that may exist without it"
    never = not may_preempt(root.group) if root.group is not None else world.members_of(root)[0].traits[2] == "Never"
    if never:
        return "not considered: the preemption policy is Never"
    going = world.going()
    units, _ = preemption.units(world.forest, world.cluster, root.priority, marked=world.orphans, spared=going)
    if not units:
        return f"not possible: nothing that runs has a priority below {root.priority}"
    answer = preemption.choose(
        outcome.demand,
        world.cluster,
        units=units,
        quorums=preemption.quorums(world.forest, units),
        budgets=list(world.budgets.values()),
        held=world.held_against(root),
        leaving=going,
        budget=Budget(world.config.budget_steps),
    )
    if isinstance(answer, preemption.NoHelp):
        pods = say_count(sum(len(unit.uids) for unit in units), "pod")
        return f"would not help: {pods} of lower priority could leave, {_say_no_help(answer)}"
    names = _few([f"{kind_word(unit.key.kind)} {unit.key.name}" for unit in answer.units])
    pods = say_count(sum(len(unit.uids) for unit in answer.units), "pod")
    return f"would help: {pods} of lower priority would leave ({names})"


def _say_no_help(answer: preemption.NoHelp) -> str:
    return "and it would still not fit" if answer.hopeless else answer.reason


def _say_wakes(demand: Demand) -> str:
    """What brings it back into the line."""
    often = f"or {FALLBACK_SECONDS:.0f} s after the last attempt"
    if isinstance(demand, Leaf) and demand.need:
        where = f" in one {short_key(demand.topology)}" if demand.topology else ""
        return f"the first change that leaves {say_count(demand.need, 'seat')} for its pods{where}, {often}"
    return f"the first change that leaves a seat for one of its pods, {often}"


def _few(names: list[str], most: int = 3) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


# --- the parts -------------------------------------------------------------------------------------


def _position(brain: Brain, root: Root) -> int:
    return next((place for place, each in enumerate(brain.roots(), 1) if each is root), 0)


def _said_of(group: Group) -> Said | None:
    return _said(group.obj)


def _said(obj: object) -> Said | None:
    """The scheduling condition of a pod or group, as it is stored."""
    held = obj.pod if isinstance(obj, Member) else obj
    status = getattr(held, "status", None)
    for condition in (getattr(status, "conditions", None) or ()) if status is not None else ():
        if condition.type in SCHEDULED:
            since = condition.last_transition_time or ""
            return Said(condition.status, condition.reason, condition.message, since)
    return None


def _places(world: World, group: Group, key: str) -> set[str]:
    return {world.domain_of(m.node, key) for leaf in group.leaves() for m in leaf.running.values()}


def _levels(
    world: World, top: Group | None, shortages: Iterable[Shortage], demand: Demand | None = None, depth: int = 0
) -> Iterable[Level]:
    if top is None:
        return
    key = top.topology
    places = _places(world, top, key) if key else set[str]()
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
        tuple(_domain(world, s, demand) for s in own[:MOST_DOMAINS]),
        top.seen,
    )
    for child in top.ordered_children():
        yield from _levels(world, child, shortages, demand, depth + 1)


def _domain(world: World, shortage: Shortage, demand: Demand | None) -> Domain:
    lacking = tuple(
        Lack(what, say_amount(what, amount) if is_resource(what) else str(amount)) for what, amount in shortage.lacking
    )
    seats = _empty_seats(world, demand, shortage.group) if demand is not None else None
    when_empty = None
    if seats is not None:
        when_empty = int(seats[inside_of(world, shortage.topology, shortage.domain)].sum())
    return Domain(
        shortage.topology,
        shortage.domain,
        shortage.seats,
        shortage.needed,
        shortage.nodes,
        lacking,
        say_place(shortage),
        when_empty,
    )


def _empty_seats(world: World, demand: Demand, key: GroupKey):
    """Seats per node for the members of one leaf if nothing else ran; None unless they are alike and countable."""
    leaf = next((leaf for leaf in leaves(demand) if leaf.key == key), None)
    shapes = {member.shape.id: member.shape for member in leaf.members} if leaf is not None else {}
    if len(shapes) != 1 or not all(shape.independent for shape in shapes.values()):
        return None
    return seats_when_empty(world.cluster, next(iter(shapes.values())))


def _rules(world: World, root: Root) -> Iterable[Rule]:
    """Which rule removed how many nodes, for each kind of pod that waits."""
    seen: set[int] = set()
    for member in world.members_of(root):
        shape = world.shape_of(member)
        if shape.id in seen:
            continue
        seen.add(shape.id)
        with world.cluster.trial() as trial:
            refusals = trial.why_not(shape)
        if refusals.message:
            yield Rule(member.ref.name, refusals.message, refusals.total, refusals.total)
        for text, nodes in sorted(refusals.counts.items(), key=lambda item: (-item[1], item[0])):
            yield Rule(member.ref.name, text, nodes, refusals.total)


__all__ = ["Explanation", "Suggestion", "Target", "explain", "find", "find_of_job"]
