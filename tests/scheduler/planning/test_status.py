"""Statuses folded up a tree: what succeeded, what eviction could help, what is hopeless."""

import pytest

from muster.scheduler.planning.demand import Demand, leaves
from muster.scheduler.planning.status import Status, resolve, statuses
from muster.scheduler.planning.verdict import (
    CountingProof,
    Infeasible,
    Placed,
    SearchRecord,
    Seat,
    Undecided,
    Verdict,
)
from tests.scheduler.planning.scene import Scene, a_node


@pytest.mark.parametrize(
    ("numbers", "status"),
    [
        ((2, 2, 0, 0), Status.SUCCESS),
        ((2, 1, 1, 0), Status.WAIT),
        ((2, 1, 0, 1), Status.UNSCHEDULABLE),
        ((2, 1, 0, 0), Status.UNRESOLVABLE),
    ],
)
def test_the_four_statuses_follow_from_the_numbers(numbers: tuple[int, int, int, int], status: Status):
    assert resolve(*numbers) is status


def a_tree() -> tuple[Demand, Demand, Demand]:
    scene = Scene().nodes(a_node("n0"))
    left, right = scene.uniform("left", 2), scene.uniform("right", 1)
    return scene.composite("root", left, right), left, right


def with_seats(*groups: Demand) -> Verdict:
    return Placed(tuple(Seat(m.uid, "n0", 0) for g in groups for leaf in leaves(g) for m in leaf.members), frozenset())


def nothing(root: Demand) -> Verdict:
    return Infeasible(CountingProof(root.key, ()))


def test_a_placed_tree_is_a_success_at_every_level():
    root, left, right = a_tree()
    assert set(statuses(root, with_seats(left, right)).values()) == {Status.SUCCESS}


def test_a_child_that_fits_after_eviction_makes_its_parent_worth_preempting_for():
    root, left, right = a_tree()
    found = statuses(root, nothing(root), with_seats(left, right))
    assert found[left.key] is found[root.key] is Status.UNSCHEDULABLE


def test_a_child_that_fits_not_even_then_makes_its_parent_hopeless():
    root, left, right = a_tree()
    found = statuses(root, nothing(root), with_seats(left))
    assert found[right.key] is found[root.key] is Status.UNRESOLVABLE


def test_without_anything_to_evict_a_failure_is_final():
    root, left, _ = a_tree()
    assert statuses(root, nothing(root))[left.key] is Status.UNRESOLVABLE


def test_an_undecided_search_on_the_emptied_cluster_is_not_hopeless():
    root, _, _ = a_tree()
    assert statuses(root, nothing(root), Undecided(SearchRecord(9)))[root.key] is Status.UNSCHEDULABLE


def test_a_group_that_was_not_tried_waits():
    root, left, right = a_tree()
    found = statuses(root, with_seats(left), None, untried=[right.key])
    assert found[right.key] is found[root.key] is Status.WAIT
