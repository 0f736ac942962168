"""The trees of groups, and the nodes that their pods run on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from muster.api.groups import QUORUM_MET
from muster.views.natural_order import natural
from muster.views.workloads import kind_named, roots_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.groups.group import Group


class GroupRow(msgspec.Struct, frozen=True, rename="camel"):
    """One group of a tree, as `muster tree -o json` prints it."""

    kind: str
    namespace: str
    name: str
    depth: int
    minimum: int
    bound: int
    pending: int
    met: bool
    topology: str | None
    domains: tuple[str, ...]
    nodes: dict[str, int]
    reason: str = ""  # of the condition that is not met


def trees(scheduler: Scheduler, namespace: str | None = None, name: str | None = None) -> list[GroupRow]:
    """The groups of every tree, parents before their children.

    `name` is that of a group, or a workload such as `jobset/train`.
    """
    view = scheduler.view()
    word, slash, short = (name or "").partition("/")
    if slash:
        tops = roots_of(view, kind_named(word), namespace, short)
        return [row for top in sorted(tops, key=lambda group: group.key) for row in tree_of(view, top)]
    groups = sorted(view.groups.values(), key=lambda group: group.key)
    tops = [group for group in groups if group.root() is group and namespace in (None, group.key.namespace)]
    if name is not None:
        tops = [top for top in tops if any(group.key.name == name for group in top.subtree())]
    return [row for top in tops for row in tree_of(view, top)]


def tree_of(view: SchedulerView, top: Group) -> list[GroupRow]:
    """The groups of one tree, parents before their children."""
    return list(_rows(view, top, 0))


def _rows(view: SchedulerView, group: Group, depth: int) -> Iterator[GroupRow]:
    nodes: dict[str, int] = {}
    for leaf in group.leaves():
        for member in leaf.running.values():
            nodes[member.node] = nodes.get(member.node, 0) + 1
    key = group.topology
    domains = tuple(sorted({view.domain_of(node, key) for node in nodes})) if key else ()
    yield GroupRow(
        *group.key,
        depth,
        group.minimum,
        group.confirmed,
        group.pending_below,
        group.quorum_bound,
        key,
        domains,
        dict(sorted(nodes.items(), key=lambda item: natural(item[0]))) if group.is_leaf else {},
        "" if group.quorum_bound else reason_of(group),
    )
    for child in group.ordered_children():
        yield from _rows(view, child, depth + 1)


def reason_of(group: Group) -> str:
    """The reason of a group below its minimum: of QuorumMet if it has run, else of its Scheduled condition."""
    if group.obj is None:
        return "does not exist"
    conditions = {c.type: c for c in group.obj.status.conditions or ()}
    found = conditions.get(QUORUM_MET)
    if found is None or found.status == "True":
        found = next((c for type_, c in conditions.items() if type_.endswith("Scheduled") and c.status != "True"), None)
    return found.reason if found is not None else ""
