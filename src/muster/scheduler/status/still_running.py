"""Which members of a tree that is bound in part run on, whatever becomes of the tree.

After the bind timeout a pod with a controller is deleted, because it comes again; one without a controller is kept.
"""

from __future__ import annotations

from collections.abc import Container

from muster.scheduler.groups.group import RUNNING, Group, Member

MOST_NAMES, MOST_TEXT = 10, 500


def still_running(top: Group, schedulers: Container[str]) -> str:
    """The members of a tree that never ran as a whole which run for good; empty if there are none."""
    if top.scheduled_once or top.quorum_bound:
        return ""
    names = sorted(member.ref.name for member in running_members(top, schedulers) if not comes_again(member))
    if not names:
        return ""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    text = f"bound already, and kept because they have no controller: {', '.join(names[:MOST_NAMES])}{more}"
    return text[:MOST_TEXT]


def running_members(top: Group, schedulers: Container[str]) -> list[Member]:
    """The bound members that these schedulers are responsible for, in order."""
    running = [m for leaf in top.leaves() for m in leaf.running.values() if m.state == RUNNING]
    return sorted((m for m in running if m.traits[0] in schedulers), key=lambda m: m.order)


def comes_again(member: Member) -> bool:
    """Whether somebody makes the pod again when it is deleted."""
    return any(owner.controller for owner in member.pod.metadata.owner_references or ())
