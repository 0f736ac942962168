"""Preemptions: the life of one eviction, the pods that are leaving, and marks without an owner."""

from __future__ import annotations

import pytest

from muster.scheduler.groups.forest import Forest
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.verdict import Assignment, Placed
from muster.scheduler.state.preemptions import REFUSED_SECONDS, Preemptions
from tests.build.cluster import a_cluster
from tests.build.objects import a_gang, a_node, a_pod

A, B = EntityKey("PodGroup", "ns", "a"), EntityKey("PodGroup", "ns", "b")
PLACED = Placed((Assignment("pod-new", "n0", 0),), frozenset({A}))
U, V, W = "pod-u", "pod-v", "pod-w"


@pytest.fixture
def preemptions() -> Preemptions:
    """None under way, in a cluster where u and v run on n0 and w on n1."""
    running = [a_pod("u", node="n0"), a_pod("v", node="n0"), a_pod("w", node="n1")]
    return Preemptions(a_cluster(a_node("n0"), a_node("n1"), *running))


# --- the life of one preemption --------------------------------------------------------------------


def test_a_preemption_keeps_its_plan_its_victims_and_its_marks(preemptions: Preemptions):
    preemptions.start(A, PLACED, {U, V}, {U})

    found = preemptions.get(A)
    assert found is not None
    assert (found.placed, found.victims, found.marked, found.deleted) == (PLACED, {U, V}, {U}, {V})
    assert preemptions.get(B) is None


def test_an_entity_has_one_preemption_at_a_time(preemptions: Preemptions):
    preemptions.start(A, PLACED, {U}, {U})

    with pytest.raises(AssertionError, match="under way"):
        preemptions.start(A, PLACED, {V}, {V})


def test_entities_are_listed_in_the_order_in_which_their_preemptions_began(preemptions: Preemptions):
    preemptions.start(B, PLACED, {U}, {U})
    preemptions.start(A, PLACED, {U, V}, {V})

    assert preemptions.entities() == [B, A]
    assert (preemptions.waiting_for(U), preemptions.waiting_for(V), preemptions.waiting_for(W)) == ([B, A], [A], [])
    assert preemptions.victims() == {U, V}


def test_an_entity_is_found_by_the_nodes_of_its_plan(preemptions: Preemptions):
    preemptions.start(A, PLACED, {W}, {W})

    assert (preemptions.on_node("n0"), preemptions.on_node("n1")) == ([A], [])


def test_marked_victims_are_deleted_once_and_in_order(preemptions: Preemptions):
    preemptions.start(A, PLACED, {U, V, W}, {V, U})

    assert (preemptions.delete_marked(A), preemptions.delete_marked(A)) == ([U, V], [])

    found = preemptions.get(A)
    assert found is not None
    assert found.deleted == {U, V, W}


def test_cancel_takes_back_the_marks_of_pods_that_were_not_asked_to_leave(preemptions: Preemptions):
    preemptions.start(A, PLACED, {U, V}, {U})

    assert preemptions.cancel(A) == {U}

    assert (preemptions.get(A), preemptions.unclaimed, preemptions.cancel(A)) == (None, frozenset(), set())


def test_cancel_takes_back_the_mark_of_a_victim_that_the_api_would_not_delete(preemptions: Preemptions):
    preemptions.start(A, PLACED, {U, V}, {U, V})
    preemptions.delete_marked(A)
    preemptions.refused(V, 0.0)

    assert preemptions.cancel(A) == {V}


def test_abandon_leaves_marks_that_nobody_claims(preemptions: Preemptions):
    preemptions.start(A, PLACED, {U, V}, {U})

    preemptions.abandon(A)
    preemptions.abandon(B)

    assert (preemptions.get(A), preemptions.unclaimed) == (None, {U})


# --- what happens to pods --------------------------------------------------------------------------


def test_a_victim_that_leaves_by_itself_need_not_be_deleted(preemptions: Preemptions):
    preemptions.start(A, PLACED, {U, V}, {U, V})

    preemptions.victim_leaving(U)
    preemptions.victim_leaving(W)

    assert preemptions.victims() == {U, V}
    assert preemptions.delete_marked(A) == [V]


def test_the_last_victim_that_goes_names_the_entities_that_waited(preemptions: Preemptions):
    preemptions.start(A, PLACED, {U}, {U})
    preemptions.start(B, PLACED, {U, V}, {U, V})

    assert preemptions.victim_gone(W) == []
    assert preemptions.victim_gone(U) == [A]
    assert preemptions.delete_marked(B) == [V]
    assert preemptions.victim_gone(V) == [B]
    assert preemptions.victims() == set()


