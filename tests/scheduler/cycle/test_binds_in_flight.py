"""Groups that vanish while binds are in flight: answers arrive late, in any order, and nothing is stuck."""

from __future__ import annotations

from itertools import product

import pytest

from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.queue.entity import EntityState
from tests.build.objects import a_composite, a_gang, a_node, pods
from tests.build.scheduler import TestWorld, a_world


def a_tree_with_binds_in_flight() -> tuple[TestWorld, list[d.Bind]]:
    """`cc` has the composite `c` and the gang `h`; `c` has the gang `g`, whose binds are in flight, `h` has no room."""
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_composite("cc", 1), a_composite("c", 1, parent="cc"), a_gang("g", 2, parent="c"))
    world.add(a_gang("h", 2, parent="cc"), *pods(2, "g"), *pods(2, "h"))
    binds = [each for each in world.scheduler.next(world.now) if isinstance(each, d.Bind)]
    assert sorted(bind.pod.name for bind in binds) == ["g-0", "g-1"]
    return world, binds


def answer(world: TestWorld, binds: list[d.Bind], accepted: bool) -> None:
    for bind in binds:
        if accepted:
            world._carry_out(bind)
        else:
            world.scheduler.handle(events.BindFailed(bind.pod.uid, bind.node, "refused"), world.now)


def settle(world: TestWorld) -> None:
    world.run()
    world.wait(130)
    states = {entity.key.name: entity.state for entity in world.scheduler.state.queue.entities.values()}
    assert EntityState.BINDING not in states.values(), states


@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize("gone", ["c", "g"])
def test_a_group_that_vanishes_while_binds_are_in_flight_holds_nobody_back(gone: str, accepted: bool):
    world, binds = a_tree_with_binds_in_flight()
    world.remove("CompositePodGroup" if gone == "c" else "PodGroup", gone)
    world.add(a_node("n1", cpu=2)).run()
    answer(world, binds, accepted)
    settle(world)
    assert len(world.bound("h-")) == 2


@pytest.mark.parametrize(("accepted", "pods_first"), list(product([True, False], repeat=2)))
def test_a_group_that_vanishes_with_its_pods_holds_nobody_back(accepted: bool, pods_first: bool):
    world, binds = a_tree_with_binds_in_flight()
    removals = [("PodGroup", "g"), ("Pod", "g-0"), ("Pod", "g-1")]
    for kind, name in removals[1:] + removals[:1] if pods_first else removals:
        world.remove(kind, name)
    for bind in binds:  # the answers of the API are about pods that are gone
        answered = events.BindSucceeded if accepted else events.BindFailed
        rest = () if accepted else ("gone",)
        world.scheduler.handle(answered(bind.pod.uid, bind.node, *rest), world.now)
    settle(world)
    assert len(world.bound("h-")) == 2


def test_a_tree_that_takes_in_a_binding_group_waits_for_its_answers():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("g", 2, parent="top"), *pods(2, "g"))
    world.add(a_composite("top", 1))
    binds = [each for each in world.scheduler.next(world.now) if isinstance(each, d.Bind)]
    assert len(binds) == 2
    world.remove("CompositePodGroup", "top")
    world.add(a_composite("top", 1), a_gang("h", 2, parent="top"), *pods(2, "h"))
    (entity,) = world.scheduler.view().queue()
    assert entity.state is EntityState.BINDING
    assert not [each for each in world.scheduler.next(world.now) if isinstance(each, d.Bind)]
    answer(world, binds, accepted=True)
    settle(world)
    assert len(world.bound()) == 4
