"""One tree of groups in full: the state of every level, its pods and their nodes, and its past as a time line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from muster.scheduler.interface.keys import EntityKey
from muster.views.failures import ViewFailure
from muster.views.natural_order import natural
from muster.views.occupancy import GangState, gang_state
from muster.views.tree import GroupRow, tree_of

if TYPE_CHECKING:
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.groups.group import Group, Member

MOST_MEMBERS = 2000


class MemberRow(msgspec.Struct, frozen=True, rename="camel"):
    """A pod of the tree."""

    name: str
    group: str
    state: str  # pending, running, leaving, succeeded or failed
    phase: str
    node: str
    created: str


class Moment(msgspec.Struct, frozen=True, rename="camel"):
    """Something that happened: when, to what, and what it was."""

    at: str
    about: str  # kind/name
    what: str
    text: str = ""
    good: bool | None = None  # None: neither good nor bad


class GroupDetail(msgspec.Struct, frozen=True, rename="camel"):
    """A tree, asked for by any of its groups."""

    kind: str
    namespace: str
    name: str
    root: GangState
    rows: tuple[GroupRow, ...]
    members: tuple[MemberRow, ...]
    more_members: int
    timeline: tuple[Moment, ...]


def group_detail(view: SchedulerView, kind: str, namespace: str, name: str) -> GroupDetail:
    """The tree that a group is in."""
    group = view.groups.get(EntityKey(kind, namespace, name))
    if group is None:
        raise ViewFailure(f'{kind.lower()} "{name}" does not exist in namespace "{namespace}"')
    top = group.root()
    pods = [member for leaf in top.leaves() for member in _members(view, leaf)]
    pods.sort(key=lambda member: natural(member.ref.name))
    rows = tuple(_member_row(member) for member in pods[:MOST_MEMBERS])
    timeline = sorted(_timeline(top, pods), key=lambda moment: moment.at)
    return GroupDetail(
        kind,
        namespace,
        name,
        gang_state(top),
        tuple(tree_of(view, top)),
        rows,
        len(pods) - len(rows),
        tuple(timeline),
    )


def _members(view: SchedulerView, leaf: Group) -> Iterator[Member]:
    yield from leaf.pending.values()
    yield from leaf.running.values()
    for uid in leaf.finished:
        if uid in view.members:
            yield view.members[uid]


def _member_row(member: Member) -> MemberRow:
    group = member.group.key.name if member.group is not None else ""
    meta = member.pod.metadata
    return MemberRow(
        meta.name, group, member.state, member.pod.status.phase, member.node, meta.creation_timestamp or ""
    )


def _timeline(top: Group, pods: list[Member]) -> Iterator[Moment]:
    for group in top.subtree():
        if group.obj is None:
            continue
        about = f"{group.key.kind}/{group.key.name}"
        yield Moment(group.created, about, "created")
        yield from _conditions(about, group.obj.status.conditions)
    created = sorted(member.pod.metadata.creation_timestamp or "" for member in pods)
    if created:
        about = f"{top.key.kind}/{top.key.name}"
        yield Moment(created[0], about, "first pod created")
        if len(created) > 1:
            yield Moment(created[-1], about, f"last of {len(created)} pods created")
    started = sorted(time for member in pods if (time := member.pod.status.start_time))
    if started:
        about = f"{top.key.kind}/{top.key.name}"
        yield Moment(started[0], about, "first pod started", good=True)
        if len(started) > 1:
            yield Moment(started[-1], about, f"{len(started)} pods started", good=True)


def _conditions(about: str, conditions: tuple[Any, ...] | None) -> Iterator[Moment]:
    for each in conditions or ():
        if each.last_transition_time:
            good = each.status == "True" if each.type != "DisruptionTarget" else each.status != "True"
            what = f"{each.type.rpartition('/')[2]} {each.status}: {each.reason}"
            yield Moment(each.last_transition_time, about, what, each.message, good)
