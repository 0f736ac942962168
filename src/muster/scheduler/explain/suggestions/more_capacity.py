"""More capacity: nodes put back into service, another entity that ends, or new nodes.

`put_nodes_back` tries nodes that are cordoned or not ready, `wait_for_others` running entities one by one, `add_nodes`
copies of existing nodes in the domain where the fewest are enough.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from muster.api import types
from muster.scheduler.explain.explanation import Suggestion
from muster.scheduler.explain.holders import ResourceShare, inside_of, shares, short_resources
from muster.scheduler.explain.suggestions.change_trial import ChangeTrial, copy_of
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import groups, leaves, shapes_of
from muster.scheduler.status.messages import count_text, domain_text, kind_word

MOST_NAMED = 4  # nodes named in one suggestion
MOST_TRIED = 8  # entities
MOST_GIVEN = 2  # of them suggested
MOST_DOMAINS = 3
MOST_NODES = 256
MOST_PLACES = 3
MOST_SHAPES = 3
CORDON = "node.kubernetes.io/unschedulable"
OUT_OF_SERVICE = (
    CORDON,
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/out-of-service",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
)
Place = tuple[str, str]  # label key and value; empty for all nodes


# --- nodes back into service -----------------------------------------------------------------------


def put_nodes_back(trial: ChangeTrial) -> Iterator[Suggestion]:
    """The fewest nodes to uncordon, and the fewest to make ready again."""
    nodes = sorted(trial.state.cluster.node_objects.values(), key=lambda node: node.metadata.name)
    cordoned = [node for node in nodes if node.spec.unschedulable and not _not_ready(node)]
    yield from _back(trial, cordoned, "uncordon", "uncordon")
    yield from _back(trial, [node for node in nodes if _not_ready(node)], "mend-nodes", "make ready again")


def _back(trial: ChangeTrial, nodes: list[types.Node], action: str, verb: str) -> Iterator[Suggestion]:
    restored = [_in_service(node) for node in nodes]
    count = trial.fewest(len(restored), lambda number: restored[:number])
    if count is None:
        return
    names = [node.metadata.name for node in nodes[:count]]
    shown = ", ".join(names[:MOST_NAMED]) + (f" and {count - MOST_NAMED} more" if count > MOST_NAMED else "")
    details: dict[str, str | int] = {"nodes": count, "names": ",".join(names)}
    yield Suggestion(action, f"{verb} {count_text(count, 'node')}: {shown}", details)


def _not_ready(node: types.Node) -> bool:
    """Whether a node has a taint that says it is out of service, other than the one for a cordon."""
    return any(taint.key in OUT_OF_SERVICE and taint.key != CORDON for taint in node.spec.taints or ())


def _in_service(node: types.Node) -> types.Node:
    taints = tuple(taint for taint in node.spec.taints or () if taint.key not in OUT_OF_SERVICE)
    spec = msgspec.structs.replace(node.spec, unschedulable=False, taints=taints)
    return msgspec.structs.replace(node, spec=spec)


# --- other entities --------------------------------------------------------------------------------


def wait_for_others(trial: ChangeTrial) -> Iterator[Suggestion]:
    """Entities without which this one fits, of those that use most of what is short."""
    given = 0
    for key, uids in _candidates(trial):
        if trial.fits(evicted=uids, without=key):
            given += 1
            yield Suggestion(
                "wait-for",
                f"wait for {kind_word(key.kind)} {key.namespace}/{key.name} to end ({count_text(len(uids), 'pod')}), "
                "or remove it",
                {"kind": key.kind, "namespace": key.namespace, "name": key.name, "pods": len(uids)},
            )
            if given == MOST_GIVEN:
                return


def _candidates(trial: ChangeTrial) -> list[tuple[EntityKey, list[str]]]:
    """The entities that use most of what is short where this one came nearest; the smallest first."""
    state = trial.state
    users: dict[EntityKey, ResourceShare] = {}
    for shortage in trial.shortages[:MOST_DOMAINS]:
        resources = short_resources(state, shortage)[:1]
        found = shares(state, resources, inside_of(state, shortage.topology, shortage.domain))
        largest = sorted(found.items(), key=lambda item: (-item[1].sums[0], item[0]))[:MOST_TRIED]
        users |= {key: share for key, share in largest if key not in users}
    users.pop(trial.entity.key, None)
    chosen = sorted(users.items(), key=lambda item: (-item[1].sums[0], item[0]))[:MOST_TRIED]
    everywhere = shares(state, [], np.ones(state.cluster.size, dtype=np.bool_))
    whole = [(key, everywhere[key].uids) for key, _ in chosen]
    return sorted(whole, key=lambda item: (len(item[1]), item[0]))


# --- new nodes -------------------------------------------------------------------------------------


def add_nodes(trial: ChangeTrial) -> Iterator[Suggestion]:
    """The fewest new nodes with which the entity fits."""
    most = min(MOST_NODES, sum(max(1, leaf.need) for leaf in leaves(trial.request)))
    best: tuple[int, Place, types.Node] | None = None
    for place in _places(trial):
        for template in _templates(trial, place):
            limit = most if best is None else best[0] - 1
            count = trial.fewest(limit, lambda number, like=template: _like(like, number))
            if count is not None:
                best = (count, place, template)
    if best is None:
        return
    count, (key, domain), template = best
    where = f" in {domain_text(key, domain)}" if domain else ""
    details: dict[str, str | int] = {"nodes": count, "like": template.metadata.name}
    if domain:
        details |= {"key": key, "domain": domain}
    yield Suggestion("add-nodes", f"add {count_text(count, 'node')} like {template.metadata.name}{where}", details)


def _like(template: types.Node, count: int) -> list[types.Node]:
    return [copy_of(template, f"{template.metadata.name}.suggested-{number}") for number in range(count)]


def _places(trial: ChangeTrial) -> list[Place]:
    """Where to add nodes: the domains that came nearest, or anywhere if no group is constrained."""
    found: list[Place] = []
    for shortage in sorted(trial.shortages, key=lambda s: s.needed - s.seats):
        place = (shortage.topology, shortage.domain)
        if shortage.domain and place not in found:
            found.append(place)
    if not found and not _constrained(trial):
        return [("", "")]
    return found[:MOST_PLACES] or [("", "")]


def _constrained(trial: ChangeTrial) -> bool:
    return any(group.topology for group in groups(trial.request))


def _templates(trial: ChangeTrial, place: Place) -> list[types.Node]:
    """For each of the largest pending shapes, the node there that would take most of its pods if it were empty."""
    cluster = trial.state.cluster
    inside = inside_of(trial.state, *place)
    found: dict[str, types.Node] = {}
    for shape in _largest_shapes(trial):
        seats = np.where(inside, trial.state.evaluator.empty_capacity(shape), 0)
        if not len(seats) or not seats.max():
            continue
        name = min(cluster.names[int(slot)] for slot in np.flatnonzero(seats == seats.max()))
        found.setdefault(name, cluster.node_objects[name])
    return list(found.values())


def _largest_shapes(trial: ChangeTrial) -> list[Shape]:
    shapes = shapes_of(trial.request)
    cluster = trial.state.cluster
    asks = {number: shape.request_vector(cluster) for number, shape in shapes.items()}
    order = sorted(shapes, key=lambda number: (-int(np.count_nonzero(asks[number])), tuple(-asks[number]), number))
    return [shapes[number] for number in order[:MOST_SHAPES]]
