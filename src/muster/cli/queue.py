"""`muster queue`: who waits, in order, since when and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from muster.cli import exits, live, namespaces, output, progress, source
from muster.cli.ages import age

if TYPE_CHECKING:
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.groups.group import Group
    from muster.scheduler.queue.entity import QueuedEntity


class Line(msgspec.Struct, frozen=True, rename="camel"):
    """One waiting root, as `-o json` prints it."""

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
def command(namespace: str | None, watch: bool, source: source.Source, output_format: str) -> int:
    """List the pods and groups that wait, in the order in which they are tried."""

    def lines() -> list[Line]:
        return waiting(_brain(source, watch), namespace)

    if output_format != "table":
        output.write(lines(), output_format, str)
    else:
        live.show(lambda: screen(lines(), live.width()), watch)
    return exits.OK


def _brain(asked: source.Source, watch: bool) -> Scheduler:
    with progress.shown(wanted=not watch) as bar:
        return source.brain_for(asked.facts(bar), bar)


def waiting(brain: Scheduler, namespace: str | None = None) -> list[Line]:
    """The queue, top first."""
    roots = [root for root in brain.entities() if namespace in (None, root.key.namespace)]
    return [_line(position, root) for position, root in enumerate(roots, 1)]


def _line(position: int, root: QueuedEntity) -> Line:
    group, member = root.group, root.member
    conditions = (group.obj.status.conditions if group and group.obj else None) or ()
    wanted = ("PodScheduled", "PodGroupScheduled", "PodGroupInitiallyScheduled", "CompositePodGroupInitiallyScheduled")
    if member is not None:
        conditions = member.pod.status.conditions or ()
    said = next((c for c in conditions if c.type in wanted and c.status != "True"), None)
    members = "1" if group is None else f"{sum(leaf.bound for leaf in group.leaves())}/{_needed(root)}"
    reason, message = (said.reason, said.message) if said is not None else _unsaid(group)
    since = root.created or (said.last_transition_time if said is not None else None) or _first_member(group)
    return Line(
        position, root.key.kind, root.key.namespace, root.key.name, members, root.priority, since, reason, message
    )


def _unsaid(group: Group | None) -> tuple[str, str]:
    """For whom the scheduler has no word: an object that does not exist carries no condition."""
    from muster.scheduler.status.waiting import FOR_PARENT, FOR_POD_GROUP

    if group is None or group.exists:
        return "New", ""
    what = "pod group" if group.is_leaf else "composite pod group"
    return (FOR_POD_GROUP if group.is_leaf else FOR_PARENT), f"{what} {group.key.name} does not exist"


def _first_member(group: Group | None) -> str:
    """When the first pod asked for a group that nobody has created."""
    pods = [member.pod for leaf in group.leaves() for member in leaf.pending.values()] if group is not None else []
    return min((pod.metadata.creation_timestamp or "" for pod in pods), default="")


def _needed(root: QueuedEntity) -> int:
    assert root.group is not None
    return sum(leaf.minimum for leaf in root.group.leaves())


def screen(lines: list[Line], width: int) -> str:
    """The queue as a table that fits the terminal."""
    if not lines:
        return "Nothing waits."
    rows = [
        (
            line.position,
            f"{_word(line.kind)}/{line.name}",
            line.namespace,
            line.members,
            line.priority,
            age(line.since),
            line.reason,
        )
        for line in lines
    ]
    text = output.table(["#", "name", "namespace", "members", "priority", "waiting", "reason"], rows)
    left = width - max(len(row) for row in text.splitlines()) - 3
    if left < 20:
        return "\n".join(live.fit(row, width) for row in text.splitlines())
    body = text.splitlines()
    longest = max(len(row) for row in body)
    said = ["MESSAGE", *[line.message for line in lines]]
    return "\n".join(
        f"{row.ljust(longest)}   {live.fit(word, left)}".rstrip() for row, word in zip(body, said, strict=True)
    )


def _word(kind: str) -> str:
    return {"PodGroup": "pg", "CompositePodGroup": "cpg"}.get(kind, "pod")
