"""Explanations: the verdict with its facts, and suggestions that hold when they are carried out."""

from __future__ import annotations

import msgspec

from muster.api import types
from muster.scheduler.explain import Explanation, explain, find_root
from tests.scheduler.worlds import BLOCK, RACK, TestWorld, a_composite, a_gang, a_node, a_pod, a_world, pods


def explained(world: TestWorld, kind: str, name: str) -> Explanation:
    found = find_root(world.brain, kind, "ns", name)
    assert found is not None
    return explain(world.brain, found)


def racks(count: int = 4, per_rack: int = 2, cpu: int = 2) -> list[types.Node]:
    return [
        a_node(f"n{i}", cpu=cpu, rack=f"r{i // per_rack}", block=f"b{i // (2 * per_rack)}")
        for i in range(count * per_rack)
    ]


def suggestion(found: Explanation, action: str):
    return next((s for s in found.suggestions if s.action == action), None)


def test_a_gang_that_does_not_fit_names_the_nearest_rack_and_what_it_lacks():
    world = a_world(racks())
    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()

    found = explained(world, "PodGroup", "g")

    assert found.verdict == "Infeasible"
    nearest = found.levels[0].nearest[0]
    assert (nearest.key, nearest.seats, nearest.needed) == (RACK, 4, 5)
    assert nearest.lacking[0].what == "cpu"
    assert nearest.lacking[0].amount == "1"


def test_asking_changes_nothing():
    world = a_world(racks())
    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()
    before = (world.brain.world.cluster.used.copy(), world.brain.world.cluster.alive.sum())

    first = explained(world, "PodGroup", "g")
    second = explained(world, "PodGroup", "g")

    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    assert world.brain.world.cluster.alive.sum() == before[1]


def test_adding_the_suggested_nodes_helps_and_one_fewer_does_not():
    def a_stuck_world() -> TestWorld:
        world = a_world([a_node(f"n{i}", cpu=2, rack=f"r{i // 2}") for i in range(4)])
        return world.add(a_gang("g", 9, topology=RACK), *pods(9, "g")).run()

    hint = suggestion(explained(a_stuck_world(), "PodGroup", "g"), "add-nodes")
    assert hint is not None
    assert hint.details["nodes"] == 3
    for count, fits in ((2, False), (3, True)):
        world = a_stuck_world()
        template = world.get("Node", str(hint.details["like"]))
        for i in range(count):
            meta = msgspec.structs.replace(template.metadata, name=f"new{i}", uid=f"new{i}")
            world.add(msgspec.structs.replace(template, metadata=meta))
        world.run()
        assert (len(world.bound("g")) == 9) is fits


def test_lowering_the_minimum_as_suggested_helps():
    world = a_world(racks())
    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()
    hint = suggestion(explained(world, "PodGroup", "g"), "lower-minimum")
    assert hint is not None
    assert hint.details["minCount"] == 4

    world.add(a_gang("g", 4, topology=RACK)).run()

    assert len(world.bound("g")) == 4


def test_widening_the_constraint_as_suggested_helps():
    world = a_world(racks())
    world.add(a_gang("g", 6, topology=RACK), *pods(6, "g")).run()
    hint = suggestion(explained(world, "PodGroup", "g"), "widen-topology")
    assert hint is not None
    assert hint.details["to"] == BLOCK

    world.add(a_gang("g", 6, topology=BLOCK)).run()

    assert len(world.bound("g")) == 6


def test_waiting_for_the_suggested_group_helps():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("old", 3), *pods(3, "old")).run()
    world.add(a_gang("g", 4), *pods(4, "g")).run()
    found = explained(world, "PodGroup", "g")
    hint = suggestion(found, "wait-for")
    assert hint is not None
    assert hint.details["name"] == "old"
    assert found.holders[0].name == "old"

    for i in range(3):
        world.finish(f"old-{i}")
    world.run()

    assert len(world.bound("g")) == 4


def test_a_selector_that_matches_nothing_is_corrected():
    world = a_world([a_node(f"n{i}", cpu=4, gpu_kind="H100") for i in range(3)])
    world.add(a_gang("g", 2), *pods(2, "g", nodeSelector={"gpu_kind": "h100"})).run()

    hint = suggestion(explained(world, "PodGroup", "g"), "fix-selector")

    assert hint is not None
    assert hint.text == "label gpu_kind=h100 exists on no node; gpu_kind=H100 on 3: select that"


def test_a_taint_in_the_way_is_named():
    node = a_node("n0", cpu=4)
    spec = types.NodeSpec(taints=(types.Taint("maintenance", "NoSchedule"),))
    world = a_world([msgspec.structs.replace(node, spec=spec)])
    world.add(a_pod("p")).run()

    hint = suggestion(explained(world, "Pod", "p"), "tolerate-taint")

    assert hint is not None
    assert "maintenance:NoSchedule" in hint.text


def test_only_changes_that_were_verified_are_suggested():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("p", cpu=64)).run()
    assert explained(world, "Pod", "p").suggestions == ()


def test_a_waiting_tree_says_for_what():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_composite("root", 2), a_gang("a", 2, parent="root"), *pods(1, "a")).run()
    found = explained(world, "PodGroup", "a")
    assert found.verdict == "WaitingForChildren"
    assert [level.name for level in found.levels] == ["root", "a"]


def test_a_running_group_waits_for_nothing():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    found = explained(world, "PodGroup", "g")
    assert found.verdict == "Running"
    assert "2 of 2 members are bound" in found.sentence


def test_preemption_is_accounted_for():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", priority=1, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=9, policy="Never"), *pods(2, "g", priority=9, policy="Never")).run()
    assert "policy is Never" in explained(world, "PodGroup", "g").preemption
