"""Suggestions hold: whatever is suggested is carried out on the world, and then the group runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api import types
from muster.scheduler.explain.explain import explain, find
from muster.scheduler.explain.explanation import Suggestion
from muster.scheduler.explain.suggestions import ACTIONS
from tests.build.examples import examples
from tests.build.objects import BLOCK, RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

change = msgspec.structs.replace


def suggested(world: TestWorld, kind: str, name: str) -> list[Suggestion]:
    target = find(world.brain, kind, "ns", name)
    assert target is not None
    return list(explain(world.brain, target).suggestions)


def the(action: str, hints: list[Suggestion]) -> Suggestion:
    found = [hint for hint in hints if hint.action == action]
    assert found, f"{action} is not among {[hint.text for hint in hints]}"
    return found[0]


# --- carrying out ----------------------------------------------------------------------------------


def carry_out(world: TestWorld, hint: Suggestion) -> None:
    """Do what the suggestion says, as a person would."""
    {
        "add-nodes": _add_nodes,
        "lower-minimum": _lower_minimum,
        "widen-topology": _widen,
        "wait-for": _end,
        "fix-selector": _reselect,
        "tolerate-taint": _tolerate,
        "uncordon": _put_back,
        "mend-nodes": _put_back,
    }[hint.action](world, hint.details)
    world.run()


def _add_nodes(world: TestWorld, details: dict[str, Any], fewer: int = 0) -> None:
    template = world.get("Node", details["like"])
    for i in range(details["nodes"] - fewer):
        labels = template.metadata.labels | {"kubernetes.io/hostname": f"new{i}"}
        world.add(change(template, metadata=change(template.metadata, name=f"new{i}", uid=f"new{i}", labels=labels)))


def _lower_minimum(world: TestWorld, details: dict[str, Any]) -> None:
    group = world.get(details["kind"], details["group"])
    fields = {"minCount": "min_count", "minGroupCount": "min_group_count"}
    smaller = {fields[name]: number for name, number in details.items() if name in fields}
    gang = change(group.spec.scheduling_policy.gang, **smaller)
    policy = change(group.spec.scheduling_policy, gang=gang)
    world.add(change(group, spec=change(group.spec, scheduling_policy=policy)))


def _widen(world: TestWorld, details: dict[str, Any]) -> None:
    for name in details["groups"].split(","):
        kind = "PodGroup" if ("PodGroup", "ns", name) in world.objects else "CompositePodGroup"
        group = world.get(kind, name)
        constraints = None
        if details["to"]:
            topology = (change(group.spec.scheduling_constraints.topology[0], key=details["to"]),)
            constraints = change(group.spec.scheduling_constraints, topology=topology)
        world.add(change(group, spec=change(group.spec, scheduling_constraints=constraints)))


def _end(world: TestWorld, details: dict[str, Any]) -> None:
    for (kind, _, name), obj in list(world.objects.items()):
        if kind != "Pod":
            continue
        group = obj.spec.scheduling_group.pod_group_name if obj.spec.scheduling_group else None
        if name == details["name"] or (group is not None and _is_in(world, group, details["name"])):
            world.remove("Pod", name)


def _is_in(world: TestWorld, group: str, root: str) -> bool:
    found = world.objects.get(("PodGroup", "ns", group))
    return group == root or (found is not None and found.spec.parent_composite_pod_group_name == root)


def _pending(world: TestWorld) -> list[types.Pod]:
    """The pods to change. A pod's spec cannot be changed: its owner makes it anew."""
    every = [obj for (kind, _, _), obj in world.objects.items() if kind == "Pod" and not obj.spec.node_name]
    found = [pod for pod in every if not pod.metadata.name.startswith(("ahead", "old"))]
    for pod in found:
        world.remove("Pod", pod.metadata.name)
    return found


def _again(world: TestWorld, pod: types.Pod, **spec: Any) -> None:
    meta = change(pod.metadata, uid=f"{pod.metadata.uid}-again")
    world.add(change(pod, metadata=meta, spec=change(pod.spec, **spec), status=types.PodStatus(phase="Pending")))


def _reselect(world: TestWorld, details: dict[str, Any]) -> None:
    old, new = (details[name].split("=") for name in ("label", "instead"))
    for pod in _pending(world):
        selector = dict(new if list(item) == old else item for item in (pod.spec.node_selector or {}).items())
        _again(world, pod, node_selector=selector)


def _tolerate(world: TestWorld, details: dict[str, Any]) -> None:
    extra = types.Toleration(key=details["key"], operator="Equal", value=details["value"], effect=details["effect"])
    for pod in _pending(world):
        _again(world, pod, tolerations=(*(pod.spec.tolerations or ()), extra))


def _put_back(world: TestWorld, details: dict[str, Any]) -> None:
    for name in details["names"].split(","):
        node = world.get("Node", name)
        world.add(change(node, spec=types.NodeSpec()))


# --- one by one ------------------------------------------------------------------------------------


