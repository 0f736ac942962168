"""Assumed pods: counted on their node from the bind decision on, until the answer and the watch have both come."""

from __future__ import annotations

import pytest

from muster.scheduler.groups.group import Group, Member
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.scheduler_state import SchedulerState
from tests.build.objects import a_gang, a_node, a_pod
from tests.build.scheduler import a_world

UID = "pod-g-0"


def an_assumed_pod() -> tuple[SchedulerState, Member]:
    """The pod `g-0` of the gang `g`, assumed on `n0`; nothing was answered or shown."""
    state = a_world([a_node("n0", cpu=2)]).add(a_gang("g", 1), a_pod("g-0", "g")).brain.state
    member = state.forest.members[UID]
    state.signals.nodes.clear()
    state.assumed.assume([(member, state.shape_of(member).footprint, "n0")])
    return state, member


def group_of(state: SchedulerState) -> Group:
    return state.forest.groups[EntityKey("PodGroup", "ns", "g")]


def show_on_node(state: SchedulerState) -> None:
    """What the event handler does when the watch shows the pod on its node."""
    pod = a_pod("g-0", "g", node="n0")
    state.cluster.change("Pod", pod)
    state.forest.put_member(pod, EntityKey("PodGroup", "ns", "g"))
    state.assumed.confirm(UID)


def test_an_assumed_pod_counts_on_its_node_and_in_its_group():
    state, member = an_assumed_pod()
    assert state.cluster.pods[UID].node == "n0"
    assert (member.node, group_of(state).bound, group_of(state).confirmed) == ("n0", 1, 0)
    assert (state.assumed.in_flight(), group_of(state).in_flight) == (1, 1)
    state.assumed.check()


def test_a_pod_is_assumed_once_at_a_time():
    state, member = an_assumed_pod()
    footprint = state.shape_of(member).footprint
    with pytest.raises((AssertionError, KeyError)):
        state.assumed.assume([(member, footprint, "n0")])


@pytest.mark.parametrize("answer_first", [True, False])
def test_the_record_ends_when_the_bind_is_answered_and_the_watch_shows_the_pod_in_either_order(answer_first: bool):
    state, member = an_assumed_pod()
    if answer_first:
        state.assumed.bind_answered(member)
        assert state.assumed.in_flight() == 0
        show_on_node(state)
    else:
        show_on_node(state)
        assert state.assumed.in_flight() == 1
        state.assumed.bind_answered(member)
    assert (state.assumed.in_flight(), group_of(state).in_flight, group_of(state).confirmed) == (0, 0, 1)
    state.assumed.remove(member)  # no assumed node is left to give back
    assert state.cluster.pods[UID].node == "n0"


def test_a_forgotten_pod_gives_its_room_back_and_is_pending_again():
    state, member = an_assumed_pod()
    state.assumed.forget(member)
    assert UID not in state.cluster.pods
    assert (member.node, list(group_of(state).pending)) == ("", [UID])
    assert state.signals.nodes == {state.cluster.index["n0"]}
    assert "InterPodAffinity" in state.signals.take_plugins()


def test_a_forgotten_pod_is_in_flight_until_its_bind_is_answered():
    state, member = an_assumed_pod()
    state.assumed.forget(member)
    assert (state.assumed.in_flight(), group_of(state).in_flight) == (1, 1)
    state.assumed.check()
    state.assumed.bind_answered(member)
    assert (state.assumed.in_flight(), group_of(state).in_flight) == (0, 0)


def test_a_pod_that_is_not_assumed_has_nothing_to_forget():
    state = a_world([a_node("n0")]).add(a_pod("x")).brain.state
    state.signals.nodes.clear()
    state.assumed.forget(state.forest.members["pod-x"])
    assert not state.signals.nodes


def test_a_removed_pod_leaves_no_record():
    state, member = an_assumed_pod()
    state.assumed.remove(member)
    state.forest.remove_member(UID)
    assert (state.assumed.in_flight(), group_of(state).in_flight) == (0, 0)
    state.assumed.check()


def test_a_pod_on_a_node_that_is_gone_is_forgotten_without_a_signal():
    state, member = an_assumed_pod()
    state.cluster.remove("Node", "", "n0")
    state.assumed.forget(member)
    assert not state.signals.nodes


def test_the_check_notices_a_pod_that_only_the_cluster_assumes():
    state, _ = an_assumed_pod()
    state.cluster.assume_many([(a_pod("other"), state.shape_of(state.forest.members[UID]).footprint, "n0")])
    with pytest.raises(AssertionError):
        state.assumed.check()


def test_the_check_notices_a_record_that_the_forest_does_not_share():
    state, member = an_assumed_pod()
    member.in_flight = False
    with pytest.raises(AssertionError):
        state.assumed.check()
