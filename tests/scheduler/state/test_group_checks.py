"""Group checks: what is due is taken once and in order; faults and trees bound in part are remembered."""

from __future__ import annotations

from muster.scheduler.groups.validity import INVALID, TreeFault
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.group_checks import GroupChecks

A, B = EntityKey("PodGroup", "ns", "a"), EntityKey("PodGroup", "ns", "b")


def test_trees_are_taken_once_and_in_order():
    checks = GroupChecks()
    for key in (B, A, B):
        checks.tree_changed(key)

    assert (checks.take_groups(), checks.take_trees(), checks.take_trees()) == ([], [A, B], [])


def test_groups_are_taken_once_and_in_order():
    checks = GroupChecks()
    for key in (B, A, B):
        checks.members_changed(key)

    assert (checks.take_trees(), checks.take_groups(), checks.take_groups()) == ([], [A, B], [])


def test_a_tree_is_invalid_from_its_fault_until_the_fault_is_cleared():
    checks = GroupChecks()
    assert not checks.is_invalid(A)

    checks.set_fault(A, TreeFault(INVALID, "too deep"))

    assert (checks.is_invalid(A), checks.is_invalid(B)) == (True, False)
    assert (checks.clear_fault(A), checks.clear_fault(A)) == (True, False), "only the first one ends a fault"
    assert not checks.is_invalid(A)


def test_a_tree_is_overdue_when_the_limit_has_passed_since_the_first_notice():
    checks = GroupChecks()
    checks.set_partly_bound(A, True, 10.0)
    checks.set_partly_bound(A, True, 15.0)
    checks.set_partly_bound(B, True, 12.0)

    assert sorted(checks.due_times(5.0)) == [15.0, 17.0]
    assert checks.take_overdue(14.9, 5.0) == []
    assert checks.take_overdue(15.0, 5.0) == [A]
    assert checks.take_overdue(16.9, 5.0) == [], "the first was taken"
    assert list(checks.due_times(5.0)) == [17.0]


def test_a_tree_that_became_whole_is_never_overdue_and_its_time_starts_anew():
    checks = GroupChecks()
    checks.set_partly_bound(A, True, 0.0)

    checks.set_partly_bound(A, False, 3.0)
    checks.set_partly_bound(B, False, 3.0)
    assert (list(checks.due_times(5.0)), checks.take_overdue(100.0, 5.0)) == ([], [])

    checks.set_partly_bound(A, True, 100.0)
    assert list(checks.due_times(5.0)) == [105.0]