def racks(count: int = 4, per_rack: int = 2, cpu: int = 2) -> list[types.Node]:
    return [
        a_node(f"n{i}", cpu=cpu, rack=f"r{i // per_rack}", block=f"b{i // (2 * per_rack)}")
        for i in range(count * per_rack)
    ]


def a_stuck_rack_gang() -> TestWorld:
    return a_world(racks()).add(a_gang("g", 6, topology=RACK), *pods(6, "g")).run()


@pytest.mark.parametrize("action", ["widen-topology", "lower-minimum", "add-nodes"])
def test_what_is_suggested_for_a_gang_that_is_too_large_for_a_rack_helps(action: str):
    world = a_stuck_rack_gang()
    hint = the(action, suggested(world, "PodGroup", "g"))
    carry_out(world, hint)
    assert len(world.bound("g")) >= int(hint.details.get("minCount", 6))


def test_one_node_fewer_than_suggested_does_not_help():
    world = a_stuck_rack_gang()
    hint = the("add-nodes", suggested(world, "PodGroup", "g"))
    assert hint.details["nodes"] == 1
    assert hint.text.startswith("add 1 node like n")
    _add_nodes(world, hint.details, fewer=1)
    assert not world.run().bound("g")


def test_the_minimum_is_lowered_no_further_than_needed():
    world = a_stuck_rack_gang()
    assert the("lower-minimum", suggested(world, "PodGroup", "g")).details["minCount"] == 4


def test_the_narrowest_wider_domain_is_suggested():
    assert the("widen-topology", suggested(a_stuck_rack_gang(), "PodGroup", "g")).details["to"] == BLOCK


def test_waiting_for_the_suggested_group_helps():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("old", 3), *pods(3, "old")).run()
    world.add(a_gang("g", 4), *pods(4, "g")).run()
    hint = the("wait-for", suggested(world, "PodGroup", "g"))
    assert hint.text == "wait for podgroup ns/old to end (3 pods), or remove it"
    carry_out(world, hint)
    assert len(world.bound("g")) == 4


def test_nobody_is_told_to_wait_for_room_that_someone_ahead_will_take():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("old", 4), *pods(4, "old")).run()
    world.add(a_gang("ahead", 4, created=1), *pods(4, "ahead", created=1)).run()
    world.add(a_gang("g", 4, created=2), *pods(4, "g", created=2)).run()
    assert "wait-for" in [hint.action for hint in suggested(world, "PodGroup", "ahead")]
    assert "wait-for" not in [hint.action for hint in suggested(world, "PodGroup", "g")]
    assert the("add-nodes", suggested(world, "PodGroup", "g")).details["nodes"] == 2


def test_a_selector_that_matches_nothing_is_corrected():
    world = a_world([a_node(f"n{i}", cpu=4, gpu_kind="H100") for i in range(3)])
    world.add(a_gang("g", 2), *pods(2, "g", nodeSelector={"gpu_kind": "h100"})).run()
    hint = the("fix-selector", suggested(world, "PodGroup", "g"))
    assert hint.text == "select another label: gpu_kind=h100 exists on no node, gpu_kind=H100 on 3"
    carry_out(world, hint)
    assert len(world.bound("g")) == 2


def test_a_misspelt_label_key_is_corrected():
    world = a_world([a_node("n0", cpu=4, accelerator="h100")])
    world.add(a_pod("p", nodeSelector={"acelerator": "h100"})).run()
    hint = the("fix-selector", suggested(world, "Pod", "p"))
    assert hint.details["instead"] == "accelerator=h100"
    carry_out(world, hint)
    assert world.bound("p")


