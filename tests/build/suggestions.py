"""Suggestions of `explain` about a group that does not run, carried out as a person would."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api import types
from muster.scheduler.explain.explain import explain, find
from muster.scheduler.explain.explanation import Suggestion
from muster.scheduler.explain.suggestions import CHANGEABLE
from tests.build.objects import RACK, a_gang, a_node, pods
from tests.build.scheduler import TestWorld, a_world

change = msgspec.structs.replace


def suggested(world: TestWorld, kind: str, name: str, changeable: frozenset[str] = CHANGEABLE) -> list[Suggestion]:
    target = find(world.scheduler, kind, "ns", name)
    assert target is not None
    return list(explain(world.scheduler, target, changeable=changeable).suggestions)


def the(action: str, hints: list[Suggestion]) -> Suggestion:
    found = [hint for hint in hints if hint.action == action]
    assert found, f"{action} is not among {[hint.text for hint in hints]}"
    return found[0]


def carry_out(world: TestWorld, hint: Suggestion) -> None:
    """Do what the suggestion says, as a person would."""
    {
        "add-nodes": add_nodes,
        "lower-minimum": _lower_minimum,
        "widen-topology": _widen,
        "wait-for": _end,
        "fix-selector": _reselect,
        "tolerate-taint": _tolerate,
        "uncordon": _put_back,
        "mend-nodes": _put_back,
    }[hint.action](world, hint.details)
    world.run()


def add_nodes(world: TestWorld, details: dict[str, Any], fewer: int = 0) -> None:
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


def racks(count: int = 4, per_rack: int = 2, cpu: int = 2) -> list[types.Node]:
    return [
        a_node(f"n{i}", cpu=cpu, rack=f"r{i // per_rack}", block=f"b{i // (2 * per_rack)}")
        for i in range(count * per_rack)
    ]


def a_stuck_rack_gang() -> TestWorld:
    return a_world(racks()).add(a_gang("g", 6, topology=RACK), *pods(6, "g")).run()
