"""`muster queue`: the pending pods and groups in the order of the queue, since when and why they wait."""

from __future__ import annotations

import click

from muster.cli import exits, live, namespaces, output, source
from muster.cli.ages import age, until
from muster.scheduler.status.kept_room import UNKNOWN
from muster.views.queue import QueueRow, rows


@click.command(name="queue")
@namespaces.options
@live.option
@source.options
@output.option
def command(namespaces: namespaces.NamespaceOptions, watch: bool, source: source.Source, output_format: str) -> int:
    """List the pods and groups that wait, in the order in which they are tried."""

    def found() -> list[QueueRow]:
        return rows(source.scheduler(show_progress=not watch), namespaces.only)

    if output_format != "table":
        output.write(found(), output_format, str)
    else:
        live.show(lambda: screen(found(), live.width()), watch)
    return exits.OK


def screen(rows: list[QueueRow], width: int) -> str:
    """The queue as a table that fits the terminal."""
    if not rows:
        return "Nothing waits."
    cells = [
        (
            row.position,
            row.workload or f"{_short_kind(row.kind)}/{row.name}",
            row.namespace,
            row.members,
            row.priority,
            age(row.since),
            _start(row.expected_start),
            row.reason,
        )
        for row in rows
    ]
    text = output.table(["#", "name", "namespace", "members", "priority", "waiting", "start", "reason"], cells)
    lines = text.splitlines()
    longest = max(len(line) for line in lines)
    left = width - longest - 3
    if left < 20:
        return "\n".join(live.fit(line, width) for line in lines)
    messages = ["MESSAGE", *[row.message for row in rows]]
    return "\n".join(
        f"{line.ljust(longest)}   {live.fit(message, left)}".rstrip()
        for line, message in zip(lines, messages, strict=True)
    )


def _start(expected: str) -> str:
    """The expected start from now on; `unknown` as it is."""
    return expected if expected == UNKNOWN else until(expected)


def _short_kind(kind: str) -> str:
    return {"PodGroup": "pg", "CompositePodGroup": "cpg"}.get(kind, "pod")
