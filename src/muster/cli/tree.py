"""`muster tree`: groups, their children and where their pods lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from muster.api.groups import QUORUM_MET
from muster.cli import exits, live, namespaces, output, progress, source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.groups.group import Group
    from muster.scheduler.state.scheduler_state import SchedulerState

MOST_NODES = 6


class Twig(msgspec.Struct, frozen=True, rename="camel"):
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
    reason: str = ""  # why it is not met, as its condition says


@click.command(name="tree")
@click.argument("name", required=False)
@namespaces.options
@live.option
@source.options
@output.option
def command(name: str | None, namespace: str | None, watch: bool, source: source.Source, output_format: str) -> int:
    """Show the trees of groups, or only the one that holds the group NAME."""

    def found() -> list[Twig]:
        twigs = trees(_brain(source, watch), namespace, name)
        if name is not None and not twigs:
            where = f' in namespace "{namespace}"' if namespace else ""
            raise exits.Failure(f'no group "{name}" exists{where}', exits.BAD_INPUT)
        return twigs

    if output_format != "table":
        output.write(found(), output_format, str)
    else:
        live.show(lambda: screen(found(), live.width()), watch)
    return exits.OK


def _brain(asked: source.Source, watch: bool) -> Scheduler:
    with progress.shown(wanted=not watch) as bar:
        return source.brain_for(asked.facts(bar), bar)


def trees(brain: Scheduler, namespace: str | None = None, name: str | None = None) -> list[Twig]:
    """Every tree, its top first."""
    groups = sorted(brain.state.forest.groups.values(), key=lambda group: group.key)
    tops = [group for group in groups if group.root() is group and namespace in (None, group.key.namespace)]
    if name is not None:
        tops = [top for top in tops if any(group.key.name == name for group in top.subtree())]
    return [twig for top in tops for twig in _twigs(brain.state, top, 0)]


def _twigs(world: SchedulerState, group: Group, depth: int) -> Iterator[Twig]:
    nodes: dict[str, int] = {}
    for leaf in group.leaves():
        for member in leaf.running.values():
            nodes[member.node] = nodes.get(member.node, 0) + 1
    key = group.topology
    domains = tuple(sorted({world.domain_of(node, key) for node in nodes})) if key else ()
    yield Twig(
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
        yield from _twigs(world, child, depth + 1)


def _reason(group: Group) -> str:
    """The last word on a group that is not whole: that it fell below its minimum, or why it never started."""
    if group.obj is None:
        return "does not exist"
    conditions = {c.type: c for c in group.obj.status.conditions or ()}
    said = conditions.get(QUORUM_MET)
    if said is None or said.status == "True":
        said = next((c for type_, c in conditions.items() if type_.endswith("Scheduled") and c.status != "True"), None)
    return said.reason if said is not None else ""


def screen(twigs: list[Twig], width: int) -> str:
    if not twigs:
        return "There are no groups."
    return "\n".join(live.fit(_line(twig), width) for twig in twigs)


def _line(twig: Twig) -> str:
    mark = "●" if twig.met else "○"
    kind = {"PodGroup": "pg", "CompositePodGroup": "cpg"}[twig.kind]
    short = twig.topology.rsplit("/", 1)[-1] if twig.topology else ""
    place = f"  {short}={','.join(twig.domains)}" if twig.domains else (f"  one {short}" if short else "")
    pending = f"  {twig.pending} pending" if twig.pending else ""
    pending += f"  {twig.reason}" if twig.reason else ""
    nodes = _nodes(twig.nodes)
    where = f"  on {nodes}" if nodes else ""
    home = f" ({twig.namespace})" if twig.depth == 0 else ""
    return f"{'   ' * twig.depth}{mark} {kind}/{twig.name}{home}  {twig.bound}/{twig.minimum}{pending}{place}{where}"


def _nodes(nodes: dict[str, int]) -> str:
    shown = [f"{name}×{count}" if count > 1 else name for name, count in list(nodes.items())[:MOST_NODES]]
    more = f" +{len(nodes) - MOST_NODES} nodes" if len(nodes) > MOST_NODES else ""
    return " ".join(shown) + more
