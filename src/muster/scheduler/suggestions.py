"""What would help: changes that were tried on the planner before they are told to anyone.

Each suggestion is one small change of the demand, of the nodes or of who runs; it is only given if the root is
`Placed` with it. Cheapest first: fix what cannot match, widen the domain, lower the minimum, wait for somebody,
add nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import msgspec
import numpy as np

from muster.api import types
from muster.scheduler.attempt import Outcome, evaluate
from muster.scheduler.cycle import Brain
from muster.scheduler.demands import root_key
from muster.scheduler.events import Changed, Removed
from muster.scheduler.planning.demand import Branch, Demand, GroupKey, Leaf, leaves
from muster.scheduler.planning.verdict import Placed, Shortage
from muster.scheduler.queue import Root
from muster.scheduler.words import shortages_of
from muster.scheduler.world import World

MOST_NODES = 128
MOST_HOLDERS_TRIED = 8
MOST_OF_A_KIND = 2
HOSTNAME = "kubernetes.io/hostname"


class Suggestion(msgspec.Struct, frozen=True, rename="camel"):
    """A change after which the root fits: verified by planning with it."""

    action: str  # fix-selector, tolerate-taint, widen-topology, lower-minimum, wait-for, add-nodes
    text: str
    details: dict[str, str | int]


def suggest(brain: Brain, root: Root, outcome: Outcome) -> list[Suggestion]:
    """Everything that was found to help, cheapest first."""
    found: list[Suggestion] = []
    for source in (_fix_pods, _widen, _lower, _wait_for, _add_nodes):
        found += list(source(brain, root, outcome))
    return found


def _helps(world: World, root: Root, demand: Demand | None = None, evicted: Iterable[str] = ()) -> bool:
    return isinstance(evaluate(world, root, demand, evicted).verdict, Placed)


# --- the pods themselves ---------------------------------------------------------------------------


def _fix_pods(brain: Brain, root: Root, outcome: Outcome) -> Iterator[Suggestion]:
    """Selectors that match nothing but nearly match something, and taints nobody tolerates."""
    world = brain.world
    yield from _fix_selectors(world, root, outcome)
    taints = sorted({taint for node in world.cluster.node_objects.values() for taint in _hard_taints(node)})
    given = 0
    for key, value, effect in taints:
        toleration = types.Toleration(key=key, operator="Equal", value=value, effect=effect)
        demand = _with_pods(world, outcome.demand, lambda spec, extra=toleration: _tolerating(spec, extra))
        if given < MOST_OF_A_KIND and demand is not None and _helps(world, root, demand):
            given += 1
            text = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
            nodes = sum((key, value, effect) in _hard_taints(n) for n in world.cluster.node_objects.values())
            yield Suggestion(
                "tolerate-taint",
                f"remove the taint {text} from its {nodes} nodes, or let the pods tolerate it",
                {"taint": text, "nodes": nodes},
            )


def _hard_taints(node: types.Node) -> set[tuple[str, str, str]]:
    return {(t.key, t.value, t.effect) for t in node.spec.taints or () if t.effect in ("NoSchedule", "NoExecute")}


def _tolerating(spec: types.PodSpec, toleration: types.Toleration) -> types.PodSpec:
    return msgspec.structs.replace(spec, tolerations=(*(spec.tolerations or ()), toleration))


def _fix_selectors(world: World, root: Root, outcome: Outcome) -> Iterator[Suggestion]:
    wanted: set[tuple[str, str]] = set()
    for leaf in leaves(outcome.demand):
        for member in leaf.members:
            wanted |= set((member.shape.pod.spec.node_selector or {}).items())
    for key, value in sorted(wanted):
        column = world.cluster.labels(key)
        if (column == world.cluster.label_id(key, value)).any() and world.cluster.label_id(key, value):
            continue
        for other, nodes in _values_like(world, key, value):
            demand = _with_pods(
                world, outcome.demand, lambda spec, k=key, v=value, o=other: _reselecting(spec, k, v, o)
            )
            if demand is not None and _helps(world, root, demand):
                yield Suggestion(
                    "fix-selector",
                    f"label {key}={value} exists on no node; {key}={other} on {nodes}: select that",
                    {"label": f"{key}={value}", "instead": f"{key}={other}", "nodes": nodes},
                )
                break


def _values_like(world: World, key: str, value: str) -> list[tuple[str, int]]:
    """Values of a label that a person may have meant: the same letters first, then the most common."""
    column = world.cluster.labels(key)
    counts = np.bincount(column[world.cluster.alive[: len(column)]])
    values = [(world.cluster.label_value(key, number), int(n)) for number, n in enumerate(counts) if number and n]
    return sorted(values, key=lambda item: (item[0].lower() != value.lower(), -item[1], item[0]))


def _reselecting(spec: types.PodSpec, key: str, value: str, other: str) -> types.PodSpec:
    selector = {k: (other if (k, v) == (key, value) else v) for k, v in (spec.node_selector or {}).items()}
    return msgspec.structs.replace(spec, node_selector=selector)


def _with_pods(world: World, demand: Demand, change: Callable[[types.PodSpec], types.PodSpec]) -> Demand | None:
    """The demand with every pod changed; None if nothing differs."""
    if isinstance(demand, Branch):
        children = [_with_pods(world, child, change) or child for child in demand.children]
        return replace(demand, children=tuple(children))
    members = []
    for member in demand.members:
        pod = member.shape.pod
        other = msgspec.structs.replace(pod, spec=change(pod.spec))
        members.append(replace(member, shape=world.cluster.shape(other, member.shape.profile)))
    return replace(demand, members=tuple(members))


# --- the demand ------------------------------------------------------------------------------------


def _widen(brain: Brain, root: Root, outcome: Outcome) -> Iterator[Suggestion]:
    """A coarser label in place of the one that is too narrow, or none at all."""
    world = brain.world
    for key in sorted({d.topology for d in _nodes(outcome.demand) if d.topology}):
        for coarser in [*_coarser_keys(world, key), None]:
            demand = _retopologised(outcome.demand, key, coarser)
            if _helps(world, root, demand):
                text = f"widen the constraint from {key} to {coarser}" if coarser else f"drop the constraint on {key}"
                yield Suggestion("widen-topology", text, {"from": key, "to": coarser or ""})
                break


def _nodes(demand: Demand) -> Iterator[Demand]:
    yield demand
    for child in demand.children if isinstance(demand, Branch) else ():
        yield from _nodes(child)


def _coarser_keys(world: World, key: str) -> list[str]:
    """Labels whose domains are unions of this label's domains, the narrowest first."""
    fine = world.cluster.labels(key)
    keys = {k for node in world.cluster.node_objects.values() for k in node.metadata.labels or {}}
    found: list[tuple[int, bool, str]] = []
    for other in sorted(keys - {key, HOSTNAME}):
        coarse = world.cluster.labels(other)
        has_both = (fine > 0) & (coarse > 0)
        pairs = np.unique(np.stack([fine[has_both], coarse[has_both]]), axis=1)
        domains = len(np.unique(pairs[1]))
        if pairs.shape[1] == len(np.unique(pairs[0])) > domains >= 1:
            found.append((-domains, other.partition("/")[0] != key.partition("/")[0], other))
    return [other for _, _, other in sorted(found)]


