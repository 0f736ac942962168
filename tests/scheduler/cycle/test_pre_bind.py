"""Before binds are sent: those whose nodes were taken since the plan are not sent, a gang's all together."""

from __future__ import annotations

from muster.scheduler.interface import decisions as d
from muster.scheduler.interface.events import LOST_RACE, BindFailed
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world


def planned(world: TestWorld) -> list[d.Bind]:
    """The binds of the next cycle, which nobody carries out."""
    return [decision for decision in world.scheduler.next(world.now) if isinstance(decision, d.Bind)]


def lost(world: TestWorld, binds: list[d.Bind]) -> dict[str, str]:
    found = world.scheduler.lost_races(binds)
    assert all(event.cause == LOST_RACE for event in found)
    return {event.uid.removeprefix("pod-"): event.reason for event in found}


def test_binds_to_nodes_that_are_still_free_may_be_sent():
    world = a_world([a_node("n0", cpu=2)]).add(a_gang("g", 2), *pods(2, "g"))
    binds = planned(world)
    assert lost(world, binds) == {}
    assert [world.scheduler.bind_fault(bind) for bind in binds] == ["", ""]


def test_when_one_node_is_taken_the_whole_gang_is_held_back():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)]).add(a_gang("g", 2), *pods(2, "g", cpu=1))
    binds = planned(world)
    world.add(a_pod("foreign", cpu=1, node="n1", scheduler="other"))
    found = lost(world, binds)
    assert set(found) == {"g-0", "g-1"}
    assert set(found.values()) == {"node n1 has no cpu left: others were bound to it meanwhile"}


def test_single_pods_on_free_nodes_are_sent_although_another_lost_its_node():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)]).add(*pods(2, name="p", cpu=1))
    binds = planned(world)
    assert len(binds) == 2
    world.add(a_pod("foreign", cpu=1, node="n1", scheduler="other"))
    assert list(lost(world, binds)) == [bind.pod.name for bind in binds if bind.node == "n1"]


def test_a_gang_that_was_held_back_is_placed_elsewhere_at_once():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)]).add(a_gang("g", 2), *pods(2, "g", cpu=1))
    first = planned(world)
    taken = first[0].node
    world.add(a_pod("foreign", cpu=2, node=taken, scheduler="other"))
    for event in world.scheduler.lost_races(first):
        world.scheduler.handle(event, world.now)
    world.run()
    assert len(world.bound("g")) == 2
    assert taken not in world.bound("g").values()


def test_a_pod_that_is_gone_is_answered_too():
    world = a_world([a_node("n0", cpu=2)]).add(a_gang("g", 1), *pods(2, "g"))
    binds = planned(world)
    world.remove("Pod", "g-1")
    assert world.scheduler.lost_races(binds) == [BindFailed("pod-g-1", "n0", "the pod is gone", LOST_RACE)]


def test_a_cordoned_or_vanished_node_is_noticed():
    world = a_world([a_node("n0", cpu=2)]).add(a_pod("p"))
    binds = planned(world)
    world.add(a_node("n0", cpu=2, unschedulable=True))
    assert "unschedulable" in lost(world, binds)["p"]
    world.remove("Node", "n0")
    assert lost(world, binds)["p"] == "node n0 is gone"
