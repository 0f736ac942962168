"""Success, Wait, Unschedulable or UnschedulableAndUnresolvable, folded up a tree as KEP-6012 says.

At a group, M is its minimum, S counts the children that succeed with free capacity, R those not tried
yet, U those that would succeed once everything of lower priority were gone, UU those that would not
even then. For a leaf the children are its members:

    S >= M          Success
    S + R >= M      Wait
    S + R + U >= M  Unschedulable: preemption is worth trying
    otherwise       UnschedulableAndUnresolvable: preemption cannot help
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from muster.scheduler.planning.demand import Demand, GroupKey, Leaf
from muster.scheduler.planning.verdict import Placed, Undecided, Verdict


class Status(Enum):
    SUCCESS = "Success"
    WAIT = "Wait"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"


def resolve(minimum: int, succeeded: int, remaining: int, resolvable: int) -> Status:
    """The status of a group from the numbers M, S, R and U."""
    if succeeded >= minimum:
        return Status.SUCCESS
    if succeeded + remaining >= minimum:
        return Status.WAIT
    if succeeded + remaining + resolvable >= minimum:
        return Status.UNSCHEDULABLE
    return Status.UNRESOLVABLE


def statuses(
    demand: Demand, now: Verdict, emptied: Verdict | None = None, untried: Collection[GroupKey] = ()
) -> dict[GroupKey, Status]:
    """The status of every group of a tree.

    `now` is the verdict with free capacity, `emptied` the one with all units of lower priority taken
    away (None when there are none). Groups in `untried` were never evaluated. A group that holds in
    neither verdict is unresolvable, unless the emptied search itself was undecided: then it is not
    known to be hopeless.
    """
    found: dict[GroupKey, Status] = {}
    _fold(demand, _seated(now), _seated(emptied), isinstance(emptied, Undecided), frozenset(untried), found)
    return found


def _seated(verdict: Verdict | None) -> frozenset[str]:
    return frozenset(seat.uid for seat in verdict.seats) if isinstance(verdict, Placed) else frozenset()


def _fold(
    demand: Demand,
    now: frozenset[str],
    emptied: frozenset[str],
    unknown: bool,
    untried: frozenset[GroupKey],
    found: dict[GroupKey, Status],
) -> Status:
    if isinstance(demand, Leaf):
        status = _leaf(demand, now, emptied, unknown, demand.key in untried)
    else:
        below = [_fold(child, now, emptied, unknown, untried, found) for child in demand.children]
        count = below.count
        remaining = count(Status.WAIT)
        status = resolve(demand.minimum, count(Status.SUCCESS), remaining, count(Status.UNSCHEDULABLE))
    found[demand.key] = status
    return status


def _leaf(leaf: Leaf, now: frozenset[str], emptied: frozenset[str], unknown: bool, untried: bool) -> Status:
    seated = leaf.bound + sum(member.uid in now for member in leaf.members)
    waiting = [member for member in leaf.members if member.uid not in now]
    if untried:
        return resolve(leaf.minimum, seated, len(waiting), 0)
    helped = len(waiting) if unknown else sum(member.uid in emptied for member in waiting)
    return resolve(leaf.minimum, seated, 0, helped)
