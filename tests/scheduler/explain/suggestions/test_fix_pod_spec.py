"""Suggestions about the spec of pods: selectors, affinity, tolerations."""

from __future__ import annotations

from muster.api import types
from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world
from tests.build.suggestions import carry_out, change, suggested, the


def test_a_selector_that_matches_nothing_is_corrected():
    world = a_world([a_node(f"n{i}", cpu=4, gpu_kind="H100") for i in range(3)])
    world.add(a_gang("g", 2), *pods(2, "g", nodeSelector={"gpu_kind": "h100"})).run()
    hint = the("fix-selector", suggested(world, "PodGroup", "g"))
    assert hint.text == (
        "select another label: gpu_kind=h100 exists on no node, gpu_kind=H100 on 3; its pods must be made anew with it"
    )
    assert hint.recreate == "pods"
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
