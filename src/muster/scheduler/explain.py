"""Why a root waits, as facts that can be printed, compared and stored.

An explanation is computed from the same world and by the same planner as the decision itself; nothing is changed
by asking. The structs below are the documented JSON of `muster explain -o json`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from muster.scheduler import preemption, waiting
from muster.scheduler.attempt import Outcome, evaluate
from muster.scheduler.cycle import Brain
from muster.scheduler.demands import root_key
from muster.scheduler.faults import Fault, find_fault, may_preempt
from muster.scheduler.groups import PENDING, Group, Member
from muster.scheduler.planning.demand import GroupKey
from muster.scheduler.planning.verdict import Budget, Infeasible, Placed, Shortage, Undecided
from muster.scheduler.queue import Root
from muster.scheduler.suggestions import Suggestion, suggest
from muster.scheduler.words import is_resource, say_amount, say_place, say_shortage, shortages_of
from muster.scheduler.world import World

MOST_HOLDERS = 5
MOST_DOMAINS = 3
SCHEMA_VERSION = "muster.dev/explanation/v1"


class Lack(msgspec.Struct, frozen=True, rename="camel"):
    """A resource that is short and by how much, or a rule and how many nodes it keeps away."""

    what: str
    amount: str


class Domain(msgspec.Struct, frozen=True, rename="camel"):
    """One place that was considered and what it lacks."""

    key: str
    value: str
    seats: int
    needed: int
    lacking: tuple[Lack, ...]
    text: str


class Level(msgspec.Struct, frozen=True, rename="camel"):
    """One group of the tree."""

    kind: str
    name: str
    depth: int
    minimum: int
    bound: int
    pending: int
    met: bool
    topology: str | None
    domain: str | None
    nearest: tuple[Domain, ...] = ()


class Rule(msgspec.Struct, frozen=True, rename="camel"):
    """A rule and how many nodes it removed for one shape of pod."""

    pod: str
    text: str
    nodes: int


class Holder(msgspec.Struct, frozen=True, rename="camel"):
    """Who holds what the root would need."""

    kind: str
    namespace: str
    name: str
    priority: int
    pods: int
    amounts: dict[str, str]


class Explanation(msgspec.Struct, frozen=True, rename="camel"):
    """The whole answer for one root."""

    kind: str
    namespace: str
    name: str
    verdict: str
    sentence: str
    priority: int
    levels: tuple[Level, ...]
    rules: tuple[Rule, ...] = ()
    holders: tuple[Holder, ...] = ()
    preemption: str = ""
    wakes: str = ""
    suggestions: tuple[Suggestion, ...] = ()
    version: str = SCHEMA_VERSION


def find_root(brain: Brain, kind: str, namespace: str, name: str) -> Root | Group | Member | None:
    """The root under which an object is queued, the object itself if it waits for nothing, or None if unknown."""
    world = brain.world
    if kind == "Pod":
        member = next(
            (m for m in world.forest.members.values() if (m.ref.namespace, m.ref.name) == (namespace, name)), None
        )
        if member is None:
            return None
        return world.queue.roots.get(root_key(member), member)
    group = world.forest.groups.get(GroupKey(kind, namespace, name))
    if group is None or not group.seen:
        return None
    return world.queue.roots.get(group.root().key, group)


def explain(brain: Brain, found: Root | Group | Member) -> Explanation:
    """Say why."""
    world = brain.world
    if isinstance(found, Member):
        sentence = (
            f"pod {found.ref.name} is bound to {found.node}" if found.node else f"pod {found.ref.name} is {found.state}"
        )
        return _settled("Pod", found.ref.namespace, found.ref.name, sentence, found.traits[1], ())
    if isinstance(found, Group):
        levels = tuple(_levels(world, found.root(), ()))
        sentence = _say_running(found, levels)
        return _settled(*found.key, sentence, 0, levels)
    return _explain_root(brain, found)


def _settled(
    kind: str, namespace: str, name: str, sentence: str, priority: int, levels: tuple[Level, ...]
) -> Explanation:
    return Explanation(kind, namespace, name, "Running", sentence, priority, levels)


def _say_running(group: Group, levels: tuple[Level, ...]) -> str:
    level = next(level for level in levels if level.name == group.key.name and level.kind == group.key.kind)
    what = "members" if group.is_leaf else "child groups"
    place = f" in {group.topology} {level.domain}" if level.domain else ""
    bound = f"{level.bound} of {level.minimum} {what} are bound"
    return f"{_word(group.key)} {group.key.name} waits for nothing: {bound}{place}"


def _explain_root(brain: Brain, root: Root) -> Explanation:
    world = brain.world
    fault = find_fault(root.group, world.forest) if root.group is not None else None
    if fault is not None:
        return _unready(world, root, fault.reason, fault.message, "a change of one of these objects")
    if root.group is not None and not (root.group.seen and root.group.admissible and not root.group.gated):
        return _waiting(world, root)
    outcome = evaluate(world, root)
    if isinstance(outcome.verdict, Placed):
        sentence = f"{_word(root.key)} {root.key.name} fits now and is about to be bound"
        return _unready(world, root, "Placed", sentence, "it is next in line")
    return _stuck(brain, root, outcome)


def _unready(world: World, root: Root, verdict: str, sentence: str, wakes: str) -> Explanation:
    levels = tuple(_levels(world, root.group, ())) if root.group is not None else ()
    return Explanation(*root.key, verdict, sentence, root.priority, levels, wakes=wakes)


def _waiting(world: World, root: Root) -> Explanation:
    assert root.group is not None
    notices = list(waiting.notices(root.group))
    own = next((n for n in notices if n.group is root.group), notices[0] if notices else None)
    if own is None:
        missing = f"{_word(root.key)} {root.key.name} does not exist"
        return _unready(world, root, waiting.FOR_POD_GROUP, missing, "its creation")
    text = f"{_word(own.group.key)} {own.group.key.name} waits: {own.message}"
    return _unready(world, root, own.reason, text, "the objects that are missing, or the end of the gate")


def _stuck(brain: Brain, root: Root, outcome: Outcome) -> Explanation:
    world, verdict = brain.world, outcome.verdict
    assert isinstance(verdict, Infeasible | Undecided)
    shortages = shortages_of(verdict)
    first = shortages[0] if shortages else None
    reason = "does not fit" if isinstance(verdict, Infeasible) else "was not placed within the search budget"
    sentence = f"{_word(root.key)} {root.key.name} {reason}" + (f": {say_shortage(first)}" if first else "")
    return Explanation(
        *root.key,
        "Infeasible" if isinstance(verdict, Infeasible) else "Undecided",
        sentence,
        root.priority,
        tuple(_levels(world, root.group, shortages)) if root.group is not None else (),
        tuple(_rules(world, root)),
        tuple(_holders(world, root, first)),
        _say_preemption(world, root, outcome),
        _say_wakes(first),
        tuple(suggest(brain, root, outcome)),
    )


# --- the parts -------------------------------------------------------------------------------------


def _levels(world: World, top: Group | None, shortages: Iterable[Shortage], depth: int = 0) -> Iterable[Level]:
    if top is None:
        return
    key = top.topology
    bound_nodes = {m.node for leaf in top.leaves() for m in leaf.running.values()}
    places = {world.domain_of(node, key) for node in bound_nodes} if key else set[str]()
    own = [s for s in shortages if s.group == top.key][:MOST_DOMAINS]
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
        tuple(_domain(s) for s in own),
    )
    for child in top.ordered_children():
        yield from _levels(world, child, shortages, depth + 1)


def _domain(shortage: Shortage) -> Domain:
    lacking = tuple(
        Lack(what, say_amount(what, amount) if is_resource(what) else str(amount)) for what, amount in shortage.lacking
    )
    return Domain(shortage.topology, shortage.domain, shortage.seats, shortage.needed, lacking, say_place(shortage))


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
        for text, nodes in sorted(refusals.counts.items(), key=lambda item: (-item[1], item[0])):
            yield Rule(member.ref.name, text, nodes)


def _holders(world: World, root: Root, shortage: Shortage | None) -> Iterable[Holder]:
    """The roots that hold most of what is short, in the domain that came nearest."""
    lacking = [what for what, _ in shortage.lacking if is_resource(what)] if shortage is not None else []
    rows = [world.cluster.row[name] for name in lacking if name in world.cluster.row]
    if not rows:
        return []
    inside = np.ones(world.cluster.size, dtype=np.bool_)
    if shortage is not None and shortage.domain:
        inside = world.cluster.labels(shortage.topology) == world.cluster.label_id(shortage.topology, shortage.domain)
    held: dict[GroupKey, tuple[int, int, list[int]]] = {}
    for uid, entry in world.cluster.pods.items():
        if entry.slot < 0 or not inside[entry.slot]:
            continue
        vector = entry.footprint.vector
        amounts = [int(vector[row]) if row < len(vector) else 0 for row in rows]
        if any(amounts):
            member = world.forest.members[uid]
            key = root_key(member)
            priority, count, sums = held.get(key, (member.traits[1], 0, [0] * len(rows)))
            held[key] = (priority, count + 1, [a + b for a, b in zip(sums, amounts, strict=True)])
    largest = sorted(held.items(), key=lambda item: (-item[1][2][0], item[0]))[:MOST_HOLDERS]
    return [
        Holder(*key, priority, count, {name: say_amount(name, s) for name, s in zip(lacking, sums, strict=False)})
        for key, (priority, count, sums) in largest
    ]


def _say_preemption(world: World, root: Root, outcome: Outcome) -> str:
    if isinstance(outcome.verdict, Undecided):
        return "not considered: nobody is evicted for a placement that may exist without it"
    never = not may_preempt(root.group) if root.group is not None else world.members_of(root)[0].traits[2] == "Never"
    if never:
        return "not considered: the preemption policy is Never"
    units = preemption.units(world.forest, world.cluster, root.priority, world.orphans)
    if not units:
        return "not possible: nothing of lower priority runs"
    answer = preemption.choose(
        outcome.demand,
        world.cluster,
        units=units,
        quorums=preemption.quorums(world.forest, units),
        budgets=list(world.budgets.values()),
        held=world.held_against(root),
        leaving=frozenset(world.leaving),
        budget=Budget(world.config.budget_steps),
    )
    if isinstance(answer, preemption.NoHelp):
        return f"would not help: {answer.reason}"
    pods = sum(len(unit.uids) for unit in answer.units)
    return f"would help: {pods} pods of lower priority in {len(answer.units)} units would leave"


def _say_wakes(shortage: Shortage | None) -> str:
    if shortage is None:
        return "any node or pod that changes; a timer at the latest"
    where = f" in {shortage.topology} {shortage.domain}" if shortage.domain else ""
    what = ", ".join(name for name, _ in shortage.lacking if is_resource(name)) or "room"
    return f"the first change that frees enough {what}{where}; a timer at the latest"


def pending_roots(brain: Brain) -> list[Root]:
    """The roots that wait, in the order of the queue."""
    return [root for root in brain.roots() if root.member is None or root.member.state == PENDING]


def _word(key: GroupKey) -> str:
    return {"PodGroup": "podgroup", "CompositePodGroup": "compositepodgroup"}.get(key.kind, "pod")


__all__ = ["Explanation", "Fault", "Suggestion", "explain", "find_root", "pending_roots"]
