"""More nodes: so many like one that exists, in the domain where the fewest are enough.

Nodes that are out of service: cordoned, or not ready. Back in service they may be all it takes.

Somebody else who runs: whose end alone would make room."""

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
from muster.scheduler.status.messages import kind_word, say_count, say_domain

MOST_NODES = 256


MOST_PLACES = 3


MOST_SHAPES = 3


Place = tuple[str, str]  # label key and value; empty for anywhere


def add_nodes(question: ChangeTrial) -> Iterator[Suggestion]:
    """The fewest nodes that help."""
    most = min(MOST_NODES, sum(max(1, leaf.need) for leaf in leaves(question.request)))
    best: tuple[int, Place, types.Node] | None = None
    for place in _places(question):
        for template in _templates(question, place):
            limit = most if best is None else best[0] - 1
            count = question.fewest(limit, lambda number, like=template: _like(like, number))
            if count is not None:
                best = (count, place, template)
    if best is None:
        return
    count, (key, domain), template = best
    where = f" in {say_domain(key, domain)}" if domain else ""
    details: dict[str, str | int] = {"nodes": count, "like": template.metadata.name}
    if domain:
        details |= {"key": key, "domain": domain}
    yield Suggestion("add-nodes", f"add {say_count(count, 'node')} like {template.metadata.name}{where}", details)


def _like(template: types.Node, count: int) -> list[types.Node]:
    return [copy_of(template, f"{template.metadata.name}.suggested-{number}") for number in range(count)]


def _places(question: ChangeTrial) -> list[Place]:
    """Where to add: the domains that came nearest, or anywhere if no group asks for a domain."""
    found: list[Place] = []
    for shortage in sorted(question.shortages, key=lambda s: s.needed - s.seats):
        place = (shortage.topology, shortage.domain)
        if shortage.domain and place not in found:
            found.append(place)
    if not found and not _constrained(question):
        return [("", "")]
    return found[:MOST_PLACES] or [("", "")]


def _constrained(question: ChangeTrial) -> bool:
    return any(group.topology for group in groups(question.request))


def _templates(question: ChangeTrial, place: Place) -> list[types.Node]:
    """For each kind of pod that waits, the node there that would seat most of them if it were empty."""
    cluster = question.state.cluster
    inside = inside_of(question.state, *place)
    found: dict[str, types.Node] = {}
    for shape in _largest_shapes(question):
        seats = np.where(inside, question.state.evaluator.empty_capacity(shape), 0)
        if not len(seats) or not seats.max():
            continue
        name = min(cluster.names[int(slot)] for slot in np.flatnonzero(seats == seats.max()))
        found.setdefault(name, cluster.node_objects[name])
    return list(found.values())


def _largest_shapes(question: ChangeTrial) -> list[Shape]:
    shapes = shapes_of(question.request)
    cluster = question.state.cluster
    asks = {number: shape.request_vector(cluster) for number, shape in shapes.items()}
    order = sorted(shapes, key=lambda number: (-int(np.count_nonzero(asks[number])), tuple(-asks[number]), number))
    return [shapes[number] for number in order[:MOST_SHAPES]]


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


MOST_NAMED = 4


def put_nodes_back(question: ChangeTrial) -> Iterator[Suggestion]:
    """The fewest nodes to uncordon, and the fewest to make ready again."""
    nodes = sorted(question.state.cluster.node_objects.values(), key=lambda node: node.metadata.name)
    cordoned = [node for node in nodes if node.spec.unschedulable and not _is_ill(node)]
    yield from _back(question, cordoned, "uncordon", "uncordon")
    yield from _back(question, [node for node in nodes if _is_ill(node)], "mend-nodes", "make ready again")


def _back(question: ChangeTrial, nodes: list[types.Node], action: str, verb: str) -> Iterator[Suggestion]:
    mended = [_in_service(node) for node in nodes]
    count = question.fewest(len(mended), lambda number: mended[:number])
    if count is None:
        return
    names = [node.metadata.name for node in nodes[:count]]
    shown = ", ".join(names[:MOST_NAMED]) + (f" and {count - MOST_NAMED} more" if count > MOST_NAMED else "")
    details: dict[str, str | int] = {"nodes": count, "names": ",".join(names)}
    yield Suggestion(action, f"{verb} {say_count(count, 'node')}: {shown}", details)


def _is_ill(node: types.Node) -> bool:
    return any(taint.key in OUT_OF_SERVICE and taint.key != CORDON for taint in node.spec.taints or ())


def _in_service(node: types.Node) -> types.Node:
    taints = tuple(taint for taint in node.spec.taints or () if taint.key not in OUT_OF_SERVICE)
    spec = msgspec.structs.replace(node.spec, unschedulable=False, taints=taints)
    return msgspec.structs.replace(node, spec=spec)


MOST_TRIED = 8


MOST_GIVEN = 2


MOST_DOMAINS = 3


def wait_for_others(question: ChangeTrial) -> Iterator[Suggestion]:
    """The smallest of those who hold what is short."""
    given = 0
    for key, uids in _candidates(question):
        if question.fits(evicted=uids, without=key):
            given += 1
            yield Suggestion(
                "wait-for",
                f"wait for {kind_word(key.kind)} {key.namespace}/{key.name} to end ({say_count(len(uids), 'pod')}), "
                "or remove it",
                {"kind": key.kind, "namespace": key.namespace, "name": key.name, "pods": len(uids)},
            )
            if given == MOST_GIVEN:
                return


def _candidates(question: ChangeTrial) -> list[tuple[EntityKey, list[str]]]:
    """Who holds most of what is short where the root came nearest, then anywhere; tried smallest first."""
    state = question.state
    held: dict[EntityKey, ResourceShare] = {}
    for shortage in question.shortages[:MOST_DOMAINS]:
        resources = short_resources(state, shortage)[:1]
        found = shares(state, resources, inside_of(state, shortage.topology, shortage.domain))
        largest = sorted(found.items(), key=lambda item: (-item[1].sums[0], item[0]))[:MOST_TRIED]
        held |= {key: share for key, share in largest if key not in held}
    held.pop(question.entity.key, None)
    chosen = sorted(held.items(), key=lambda item: (-item[1].sums[0], item[0]))[:MOST_TRIED]
    everywhere = shares(state, [], np.ones(state.cluster.size, dtype=np.bool_))
    whole = [(key, everywhere[key].uids) for key, _ in chosen]
    return sorted(whole, key=lambda item: (len(item[1]), item[0]))