def _retopologised(demand: Demand, key: str, other: str | None) -> Demand:
    topology = other if demand.topology == key else demand.topology
    domains = () if demand.topology == key else demand.domains
    if isinstance(demand, Leaf):
        return replace(demand, topology=topology, domains=domains)
    children = tuple(_retopologised(child, key, other) for child in demand.children)
    return replace(demand, topology=topology, domains=domains, children=children)


def _lower(brain: Brain, root: Root, outcome: Outcome) -> Iterator[Suggestion]:
    """A smaller minimum, as large as fits."""
    world = brain.world
    for leaf in leaves(outcome.demand):
        if leaf.minimum <= 1 or leaf.need <= 1:
            continue
        for minimum in range(leaf.minimum - 1, leaf.bound, -1):
            if minimum < leaf.minimum - MOST_NODES:
                break
            if _helps(world, root, _with_minimum(outcome.demand, leaf.key, minimum)):
                text = f"lower minCount of {leaf.key.name} from {leaf.minimum} to {minimum}"
                yield Suggestion("lower-minimum", text, {"group": leaf.key.name, "minCount": minimum})
                break


def _with_minimum(demand: Demand, key: GroupKey, minimum: int) -> Demand:
    if isinstance(demand, Leaf):
        return replace(demand, minimum=minimum) if demand.key == key else demand
    return replace(demand, children=tuple(_with_minimum(child, key, minimum) for child in demand.children))