def test_a_refused_pod_is_chosen_again_when_its_time_has_passed(preemptions: Preemptions):
    preemptions.refused(U, 10.0)
    preemptions.refused(V, 11.0)

    preemptions.expire_refusals(10.0 + REFUSED_SECONDS - 0.1)
    assert preemptions.refused_pods == {U, V}
    preemptions.expire_refusals(10.0 + REFUSED_SECONDS)
    assert preemptions.refused_pods == {V}
    preemptions.forget_pod(V)
    preemptions.forget_pod(W)
    assert preemptions.refused_pods == set()


# --- sets of pods ----------------------------------------------------------------------------------


def test_a_terminating_pod_is_leaving_until_it_left_its_node(preemptions: Preemptions):
    preemptions.pod_terminating(W)
    assert (preemptions.leaving(), preemptions.is_any_leaving()) == ({W}, True)

    preemptions.pod_left_node(W)

    assert (preemptions.leaving(), preemptions.is_any_leaving()) == (set(), False)


def test_a_victim_is_leaving_from_its_deletion_on_unless_the_api_refused_it(preemptions: Preemptions):
    preemptions.start(A, PLACED, {U, V}, {U, V})
    assert preemptions.leaving() == set(), "a mark can be taken back"

    preemptions.delete_marked(A)
    assert preemptions.leaving() == {U, V}

    preemptions.refused(V, 0.0)
    assert preemptions.leaving() == {U}


def test_a_refused_pod_that_terminates_all_the_same_is_leaving(preemptions: Preemptions):
    preemptions.refused(U, 0.0)

    preemptions.pod_terminating(U)

    assert preemptions.leaving() == {U}


def test_pods_that_count_on_no_node_are_not_leaving(preemptions: Preemptions):
    preemptions.pod_terminating("pod-unknown")
    preemptions.adopt_mark("pod-unknown")

    assert (preemptions.leaving(), preemptions.is_any_leaving()) == (set(), False)


@pytest.mark.parametrize("how", ["marked earlier", "victim", "not at all"])
def test_a_group_loses_pods_when_one_of_its_running_pods_is_marked_or_a_victim(preemptions: Preemptions, how: str):
    forest = Forest()
    group = forest.put_group(a_gang("g", 1))
    forest.put_member(a_pod("u", "g", node="n0"), group.key)
    assert not preemptions.is_losing_pods(group)

    if how == "marked earlier":
        preemptions.adopt_mark(U)
    else:
        preemptions.start(A, PLACED, {U if how == "victim" else V}, set())

    assert preemptions.is_losing_pods(group) == (how != "not at all")


# --- marks without an owner ------------------------------------------------------------------------


def test_an_adopted_mark_is_claimed_by_the_plan_that_marks_the_pod(preemptions: Preemptions):
    preemptions.adopt_mark(U)
    preemptions.adopt_mark(W)
    assert (preemptions.unclaimed, preemptions.is_any_leaving()) == ({U, W}, True)

    preemptions.start(A, PLACED, {U, V}, {U, V})

    assert preemptions.unclaimed == {W}


def test_unclaimed_marks_are_released_once_but_not_those_of_pods_somebody_waits_for(preemptions: Preemptions):
    preemptions.adopt_mark(U)
    preemptions.adopt_mark(V)
    preemptions.start(A, PLACED, {U}, set())

    assert preemptions.release_unclaimed() == {V}

    assert (preemptions.unclaimed, preemptions.release_unclaimed()) == (set(), set())


# --- without a result ------------------------------------------------------------------------------


def test_the_note_that_no_victims_were_proven_to_help_is_taken_once(preemptions: Preemptions):
    preemptions.set_undecided(A)

    assert not preemptions.take_undecided(B)
    assert (preemptions.take_undecided(A), preemptions.take_undecided(A)) == (True, False)


def test_a_pod_that_could_not_be_deleted_can_be_chosen_again_when_its_time_is_over(preemptions: Preemptions):
    preemptions.refused("pod-x", 10.0)
    due = preemptions.next_expiry()
    assert due == 10.0 + REFUSED_SECONDS

    assert preemptions.expire_refusals(due - 0.001) == []
    assert (preemptions.expire_refusals(due), preemptions.next_expiry()) == (["pod-x"], None)
