"""The pending pods and groups in the order of the queue, since when and why they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from muster.scheduler.status.kept_room import UNKNOWN, start_text
from muster.views.workloads import workload_of

if TYPE_CHECKING:
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.groups.group import Group
    from muster.scheduler.queue.entity import QueuedEntity


class QueueRow(msgspec.Struct, frozen=True, rename="camel"):
    """One pending pod or tree of groups, as `muster queue -o json` prints it."""

    position: int
    kind: str
    namespace: str
    name: str
    members: str
    priority: int
    since: str
    reason: str
    message: str
    expected_start: str = UNKNOWN  # a time where it is known when the pods in its way end
    workload: str = ""  # what the groups were made for, such as jobset/train


MOST_EXPECTED = 20  # entries from the front of the queue whose start is estimated


def rows(
    scheduler: Scheduler, namespace: str | None = None, most: int | None = None, expected: int = MOST_EXPECTED
) -> list[QueueRow]:
    """The queue, the one that is tried next first; at most so many of it, with the expected start of so many."""
    view = scheduler.view()
    roots = [root for root in view.queue() if namespace in (None, root.key.namespace)]
    return [_row(view, position, root, position <= expected) for position, root in enumerate(roots[:most], 1)]


def _row(view: SchedulerView, position: int, root: QueuedEntity, with_start: bool) -> QueueRow:
    group, member = root.group, root.member
    conditions = (group.obj.status.conditions if group and group.obj else None) or ()
    wanted = ("PodScheduled", "PodGroupScheduled", "PodGroupInitiallyScheduled", "CompositePodGroupInitiallyScheduled")
    if member is not None:
        conditions = member.pod.status.conditions or ()
    found = next((c for c in conditions if c.type in wanted and c.status != "True"), None)
    members = "1" if group is None else f"{sum(leaf.bound for leaf in group.leaves())}/{_needed(root)}"
    reason, message = (found.reason, found.message) if found is not None else _without_condition(group)
    since = root.created or (found.last_transition_time if found is not None else None) or _first_member(group)
    start = start_text(view.expected_start(root)) if with_start else UNKNOWN
    key = root.key
    made_for = workload_of(group) if group is not None else ""
    return QueueRow(
        position, key.kind, key.namespace, key.name, members, root.priority, since, reason, message, start, made_for
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
    return sum(needed(leaf) for leaf in root.group.leaves())


def needed(leaf: Group) -> int:
    """The minimum of a pod group; one pod for a group that does not exist (any more)."""
    return leaf.minimum if leaf.exists else 1
