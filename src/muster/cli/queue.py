"""`muster queue`: the pending pods and groups in the order of the queue, since when and why they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from muster.cli import exits, live, namespaces, output, source
from muster.cli.ages import age

if TYPE_CHECKING:
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.groups.group import Group
    from muster.scheduler.queue.entity import QueuedEntity


class QueueRow(msgspec.Struct, frozen=True, rename="camel"):
    """One pending pod or tree of groups, as `-o json` prints it."""

    position: int
    kind: str
    namespace: str
    name: str
    members: str
    priority: int
    since: str
    reason: str
    message: str


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


def rows(scheduler: Scheduler, namespace: str | None = None) -> list[QueueRow]:
    """The queue, the one that is tried next first."""
    roots = [root for root in scheduler.view().queue() if namespace in (None, root.key.namespace)]
    return [_row(position, root) for position, root in enumerate(roots, 1)]


def _row(position: int, root: QueuedEntity) -> QueueRow:
    group, member = root.group, root.member
    conditions = (group.obj.status.conditions if group and group.obj else None) or ()
    wanted = ("PodScheduled", "PodGroupScheduled", "PodGroupInitiallyScheduled", "CompositePodGroupInitiallyScheduled")
    if member is not None:
        conditions = member.pod.status.conditions or ()
    found = next((c for c in conditions if c.type in wanted and c.status != "True"), None)
    members = "1" if group is None else f"{sum(leaf.bound for leaf in group.leaves())}/{_needed(root)}"
    reason, message = (found.reason, found.message) if found is not None else _without_condition(group)
    since = root.created or (found.last_transition_time if found is not None else None) or _first_member(group)
    return QueueRow(
        position, root.key.kind, root.key.namespace, root.key.name, members, root.priority, since, reason, message
    )


def _without_condition(group: Group | None) -> tuple[str, str]:
    """Reason and message for a new object, and for a group that does not exist and so has no conditions."""
    from muster.scheduler.status.waiting import FOR_PARENT, FOR_POD_GROUP

    if group is None or group.exists:
        return "New", ""
    what = "pod group" if group.is_leaf else "composite pod group"
    return (FOR_POD_GROUP if group.is_leaf else FOR_PARENT), f"{what} {group.key.name} does not exist"


def _first_member(group: Group | None) -> str:
    """The creation time of the first pod that names a group which nobody has created."""
    pods = [member.pod for leaf in group.leaves() for member in leaf.pending.values()] if group is not None else []
    return min((pod.metadata.creation_timestamp or "" for pod in pods), default="")


def _needed(root: QueuedEntity) -> int:
    assert root.group is not None
    return sum(leaf.minimum for leaf in root.group.leaves())


def screen(rows: list[QueueRow], width: int) -> str:
    """The queue as a table that fits the terminal."""
    if not rows:
        return "Nothing waits."
    cells = [
        (
            row.position,
            f"{_short_kind(row.kind)}/{row.name}",
            row.namespace,
            row.members,
            row.priority,
            age(row.since),
            row.reason,
        )
        for row in rows
    ]
    text = output.table(["#", "name", "namespace", "members", "priority", "waiting", "reason"], cells)
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


def _short_kind(kind: str) -> str:
    return {"PodGroup": "pg", "CompositePodGroup": "cpg"}.get(kind, "pod")