def test_an_affinity_that_matches_nothing_is_corrected():
    term = {"matchExpressions": [{"key": "gpu_kind", "operator": "In", "values": ["h100"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    world = a_world([a_node("n0", cpu=4, gpu_kind="H100")])
    world.add(a_pod("p", affinity=affinity)).run()
    assert the("fix-selector", suggested(world, "Pod", "p")).details["instead"] == "gpu_kind=H100"


def test_a_taint_in_the_way_is_named():
    spec = types.NodeSpec(taints=(types.Taint("team", "NoSchedule", "a"),))
    world = a_world([change(a_node("n0", cpu=4), spec=spec)])
    world.add(a_pod("p")).run()
    hint = the("tolerate-taint", suggested(world, "Pod", "p"))
    assert hint.text == "let its pods tolerate the taint team=a:NoSchedule, which 1 node has"
    carry_out(world, hint)
    assert world.bound("p")


def test_cordoned_nodes_are_put_back_and_no_more_than_needed():
    cordoned = types.NodeSpec(unschedulable=True)
    world = a_world([change(a_node(f"n{i}", cpu=1), spec=cordoned) for i in range(5)])
    world.add(a_gang("g", 3), *pods(3, "g")).run()
    hint = the("uncordon", suggested(world, "PodGroup", "g"))
    assert hint.text == "uncordon 3 nodes: n0, n1, n2"
    carry_out(world, hint)
    assert len(world.bound("g")) == 3


def test_nodes_that_are_not_ready_are_not_to_be_tolerated_but_mended():
    taint = types.Taint("node.kubernetes.io/not-ready", "NoSchedule")
    world = a_world([change(a_node("n0", cpu=1), spec=types.NodeSpec(taints=(taint,)))])
    world.add(a_pod("p")).run()
    hints = suggested(world, "Pod", "p")
    assert [hint.action for hint in hints] == ["mend-nodes", "add-nodes"][: len(hints)]
    carry_out(world, hints[0])
    assert world.bound("p")


def test_a_tree_may_do_with_fewer_children():
    world = a_world(racks())
    world.add(a_composite("root", 2), a_gang("a", 2, parent="root"), a_gang("b", 5, parent="root", topology=RACK))
    world.add(*pods(2, "a"), *pods(5, "b")).run()
    hints = [hint for hint in suggested(world, "CompositePodGroup", "root") if hint.action == "lower-minimum"]
    assert {hint.text for hint in hints} == {
        "lower minGroupCount of root from 2 to 1",
        "lower minCount of b from 5 to 4",
    }


def test_nothing_is_suggested_that_does_not_help():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("p", cpu=64)).run()
    assert suggested(world, "Pod", "p") == []


def test_asking_leaves_the_world_as_it_was():
    world = a_stuck_rack_gang()
    cluster = world.brain.state.cluster
    before = (sorted(cluster.index), cluster.used.tobytes(), len(cluster.pods))
    first = suggested(world, "PodGroup", "g")
    assert suggested(world, "PodGroup", "g") == first
    assert (sorted(cluster.index), cluster.used[:, : len(before[0])].tobytes(), len(cluster.pods)) == before


# --- any world -------------------------------------------------------------------------------------


@st.composite
def stuck_worlds(draw: st.DrawFn) -> TestWorld:
    """A few racks with some load, tainted and cordoned nodes, and a gang or a small tree that may be too much."""
    nodes = []
    for i in range(draw(st.integers(1, 6))):
        node = a_node(f"n{i}", cpu=draw(st.integers(1, 4)), rack=f"r{i // 2}", block=f"b{i // 4}", kind=draw(_KINDS))
        state = draw(st.sampled_from(["", "", "", "tainted", "cordoned", "ill"]))
        nodes.append(change(node, spec=_STATES[state]))
    world = a_world(nodes)
    for i in range(draw(st.integers(0, 2))):
        size = draw(st.integers(1, 3))
        world.add(a_gang(f"old{i}", size), *pods(size, f"old{i}"))
    world.run()
    selector = draw(st.sampled_from([None, None, {"kind": "A"}, {"kind": "a"}]))
    more = {"nodeSelector": selector} if selector else {}
    if draw(st.booleans()):
        world.add(a_gang("ahead", 2, created=1), *pods(2, "ahead", created=1, cpu=2)).run()
    size = draw(st.integers(1, 7))
    topology = draw(st.sampled_from([None, RACK, "kubernetes.io/hostname"]))
    cpus = draw(st.sampled_from([(1,), (1, 2), (2,)]))
    alone = draw(st.booleans())
    if not alone:
        world.add(a_composite("top", 2, created=5, topology=draw(st.sampled_from([None, RACK, BLOCK]))))
        world.add(a_gang("h", 1, parent="top", created=5), *pods(1, "h", created=5, cpu=draw(st.integers(1, 3))))
    parent = {} if alone else {"parent": "top"}
    world.add(a_gang("g", size, topology=topology, created=5, **parent))
    world.add(*[a_pod(f"g-{i}", "g", cpu=cpus[i % len(cpus)], created=5, **more) for i in range(size)])
    return world.run()


_KINDS = st.sampled_from(["A", "B"])
_STATES = {
    "": types.NodeSpec(),
    "tainted": types.NodeSpec(taints=(types.Taint("team", "NoSchedule", "x"),)),
    "cordoned": types.NodeSpec(unschedulable=True),
    "ill": types.NodeSpec(taints=(types.Taint("node.kubernetes.io/not-ready", "NoSchedule"),)),
}


def copied(world: TestWorld) -> TestWorld:
    """The same stored objects, and a scheduler that has just come to rest on them."""
    other = TestWorld()
    for obj in world.objects.values():
        other.add(obj)
    return other.run()


@settings(max_examples=examples(120), deadline=None)
@given(stuck_worlds())
def test_every_suggestion_makes_the_group_run_when_it_is_carried_out(world: TestWorld):
    root = (
        ("PodGroup", "g") if ("CompositePodGroup", "ns", "top") not in world.objects else ("CompositePodGroup", "top")
    )
    condition = world.condition(*root)
    if condition is not None and condition.status == "True":
        return
    hints = suggested(world, *root)
    order = [ACTIONS.index(hint.action) for hint in hints]
    assert order == sorted(order), "cheapest first"
    for hint in hints:
        other = copied(world)
        carry_out(other, hint)
        said = other.condition(*root)
        assert said is not None
        assert said.status == "True", f"{hint.text}: {said.message}"
