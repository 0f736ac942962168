"""More nodes: so many like one that exists, in the domain where the fewest are enough."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from muster.api import types
from muster.scheduler.capacity import seats_when_empty
from muster.scheduler.explanation import Suggestion
from muster.scheduler.holders import inside_of
from muster.scheduler.planning.demand import Branch, Leaf, leaves
from muster.scheduler.shapes import Shape
from muster.scheduler.suggestions.question import Question, copy_of
from muster.scheduler.words import say_count, say_domain

MOST_NODES = 256
MOST_PLACES = 3
MOST_SHAPES = 3

Place = tuple[str, str]  # label key and value; empty for anywhere


def add_nodes(question: Question) -> Iterator[Suggestion]:
    """The fewest nodes that help."""
    most = min(MOST_NODES, sum(max(1, leaf.need) for leaf in leaves(question.demand)))
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


def _places(question: Question) -> list[Place]:
    """Where to add: the domains that came nearest, or anywhere if no group asks for a domain."""
    found: list[Place] = []
    for shortage in sorted(question.shortages, key=lambda s: s.needed - s.seats):
        place = (shortage.topology, shortage.domain)
        if shortage.domain and place not in found:
            found.append(place)
    if not found and not _constrained(question):
        return [("", "")]
    return found[:MOST_PLACES] or [("", "")]


def _constrained(question: Question) -> bool:
    pending = [question.demand]
    while pending:
        demand = pending.pop()
        if demand.topology:
            return True
        pending += demand.children if isinstance(demand, Branch) else ()
    return False


def _templates(question: Question, place: Place) -> list[types.Node]:
    """For each kind of pod that waits, the node there that would seat most of them if it were empty."""
    cluster = question.world.cluster
    inside = inside_of(question.world, *place)
    found: dict[str, types.Node] = {}
    for shape in _largest_shapes(question):
        seats = np.where(inside, seats_when_empty(cluster, shape), 0)
        if not len(seats) or not seats.max():
            continue
        name = min(cluster.names[int(slot)] for slot in np.flatnonzero(seats == seats.max()))
        found.setdefault(name, cluster.node_objects[name])
    return list(found.values())


def _largest_shapes(question: Question) -> list[Shape]:
    shapes: dict[int, Shape] = {}
    for leaf in leaves(question.demand):
        assert isinstance(leaf, Leaf)
        for member in leaf.members:
            shapes.setdefault(member.shape.id, member.shape)
    cluster = question.world.cluster
    asks = {number: shape.request_vector(cluster) for number, shape in shapes.items()}
    order = sorted(shapes, key=lambda number: (-int(np.count_nonzero(asks[number])), tuple(-asks[number]), number))
    return [shapes[number] for number in order[:MOST_SHAPES]]
