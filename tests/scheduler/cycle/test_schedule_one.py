"""The scheduling cycle of one entity: all or nothing, extra members, faults."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.types import Pod
from muster.scheduler.cycle import schedule_one as module
from muster.scheduler.queue.entity import EntityState
from tests.build.objects import HOSTNAME, RACK, a_basic, a_gang, a_node, a_pod, near, pods
from tests.build.scheduler import TestWorld, a_world


def test_a_gang_that_fits_is_bound_as_a_whole():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])

    world.add(a_gang("g", 3), *pods(3, "g")).run()

    assert len(world.bound()) == 3
    condition = world.condition("PodGroup", "g")
    assert (condition.status, condition.reason) == ("True", "Scheduled")


def test_a_gang_that_does_not_fit_binds_nothing_and_says_why():
    world = a_world([a_node("n0", cpu=2)])

    world.add(a_gang("g", 3), *pods(3, "g")).run()

    assert world.bound() == {}
    condition = world.condition("PodGroup", "g")
    assert (condition.status, condition.reason) == ("False", "Unschedulable")
    assert "2 of 3" in condition.message
    pod = world.condition("Pod", "g-0")
    assert (pod.status, pod.reason) == ("False", "Unschedulable")


def test_extra_members_are_placed_as_far_as_there_is_room():
    world = a_world([a_node("n0", cpu=3)])

    world.add(a_gang("g", 2), *pods(5, "g")).run()

    assert len(world.bound()) == 3
    assert len(world.pending()) == 2
    assert world.condition("PodGroup", "g").status == "True"


def test_a_lost_member_is_replaced_without_its_companions():
    world = a_world([a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(a_gang("g", 3), *pods(3, "g")).run()
    world.remove("Pod", "g-1")

    world.add(a_pod("again", "g")).run()

    assert set(world.bound()) == {"g-0", "g-2", "again"}
    assert world.evicted() == []


def test_members_of_another_priority_are_an_error_until_mended():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 2, priority=10), a_pod("good", "g", priority=10), a_pod("odd", "g", priority=20)).run()
    condition = world.condition("PodGroup", "g")
    assert (condition.status, condition.reason) == ("False", "SchedulerError")
    assert "same priority as the pod group's priority" in condition.message

    world.remove("Pod", "odd")
    world.add(a_pod("even", "g", priority=10)).run()

    assert set(world.bound()) == {"good", "even"}


def test_two_gangs_that_only_fit_alone_never_start_in_part():
    for seed in range(10):
        world = a_world([a_node("n0", cpu=4)], seed=seed)
        both = [a_gang("a", 3), a_gang("b", 3), *pods(3, "a"), *pods(3, "b")]
        for thing in both[seed % 8 :] + both[: seed % 8]:
            world.add(thing)
            world.step()
        world.run()
        counts = sorted((len(world.bound("a")), len(world.bound("b"))))
        assert counts == [0, 3]


def test_a_basic_group_places_what_fits():
    world = a_world([a_node("n0", cpu=2)])

    world.add(a_basic("b"), *pods(3, "b")).run()

    assert len(world.bound()) == 2


def test_a_gang_stays_in_one_rack():
    world = a_world([a_node(f"n{i}", cpu=2, rack=f"r{i // 2}") for i in range(4)])

    world.add(a_gang("g", 4, topology=RACK), *pods(4, "g")).run()

    assert len({world.domain(name) for name in world.bound()}) == 1


def hints_of(world: TestWorld, name: str):
    entity = next(entity for key, entity in world.run().scheduler.state.queue.entities.items() if key.name == name)
    assert entity.state is EntityState.UNSCHEDULABLE
    return entity.hints


def test_a_plan_that_the_checker_refuses_binds_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "validate", lambda *args, **fields: "n0 is overcommitted")
    world = a_world([a_node("n0")]).add(a_gang("g", 1), a_pod("g-0", "g")).run()
    assert world.bound() == {}
    condition = world.condition("PodGroup", "g")
    assert (condition.reason, condition.message) == ("SchedulerError", "the plan was refused: n0 is overcommitted")


def spread_over_nodes(name: str, **fields: Any) -> Pod:
    """A pod that is spread over nodes with the others of its app."""
    rule: dict[str, Any] = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"}
    rule["labelSelector"] = {"matchLabels": {"app": "web"}}
    return a_pod(name, labels={"app": "web"}, topologySpreadConstraints=[rule], **fields)


def with_a_seat_kept_on(world: TestWorld, *nodes: str) -> None:
    """Pods of the app web have seats on these nodes and wait for others to leave."""
    for node in nodes:
        world.add(a_pod(f"leaving-{node}", cpu=4, node=node, owner="job"))
        world.terminate(f"leaving-{node}")
        on = {HOSTNAME: node}
        world.add(a_pod(f"kept-{node}", cpu=1, labels={"app": "web"}, nodeSelector=on, priority=9)).run()
        assert world.pod(f"kept-{node}").status.nominated_node_name == node


def test_a_plan_counts_on_no_pod_that_is_not_there_yet():
    world = a_world([a_node("n0", cpu=4), a_node("n1", cpu=4)])
    world.add(spread_over_nodes("web", node="n1"))
    with_a_seat_kept_on(world, "n0")

    world.add(spread_over_nodes("p", policy="Never")).run()

    assert world.bound("p") == {}
    assert world.condition("Pod", "p", "PodScheduled").reason == "Unschedulable"


def test_a_plan_that_holds_with_and_without_the_pods_that_are_to_come_is_found():
    world = a_world([a_node(f"n{i}", cpu=4, rack=f"r{i // 2}") for i in range(3)])
    world.add(a_pod("web", cpu=3, labels={"app": "web"}, affinity=near(RACK, app="web"), node="n2"))
    with_a_seat_kept_on(world, "n0")

    world.add(a_pod("p", affinity=near(RACK, app="web"))).run()

    assert world.bound("p") == {"p": "n2"}, "n1 is emptier, but only a pod that is to come is near to it"


def test_an_entity_waits_for_changes_of_the_plugins_that_rejected_it():
    world = a_world([a_node("n0", taints=["dedicated=x:NoSchedule"])]).add(a_pod("p"))
    assert hints_of(world, "p").rejected_by == {"TaintToleration"}


def test_members_that_found_no_room_beside_the_placed_ones_are_told():
    world = a_world([a_node("n0", cpu=2)]).add(a_gang("g", 2), *pods(3, "g"))
    world.step()
    assert world.condition("Pod", "g-2").message == "there was no room for this pod beside the members that were placed"
