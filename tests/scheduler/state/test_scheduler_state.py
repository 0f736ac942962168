"""The scheduler's state as one object: look-ups, and invariants that a broken state fails."""

from __future__ import annotations

import pytest

from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.verdict import Placed
from muster.scheduler.queue.entity import QueuedEntity, RequeueHints
from muster.scheduler.state.nominations import Nomination
from muster.scheduler.state.scheduler_state import SchedulerState
from tests.build.objects import HOSTNAME, a_composite, a_gang, a_node, a_pod, near, pods
from tests.build.scheduler import a_world

TREE, POD = EntityKey("CompositePodGroup", "ns", "tree"), EntityKey("Pod", "ns", "solo")


def a_state() -> SchedulerState:
    """A node with the label `row=1`, a tree of two gangs and a pod, nothing tried yet."""
    world = a_world([a_node("n0", row="1")]).add(a_composite("tree", 2))
    world.add(a_gang("b", 1, parent="tree"), a_pod("b-0", "b", created=2), a_gang("a", 2, parent="tree"))
    return world.add(*pods(2, "a", created=1), a_pod("solo")).scheduler.state


def shape_of(state: SchedulerState, name: str) -> Shape:
    return state.shape_of(state.forest.members[f"pod-{name}"])


def test_pending_pods_of_an_entity_are_in_the_order_in_which_they_are_placed():
    state = a_state()
    names = {key: [m.ref.name for m in state.members_of(state.queue.entities[key])] for key in (TREE, POD)}
    assert names == {TREE: ["a-0", "a-1", "b-0"], POD: ["solo"]}


def test_an_entity_has_the_scheduler_of_its_pods_and_is_named_by_its_object():
    state = a_state()
    assert [state.scheduler_of(state.queue.entities[key]) for key in (TREE, POD)] == ["default-scheduler"] * 2
    assert [state.ref_of(state.queue.entities[key]).uid for key in (TREE, POD)] == [
        "CompositePodGroup-tree",
        "pod-solo",
    ]


def test_the_top_of_a_tree_is_found_from_any_group_in_it():
    state = a_state()
    assert state.top(EntityKey("PodGroup", "ns", "a")) is state.forest.groups[TREE]
    assert state.top(EntityKey("PodGroup", "ns", "unknown")) is None


def test_pods_of_one_shape_are_told_apart_by_a_selector_that_comes_later():
    world = a_world([a_node("n0")]).add(a_pod("web", labels={"app": "web"}), a_pod("db", labels={"app": "db"}))
    state = world.scheduler.state
    assert shape_of(state, "web") is shape_of(state, "db")
    world.add(a_pod("beside", affinity=near(HOSTNAME, app="web")))
    assert shape_of(state, "web") is not shape_of(state, "db")


def test_the_domain_of_a_node_is_its_label_or_nothing():
    state = a_state()
    assert (state.domain_of("n0", "row"), state.domain_of("n0", "column"), state.domain_of("n1", "row")) == (
        "1",
        "",
        "",
    )


def test_seats_nominated_for_others_count_against_an_entity_and_its_own_do_not():
    state = a_state()
    state.nominations.nominate(Nomination("pod-a-0", shape_of(state, "a-0"), "n0", 0, TREE))
    against = {key: len(state.nominated_against(state.queue.entities[key])) for key in (TREE, POD)}
    assert against == {TREE: 0, POD: 1}


def test_a_state_that_nothing_is_wrong_with_passes_the_check():
    a_state().check()


def test_an_entity_that_waits_for_victims_without_a_preemption_is_noticed():
    state = a_state()
    state.queue.set_preempting(state.queue.entities[POD])
    state.queue.await_room(state.queue.entities[POD], RequeueHints("x"), 0.0)
    with pytest.raises(AssertionError, match="waits for no victims"):
        state.check()


def test_a_preemption_for_an_entity_that_is_not_queued_is_noticed():
    state = a_state()
    state.preemptions.start(EntityKey("Pod", "ns", "gone"), Placed((), frozenset()), {"x"}, {"x"})
    with pytest.raises(AssertionError, match="which is not queued"):
        state.check()


def test_a_nomination_for_an_entity_that_is_not_queued_is_noticed():
    state = a_state()
    state.nominations.nominate(Nomination("x", shape_of(state, "solo"), "n0", 0, EntityKey("Pod", "ns", "gone")))
    with pytest.raises(AssertionError, match="which is not queued"):
        state.check()


def test_an_entity_of_a_group_below_another_is_noticed():
    state = a_state()
    below = EntityKey("PodGroup", "ns", "a")
    state.queue.add(QueuedEntity(below, group=state.forest.groups[below]), 0.0)
    with pytest.raises(AssertionError, match="is not the top of a tree"):
        state.check()
