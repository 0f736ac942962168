"""Preemptions: which pods leave for whom, which marks nobody claims, which pods cannot be deleted."""

from __future__ import annotations

import pytest

from muster.scheduler.groups.forest import Forest
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.verdict import Assignment, Placed
from muster.scheduler.state.preemptions import REFUSED_SECONDS, Preemptions
from tests.build.cluster import a_cluster
from tests.build.objects import a_gang, a_node, a_pod

HIGH, OTHER = EntityKey("PodGroup", "ns", "high"), EntityKey("PodGroup", "ns", "other")
A, B, C = "pod-a", "pod-b", "pod-c"


def a_placement(node: str = "n0") -> Placed:
    return Placed((Assignment("pod-high", node, 0),), frozenset({HIGH}))


def some_preemptions() -> Preemptions:
    """On `n0` the pods `a` and `b`, on `n1` the pod `c`."""
    running = [a_pod("a", node="n0"), a_pod("b", node="n0"), a_pod("c", node="n1")]
    return Preemptions(a_cluster(a_node("n0"), a_node("n1"), *running))


def test_an_entity_has_one_preemption_at_a_time():
    preemptions = some_preemptions()
    preemptions.start(HIGH, a_placement(), {A}, {A})
    with pytest.raises(AssertionError, match="has a preemption under way"):
        preemptions.start(HIGH, a_placement(), {B}, {B})


def test_preemptions_are_listed_in_the_order_in_which_they_began():
    preemptions = some_preemptions()
    preemptions.start(OTHER, a_placement(), {A}, {A})
    preemptions.start(HIGH, a_placement(), {B}, {B})
    assert preemptions.entities() == [OTHER, HIGH]
    assert preemptions.victims() == {A, B}


def test_who_waits_for_a_pod_and_who_has_a_seat_on_a_node_in_view():
    preemptions = some_preemptions()
    preemptions.start(HIGH, a_placement("n0"), {A, B}, {A, B})
    preemptions.start(OTHER, a_placement("n1"), {B, C}, {C})
    assert preemptions.waiting_for(A) == [HIGH]
    assert preemptions.waiting_for(B) == [HIGH, OTHER]
    assert preemptions.on_node("n1") == [OTHER]


def test_marked_victims_are_deleted_once_and_leave_from_then_on():
    preemptions = some_preemptions()
    preemptions.start(HIGH, a_placement(), {A, B}, {A, B})
    assert preemptions.leaving() == frozenset()
    assert preemptions.delete_marked(HIGH) == [A, B]
    assert preemptions.leaving() == {A, B}
    assert preemptions.delete_marked(HIGH) == []


def test_a_victim_that_is_on_its_way_out_is_not_deleted_but_waited_for():
    preemptions = some_preemptions()
    preemptions.start(HIGH, a_placement(), {A, B}, {A, B})
    preemptions.victim_leaving(A)
    assert preemptions.delete_marked(HIGH) == [B]
    assert preemptions.waiting_for(A) == [HIGH]


def test_the_last_victim_that_goes_names_the_entities_it_held_up():
    preemptions = some_preemptions()
    preemptions.start(HIGH, a_placement(), {A, B}, {A, B})
    preemptions.start(OTHER, a_placement(), {A}, set())
    assert preemptions.victim_gone(A) == [OTHER]
    assert preemptions.victim_gone(B) == [HIGH]
    assert preemptions.victim_gone(C) == []


def test_a_cancelled_preemption_takes_back_the_marks_of_pods_that_may_stay():
    preemptions = some_preemptions()
    preemptions.start(HIGH, a_placement(), {A, B, C}, {A, B})
    assert preemptions.cancel(HIGH) == {A, B}
    assert preemptions.get(HIGH) is None
    assert preemptions.cancel(HIGH) == set()


def test_a_cancelled_preemption_takes_back_the_mark_of_a_pod_that_was_not_deleted():
    preemptions = some_preemptions()
    preemptions.start(HIGH, a_placement(), {A, B}, {A, B})
    preemptions.delete_marked(HIGH)
    preemptions.refused(A, 0.0)
    assert preemptions.cancel(HIGH) == {A}


def test_marks_of_an_abandoned_preemption_are_unclaimed_until_a_plan_claims_them():
    preemptions = some_preemptions()
    preemptions.start(HIGH, a_placement(), {A, B}, {A, B})
    preemptions.abandon(HIGH)
    assert preemptions.unclaimed == {A, B}
    preemptions.start(OTHER, a_placement(), {A}, {A})
    assert preemptions.unclaimed == {B}


def test_abandoning_what_was_never_started_changes_nothing():
    preemptions = some_preemptions()
    preemptions.abandon(HIGH)
    assert preemptions.unclaimed == frozenset()


def test_unclaimed_marks_are_released_except_those_that_somebody_waits_for():
    preemptions = some_preemptions()
    for uid in (A, B):
        preemptions.adopt_mark(uid)
    preemptions.start(HIGH, a_placement(), {A}, set())
    assert preemptions.release_unclaimed() == {B}
    assert preemptions.release_unclaimed() == set()


def test_terminating_pods_leave_until_they_have_left_their_node():
    preemptions = some_preemptions()
    preemptions.pod_terminating(A)
    assert preemptions.leaving() == {A}
    preemptions.pod_left_node(A)
    assert preemptions.leaving() == frozenset()


def test_a_pod_that_is_on_no_node_does_not_leave_one():
    preemptions = some_preemptions()
    preemptions.pod_terminating("pod-unknown")
    assert preemptions.leaving() == frozenset()


def test_a_pod_that_could_not_be_deleted_does_not_leave_and_is_spared_for_a_while():
    preemptions = some_preemptions()
    preemptions.start(HIGH, a_placement(), {A}, {A})
    preemptions.delete_marked(HIGH)
    preemptions.refused(A, 10.0)
    assert preemptions.leaving() == frozenset()
    preemptions.expire_refusals(10.0 + REFUSED_SECONDS - 0.1)
    assert preemptions.refused_pods == {A}
    preemptions.expire_refusals(10.0 + REFUSED_SECONDS)
    assert preemptions.refused_pods == frozenset()


def test_a_pod_that_is_gone_was_not_refused():
    preemptions = some_preemptions()
    preemptions.refused(A, 0.0)
    preemptions.forget_pod(A)
    assert preemptions.refused_pods == frozenset()


def test_nodes_to_be_freed_have_a_terminating_pod_or_one_marked_by_an_earlier_run():
    preemptions = some_preemptions()
    preemptions.pod_terminating(A)
    assert preemptions.nodes_to_be_freed() == {"n0"}
    preemptions.adopt_mark(C)
    preemptions.adopt_mark("pod-unknown")
    assert preemptions.nodes_to_be_freed() == {"n0", "n1"}


def test_a_group_loses_pods_while_one_of_its_members_is_marked_or_waited_for():
    preemptions, forest = some_preemptions(), Forest()
    group = forest.put_group(a_gang("g", 1))
    forest.put_member(a_pod("a", "g", node="n0"), group.key)
    assert not preemptions.is_losing_pods(group)
    preemptions.adopt_mark(A)
    assert preemptions.is_losing_pods(group)
    preemptions.release_unclaimed()
    preemptions.start(HIGH, a_placement(), {A}, set())
    assert preemptions.is_losing_pods(group)


def test_that_an_entity_awaits_binds_is_taken_once():
    preemptions = some_preemptions()
    preemptions.await_binds(HIGH)
    assert preemptions.take_awaiting_binds(HIGH)
    assert not preemptions.take_awaiting_binds(HIGH)
    assert not preemptions.take_awaiting_binds(OTHER)
