"""`muster tree`: groups, their children, and the nodes that their pods run on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from muster.api.groups import QUORUM_MET
from muster.cli import exits, live, namespaces, output, source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.groups.group import Group

MOST_NODES = 6


class GroupRow(msgspec.Struct, frozen=True, rename="camel"):
    """One group of a tree, as `-o json` prints it."""

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


@click.command(name="tree")
@click.argument("name", required=False)
@namespaces.options
@live.option
@source.options
@output.option
def command(
    name: str | None,
    namespaces: namespaces.NamespaceOptions,
    watch: bool,
    source: source.Source,
    output_format: str,
) -> int:
    """Show the trees of groups, or only the one that holds the group NAME."""
    namespace = namespaces.only

    def found() -> list[GroupRow]:
        rows = trees(source.scheduler(show_progress=not watch), namespace, name)
        if name is not None and not rows:
            where = f' in namespace "{namespace}"' if namespace else ""
            raise exits.Failure(f'no group "{name}" exists{where}', exits.BAD_INPUT)
        return rows

    if output_format != "table":
        output.write(found(), output_format, str)
    else:
        live.show(lambda: screen(found(), live.width()), watch)
    return exits.OK


def trees(scheduler: Scheduler, namespace: str | None = None, name: str | None = None) -> list[GroupRow]:
    """The groups of every tree, parents before their children."""
    view = scheduler.view()
    groups = sorted(view.groups.values(), key=lambda group: group.key)
    tops = [group for group in groups if group.root() is group and namespace in (None, group.key.namespace)]
    if name is not None:
        tops = [top for top in tops if any(group.key.name == name for group in top.subtree())]
    return [row for top in tops for row in _rows(view, top, 0)]


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
        dict(sorted(nodes.items(), key=lambda item: output.natural(item[0]))) if group.is_leaf else {},
        "" if group.quorum_bound else _reason(group),
    )
    for child in group.ordered_children():
        yield from _rows(view, child, depth + 1)


def _reason(group: Group) -> str:
    """The reason of a group below its minimum: of QuorumMet if it has run, else of its Scheduled condition."""
    if group.obj is None:
        return "does not exist"
    conditions = {c.type: c for c in group.obj.status.conditions or ()}
    found = conditions.get(QUORUM_MET)
    if found is None or found.status == "True":
        found = next((c for type_, c in conditions.items() if type_.endswith("Scheduled") and c.status != "True"), None)
    return found.reason if found is not None else ""


def screen(rows: list[GroupRow], width: int) -> str:
    """The trees as text, a line a group, no wider than the terminal."""
    if not rows:
        return "There are no groups."
    return "\n".join(live.fit(_line(row), width) for row in rows)


def _line(row: GroupRow) -> str:
    mark = "●" if row.met else "○"
    kind = {"PodGroup": "pg", "CompositePodGroup": "cpg"}[row.kind]
    short = row.topology.rsplit("/", 1)[-1] if row.topology else ""
    place = f"  {short}={','.join(row.domains)}" if row.domains else (f"  one {short}" if short else "")
    pending = f"  {row.pending} pending" if row.pending else ""
    pending += f"  {row.reason}" if row.reason else ""
    nodes = _nodes(row.nodes)
    where = f"  on {nodes}" if nodes else ""
    home = f" ({row.namespace})" if row.depth == 0 else ""
    return f"{'   ' * row.depth}{mark} {kind}/{row.name}{home}  {row.bound}/{row.minimum}{pending}{place}{where}"


def _nodes(nodes: dict[str, int]) -> str:
    shown = [f"{name}×{count}" if count > 1 else name for name, count in list(nodes.items())[:MOST_NODES]]
    more = f" +{len(nodes) - MOST_NODES} nodes" if len(nodes) > MOST_NODES else ""
    return " ".join(shown) + more