# --- the others ------------------------------------------------------------------------------------


def _wait_for(brain: Brain, root: Root, outcome: Outcome) -> Iterator[Suggestion]:
    """Whose end alone would make room, the smallest first."""
    world = brain.world
    pods: dict[GroupKey, list[str]] = {}
    for uid, entry in world.cluster.pods.items():
        if entry.slot >= 0:
            pods.setdefault(root_key(world.forest.members[uid]), []).append(uid)
    pods.pop(root.key, None)
    given = 0
    largest_first = sorted(pods.items(), key=lambda item: (-len(item[1]), item[0]))[:MOST_HOLDERS_TRIED]
    for key, uids in sorted(largest_first, key=lambda item: (len(item[1]), item[0])):
        if given < MOST_OF_A_KIND and _helps(world, root, evicted=uids):
            given += 1
            kind = {"PodGroup": "podgroup", "CompositePodGroup": "compositepodgroup"}.get(key.kind, "pod")
            yield Suggestion(
                "wait-for",
                f"wait for {kind} {key.namespace}/{key.name} to end ({len(uids)} pods), or remove it",
                {"kind": key.kind, "namespace": key.namespace, "name": key.name, "pods": len(uids)},
            )


# --- the cluster -----------------------------------------------------------------------------------


def _add_nodes(brain: Brain, root: Root, outcome: Outcome) -> Iterator[Suggestion]:
    """So many nodes like one that exists, in the domain that came nearest."""
    world = brain.world
    assert not isinstance(outcome.verdict, Placed)
    shortages = shortages_of(outcome.verdict)
    domain = next((s for s in shortages if s.domain and s.group.kind != "CompositePodGroup"), None)
    template = _template(world, outcome.demand, domain)
    if template is None:
        return
    if not _with_nodes(brain, root, template, MOST_NODES):
        return
    low, high = 1, MOST_NODES
    while low < high:
        middle = (low + high) // 2
        if _with_nodes(brain, root, template, middle):
            high = middle
        else:
            low = middle + 1
    where = f" to {domain.topology} {domain.domain}" if domain is not None else ""
    text = f"add {low} node{'s' if low > 1 else ''} like {template.metadata.name}{where}"
    details: dict[str, str | int] = {"nodes": low, "like": template.metadata.name}
    if domain is not None:
        details |= {"key": domain.topology, "domain": domain.domain}
    yield Suggestion("add-nodes", text, details)


def _template(world: World, demand: Demand, domain: Shortage | None) -> types.Node | None:
    """The node that would seat most of the pending pods if it were empty."""
    members = [member for leaf in leaves(demand) for member in leaf.members]
    if not members:
        return None
    shape, cluster = members[0].shape, world.cluster
    open_slots = cluster.standing(shape).node_ok & cluster.alive
    if domain is not None:
        inside = cluster.labels(domain.topology) == cluster.label_id(domain.topology, domain.domain)
        if (open_slots & inside).any():
            open_slots = open_slots & inside
    slots = np.flatnonzero(open_slots)
    if not len(slots):
        return None
    asks = shape.request_vector(cluster)
    rows = np.flatnonzero(asks)
    seats = (cluster.alloc[rows][:, slots] // asks[rows][:, None]).min(axis=0)
    best = min(range(len(slots)), key=lambda i: (-int(seats[i]), cluster.names[int(slots[i])]))
    return cluster.node_objects[cluster.names[int(slots[best])]] if seats[best] > 0 else None


def _with_nodes(brain: Brain, root: Root, template: types.Node, count: int) -> bool:
    """Does the root fit with so many more nodes? They come and go as events do."""
    names = [f"{template.metadata.name}.suggested-{number}" for number in range(count)]
    for name in names:
        labels = (template.metadata.labels or {}) | {HOSTNAME: name}
        meta = msgspec.structs.replace(template.metadata, name=name, uid=name, labels=labels)
        brain.handle(Changed("Node", msgspec.structs.replace(template, metadata=meta)), 0.0)
    try:
        return _helps(brain.world, root)
    finally:
        for name in names:
            brain.handle(Removed("Node", "", name, name), 0.0)
