"""What a tree that cannot be tried yet is waiting for, group by group.

The texts name what is missing. They are written two seconds after the wait began (most groups are
complete by then), after that only when they change and at most once in ten seconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from muster.scheduler.groups.group import Group, awaits_priority
from muster.scheduler.interface.keys import EntityKey

FIRST_NOTICE_SECONDS = 2.0
NOTICE_INTERVAL_SECONDS = 10.0
LATEST_POD_NOTICE_SECONDS = 30.0
PODS_TOLD_PER_SECOND = 10
FOR_MEMBERS = "WaitingForMembers"
FOR_CHILDREN = "WaitingForChildren"
FOR_PARENT = "WaitingForParent"
FOR_PRIORITY = "WaitingForPriority"
FOR_VICTIMS = "WaitingForVictims"
FOR_POD_GROUP = "WaitingForPodGroup"
GATED = "SchedulingGated"
MOST_FAULT = 400  # characters about an annotation that cannot be read


class WaitReason(NamedTuple):
    """One group and what it waits for."""

    group: Group
    reason: str
    message: str


def wait_reasons(top: Group) -> Iterator[WaitReason]:
    """What each existing group of an incomplete tree waits for; groups that no pod or child names are left out."""
    gated = _first_gated(top) if top.gated else ""
    for group in top.subtree():
        wait = _wait_of(group, top, gated) if group.obj is not None and (group.children or group.known) else None
        if wait is not None:
            yield WaitReason(group, *wait)


def _wait_of(group: Group, top: Group, gated: str) -> tuple[str, str] | None:
    if not top.exists:
        return FOR_PARENT, f"parent {top.key.name} does not exist"
    if not group.admissible:
        return own_wait(group)
    if not group.admitted:
        return FOR_CHILDREN, incomplete_above(group) or own_wait(top)[1]
    if gated:
        return GATED, f"pod {gated} has scheduling gates, which hold the whole tree"
    return (FOR_PRIORITY, _class_text(top)) if awaits_priority(top) else None


def _class_text(top: Group) -> str:
    name = top.obj.spec.priority_class_name if top.obj is not None else ""
    return f"PriorityClass {name} has not given {top.key.name} its priority yet; it may not exist"


def incomplete_above(group: Group) -> str:
    """The nearest composite above a group that lacks children, as text; empty if there is none."""
    above = group.parent if not group.cyclic else None
    while above is not None:
        if not above.admissible:
            return f"composite pod group {above.key.name} is incomplete: {own_wait(above)[1]}"
        above = above.parent if not above.cyclic else None
    return ""


def own_wait(group: Group) -> tuple[str, str]:
    """What a group without its quorum waits for, at its own level."""
    if group.is_leaf:
        return FOR_MEMBERS, f"{group.known} of {group.minimum} members exist{_expectation_text(group)}"
    return FOR_CHILDREN, f"{group.below.admissible} of {group.minimum} child groups are complete"


def _expectation_text(group: Group) -> str:
    """What is said about members to come on a group that they do not complete."""
    if group.expectation.fault:
        return f"; {group.expectation.fault}"[:MOST_FAULT]
    return f", {group.expecting} more are expected" if group.expecting else ""


def _first_gated(top: Group) -> str:
    names = (m.ref.name for leaf in top.leaves() for m in leaf.pending.values() if m.gated)
    return min(names, default="")


class NoticeTimer:
    """When the wait reasons of which tree are written next, on its groups and on its pods.

    Groups are few and told first. Pods are told when the tree stopped changing (one that is being created is complete
    soon), at the latest after half a minute, and then at most ten of them in a second.
    """

    def __init__(self) -> None:
        self._due: dict[EntityKey, float] = {}
        self._last: dict[EntityKey, float] = {}
        self._began: dict[EntityKey, float] = {}
        self._changed: dict[EntityKey, float] = {}
        self._pods_told: dict[EntityKey, float] = {}
        self._heap: list[tuple[float, EntityKey]] = []

    def start(self, key: EntityKey, now: float) -> None:
        """A tree waits, or waits for something else now."""
        self._began.setdefault(key, now)
        self._changed[key] = now
        last = self._last.get(key)
        self._set(key, now + FIRST_NOTICE_SECONDS if last is None else max(now, last + NOTICE_INTERVAL_SECONDS))

    def _set(self, key: EntityKey, due: float) -> None:
        if key not in self._due or due < self._due[key]:
            self._due[key] = due
            heapq.heappush(self._heap, (due, key))

    def stop(self, key: EntityKey) -> None:
        """The tree no longer waits."""
        for times in (self._due, self._last, self._began, self._changed, self._pods_told):
            times.pop(key, None)

    def due(self, now: float) -> list[EntityKey]:
        """The trees whose wait reasons are due."""
        due: list[EntityKey] = []
        while self._heap and self._heap[0][0] <= now:
            when, key = heapq.heappop(self._heap)
            if self._due.get(key) == when:
                del self._due[key]
                self._last[key] = when
                due.append(key)
        return due

    def pods_due(self, key: EntityKey, pods: int, now: float) -> bool:
        """Whether the pods of a tree, so many, are told now as well; if not, the tree is due again when they are."""
        due = min(self._changed[key] + FIRST_NOTICE_SECONDS, self._began[key] + LATEST_POD_NOTICE_SECONDS)
        if key in self._pods_told:
            due = max(due, self._pods_told[key] + max(NOTICE_INTERVAL_SECONDS, pods / PODS_TOLD_PER_SECOND))
        if now < due:
            self._set(key, due)
            return False
        self._pods_told[key] = now
        return True

    def next_due(self) -> float | None:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
