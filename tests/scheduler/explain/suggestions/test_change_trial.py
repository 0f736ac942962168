"""A change is tried without changing anything."""

from __future__ import annotations

from typing import Any

from muster.scheduler.cycle.evaluate import evaluate
from muster.scheduler.explain.suggestions import change_trial
from muster.scheduler.explain.suggestions.change_trial import ChangeTrial, copy_of
from muster.scheduler.interface.keys import EntityKey
from tests.build.objects import HOSTNAME, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world
from tests.build.suggestions import a_stuck_rack_gang, suggested


def test_asking_leaves_the_world_as_it_was():
    world = a_stuck_rack_gang()
    cluster = world.scheduler.state.cluster
    before = (sorted(cluster.index), cluster.used.tobytes(), len(cluster.pods))
    first = suggested(world, "PodGroup", "g")
    assert suggested(world, "PodGroup", "g") == first
    assert (sorted(cluster.index), cluster.used[:, : len(before[0])].tobytes(), len(cluster.pods)) == before


def a_trial(world: TestWorld, name: str = "g") -> ChangeTrial:
    """Changes for the entity of this name, which does not fit."""
    state = world.run().scheduler.state
    (entity,) = [entity for entity in state.queue.entities.values() if entity.key.name == name]
    return ChangeTrial(world.scheduler, entity, evaluate(state, entity))


def a_full_node() -> TestWorld:
    """The gang `g` of two pods on a node that has room for one of them beside `other`."""
    world = a_world([a_node("n0", cpu=2)]).add(a_pod("other", node="n0"))
    return world.add(a_gang("g", 2, created=5), *pods(2, "g", created=5))


def test_an_entity_fits_without_certain_pods():
    trial = a_trial(a_full_node())
    assert not trial.fits()
    assert trial.fits(evicted=["pod-other"])


def test_room_for_all_is_first_taken_by_those_ahead_in_the_queue():
    world = a_full_node().add(a_pod("ahead", cpu=2, created=1))
    trial = a_trial(world)
    assert [entity.key.name for entity in trial.ahead()] == ["ahead"]
    assert not trial.fits(evicted=["pod-other"])
    assert trial.fits(evicted=["pod-other"], without=EntityKey("Pod", "ns", "ahead"))


def test_entities_that_are_not_ready_take_no_room():
    gated = a_pod("gated", cpu=2, created=1, gates=["hold"])
    world = a_full_node().add(gated, a_gang("incomplete", 2, created=1), a_pod("i-0", "incomplete", created=1))
    assert a_trial(world).ahead() == []


def test_nodes_exist_only_while_they_are_tried():
    world = a_full_node()
    trial = a_trial(world)
    node = world.get("Node", "n0")
    with trial.with_nodes([copy_of(node, "more")]):
        assert "more" in world.scheduler.state.cluster.index
        assert trial.fits()
    assert "more" not in world.scheduler.state.cluster.index
    with trial.with_nodes([a_node("n0", cpu=3)]):
        assert trial.fits()
    assert world.scheduler.state.cluster.node_objects["n0"] == node


def test_the_fewest_nodes_that_help_are_found():
    world = a_world([a_node("n0", cpu=1)]).add(a_gang("g", 4), *pods(4, "g"))
    trial = a_trial(world)

    def more(number: int) -> list[Any]:
        return [copy_of(world.get("Node", "n0"), f"new-{i}") for i in range(number)]

    assert trial.fewest(8, more) == 3
    assert trial.fewest(2, more) is None
    assert trial.fewest(0, more) is None


def test_the_largest_minimum_that_fits_is_found():
    world = a_world([a_node("n0", cpu=3)]).add(a_gang("g", 5), *pods(5, "g"))
    trial = a_trial(world)
    assert trial.largest(1, 4, trial.request.with_minimum) == 3
    assert trial.largest(4, 4, trial.request.with_minimum) is None
    assert trial.largest(5, 4, trial.request.with_minimum) is None


def test_nothing_more_is_tried_when_the_tries_are_spent(monkeypatch: Any):
    monkeypatch.setattr(change_trial, "MOST_TRIES", 1)
    trial = a_trial(a_full_node())
    assert trial.fits(evicted=["pod-other"])
    assert trial.spent
    assert not trial.fits(evicted=["pod-other"])


def test_a_copy_of_a_node_differs_in_its_name_alone():
    copy = copy_of(a_node("n0", rack="r0"), "new")
    assert (copy.metadata.name, copy.metadata.uid) == ("new", "new")
    assert copy.metadata.labels == a_node("n0", rack="r0").metadata.labels | {HOSTNAME: "new"}
