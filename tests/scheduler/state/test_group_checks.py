"""Group checks: what must be looked at again, faults of trees, and trees that are bound in part."""

from __future__ import annotations

from muster.scheduler.groups.validity import INVALID, TreeFault
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.group_checks import GroupChecks

A, B = EntityKey("PodGroup", "ns", "a"), EntityKey("PodGroup", "ns", "b")


def test_what_is_due_is_taken_once_and_in_order():
    checks = GroupChecks()
    for key in (B, A, B):
        checks.tree_changed(key)
        checks.members_changed(key)
    assert (checks.take_trees(), checks.take_groups()) == ([A, B], [A, B])
    assert (checks.take_trees(), checks.take_groups()) == ([], [])


def test_a_tree_is_invalid_until_its_fault_is_cleared():
    checks = GroupChecks()
    checks.set_fault(A, TreeFault(INVALID, "a cycle"))
    assert checks.is_invalid(A)
    assert not checks.is_invalid(B)
    assert checks.clear_fault(A)
    assert not checks.is_invalid(A)
    assert not checks.clear_fault(A)


def test_a_tree_is_overdue_when_it_was_bound_in_part_for_too_long_since_the_first_notice():
    checks = GroupChecks()
    checks.set_partly_bound(A, True, 10.0)
    checks.set_partly_bound(A, True, 15.0)
    assert list(checks.due_times(60.0)) == [70.0]
    assert checks.take_overdue(69.9, 60.0) == []
    assert checks.take_overdue(70.0, 60.0) == [A]
    assert checks.take_overdue(70.0, 60.0) == []


def test_a_tree_that_is_completed_in_time_is_never_overdue():
    checks = GroupChecks()
    checks.set_partly_bound(A, True, 0.0)
    checks.set_partly_bound(A, False, 5.0)
    checks.set_partly_bound(B, False, 5.0)
    assert list(checks.due_times(60.0)) == []
    assert checks.take_overdue(1000.0, 60.0) == []
