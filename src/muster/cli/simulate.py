"""`muster simulate`: what would happen if these manifests were submitted now. Nothing is written to the cluster."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from muster.cli import exits, live, node_options, output, progress, source
from muster.cli.manifests import ManifestError, object_documents
from muster.scheduler.status.messages import count_text
from muster.views.natural_order import natural
from muster.views.simulate import Answer, simulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_NODES = 24  # rows of the table for people


@click.command(name="simulate")
@click.option("--filename", "-f", "files", multiple=True, required=True, help="Manifests: files, directories or -.")
@click.option("--recursive", "-R", is_flag=True, help="Look into the directories of a directory as well.")
@click.option("--namespace", "-n", default=None, help="For manifests that name none; default: that of the context.")
@source.options
@node_options.options()
@output.option
def command(
    files: tuple[str, ...],
    recursive: bool,
    namespace: str | None,
    source: source.Source,
    nodes: node_options.NodeFlags,
    output_format: str,
) -> int:
    """Say where the pods of some manifests would go, who would be evicted, and what would stay pending.

    The cluster is a live one (--kubeconfig), a file (--snapshot) or an empty one of so many nodes (--nodes).
    Each -f is submitted when the one before it has come to rest.
    Exit code 0: everything fits; 1: something does not; 2: undecided within the search budget.
    """
    if nodes.count and source.snapshot is not None:
        raise click.UsageError("--nodes makes a cluster of its own, so it cannot be combined with --snapshot")
    try:
        batches = [object_documents([file], recursive=recursive) for file in files]
    except ManifestError as error:
        raise exits.Failure(str(error), exits.BAD_INPUT) from error
    where = namespace or ("default" if nodes.count else source.default_namespace())
    with progress.shown() as bar:
        snapshot = source.with_gates(nodes.snapshot()) if nodes.count else source.read(bar)
        answer = simulate(snapshot, batches, where, bar)
    output.write(answer, output_format, lambda: "\n".join(_lines(answer, live.width())))
    if answer.fits:
        return exits.OK
    return exits.UNDECIDED if answer.undecided else exits.NO


# --- for people ------------------------------------------------------------------------------------


def _lines(answer: Answer, width: int) -> Iterator[str]:
    if answer.placements:
        yield from _cut(output.table(["node", "pods", "names"], list(_by_node(answer))), width)
        yield ""
    if answer.victims:
        rows = [(_few(names), by) for by, names in _grouped((v.preemptor, v.pod) for v in answer.victims)]
        yield from _cut(output.table(["evicted", "for"], rows), width)
        yield ""
    for reason, names in _grouped((each.reason, each.pod) for each in answer.pending):
        yield from textwrap.wrap(f"Pending: {_few(names)}", width, subsequent_indent="  ", break_on_hyphens=False)
        yield from textwrap.wrap(reason, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        yield ""
    yield _verdict(answer)


def _verdict(answer: Answer) -> str:
    if not answer.pods:
        return "There is nothing to place: the manifests add no pods. Nothing was changed."
    evicted = f", {count_text(len(answer.victims), 'pod')} would be evicted" if answer.victims else ""
    verdict = "It fits" if answer.fits else ("Undecided" if answer.undecided else "It does not fit")
    bound = f"{len(answer.placements)} of {count_text(answer.pods, 'pod')} would be bound"
    return f"{verdict}: {bound}{evicted}. Nothing was changed."


def _by_node(answer: Answer) -> Iterator[tuple[str, int, str]]:
    found = _grouped((placement.node, placement.pod) for placement in answer.placements)
    rows = sorted(found, key=lambda row: natural(row[0]))
    for node, pods in rows[:MOST_NODES]:
        yield node, len(pods), _few(pods)
    rest = rows[MOST_NODES:]
    if rest:
        yield f"{len(rest)} more nodes", sum(len(pods) for _, pods in rest), "(-o json lists them)"


def _cut(table: str, width: int) -> Iterator[str]:
    return (live.fit(line, width) for line in table.splitlines())


def _few(names: list[str]) -> str:
    shown = ", ".join(sorted(names, key=natural)[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Names by what they have in common: a reason, a node, a preemptor."""
    found: dict[str, list[str]] = {}
    for key, name in pairs:
        found.setdefault(key, []).append(name)
    return list(found.items())
