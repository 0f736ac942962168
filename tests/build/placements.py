"""Placements written by hand, for the checker: this pod on that node."""

from __future__ import annotations

from muster.scheduler.checking.validate import validate
from muster.scheduler.placement.request import GroupRequest, leaves
from muster.scheduler.placement.verdict import Assignment, Placed
from tests.build.objects import a_node
from tests.build.planning import Scene


def two_nodes() -> Scene:
    """Two nodes of 2 cpu, each in a rack of its own, in one zone."""
    return Scene().nodes(a_node("n0", cpu=2, rack="r0", zone="z0"), a_node("n1", cpu=2, rack="r1", zone="z0"))


def seated(scene: Scene, request: GroupRequest, **where: str) -> Placed:
    """A placement of the named pods on the named nodes; underscores in names stand for dashes."""
    members = {member.name: member.uid for leaf in leaves(request) for member in leaf.members}
    at = {name.replace("_", "-"): node for name, node in where.items()}
    found = tuple(Assignment(members[name], node, scene.cluster.index[node]) for name, node in at.items())
    return Placed(found, frozenset({request.key}))


def fault(scene: Scene, request: GroupRequest, **where: str) -> str:
    """What `validate` finds wrong with a placement; empty if nothing."""
    return validate(seated(scene, request, **where), request, scene.cluster) or ""
