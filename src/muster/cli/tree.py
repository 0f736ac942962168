"""`muster tree`: groups, their children, and the nodes that their pods run on."""

from __future__ import annotations

import click

from muster.cli import cluster_names, exits, live, namespaces, output, source
from muster.views.tree import GroupRow, trees
from muster.views.workloads import WORDS, kind_named

MOST_NODES = 6


@click.command(name="tree")
@click.argument("name", required=False, shell_complete=cluster_names.groups)
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
    """Show the trees of groups, or only the one that holds the group NAME.

    NAME may also be a workload: jobset/train, lws/serve, job/x, trainjob/x, raycluster/x and so on.
    """
    namespace = namespaces.only
    if name is not None and "/" in name and not kind_named(name.partition("/")[0]):
        known = ", ".join(sorted(WORDS))
        raise exits.Failure(f"{name!r}: the kind of a workload is one of {known}", exits.USAGE)

    def found() -> list[GroupRow]:
        rows = trees(source.scheduler(show_progress=not watch), namespace, name)
        if name is not None and not rows:
            where = f' in namespace "{namespace}"' if namespace else ""
            what = f"no groups of {name} exist" if "/" in name else f'no group "{name}" exists'
            raise exits.Failure(f"{what}{where}", exits.BAD_INPUT)
        return rows

    if output_format != "table":
        output.write(found(), output_format, str)
    else:
        live.show(lambda: screen(found(), live.width()), watch)
    return exits.OK


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
