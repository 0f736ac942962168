"""A snapshot taken while groups wait gives, offline, the facts that the live scheduler wrote on the objects."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muster.api.resources import COMPOSITE_POD_GROUPS, NODES, POD_GROUPS, PODS, Resource
from muster.engine.cluster_snapshot import take_snapshot
from muster.scheduler.explain.explanation import Explanation
from muster.scheduler.simulation.snapshot import decode, encode
from muster.testing.cluster import api_server
from muster.views.explain import explain_in

RACK = "example.com/rack"
Obj = dict[str, Any]


def an_object(resource: Resource, name: str, **fields: Any) -> tuple[Resource, Obj]:
    meta: Obj = {"name": name} | ({"namespace": "default"} if resource.namespaced else {}) | fields.pop("meta", {})
    return resource, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **fields}


def a_node(name: str, cpu: int, **labels: str) -> tuple[Resource, Obj]:
    keys = {"kubernetes.io/hostname": name} | {RACK if k == "rack" else k: v for k, v in labels.items()}
    room = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    return an_object(NODES, name, meta={"labels": keys}, status={"allocatable": room, "conditions": ready})


def a_group(name: str, minimum: int, **spec: Any) -> tuple[Resource, Obj]:
    if key := spec.pop("topology", None):
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    return an_object(POD_GROUPS, name, spec={"schedulingPolicy": {"gang": {"minCount": minimum}}, **spec})


def some_pods(group: str, count: int, cpu: int = 1, **spec: Any) -> list[tuple[Resource, Obj]]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    body = {"schedulingGroup": {"podGroupName": group}, "containers": [container], **spec}
    return [an_object(PODS, f"{group}-{i}", spec=body) for i in range(count)]


def a_bound_pod(name: str, node: str) -> tuple[Resource, Obj]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return an_object(PODS, name, spec={"nodeName": node, "containers": [container]})


RACKS = [a_node(f"n{i}", 2, rack=f"r{i // 2}") for i in range(4)]
GATES = [{"name": "example.com/quota"}]
SITUATIONS: dict[str, tuple[str, list[tuple[Resource, Obj]]]] = {
    "too large for a rack": ("Unschedulable", [*RACKS, a_group("g", 5, topology=RACK), *some_pods("g", 5)]),
    "too large for the cluster": ("Unschedulable", [*RACKS, a_group("g", 9), *some_pods("g", 9)]),
    "a selector that matches nothing": (
        "Unschedulable",
        [*RACKS, a_group("g", 2), *some_pods("g", 2, nodeSelector={"disk": "ssd"})],
    ),
    "members that are too large together": (
        "Unschedulable",
        [a_node("n0", 4), a_group("g", 2), *some_pods("g", 2, 3)],
    ),
    "too few members": ("WaitingForMembers", [*RACKS, a_group("g", 3), *some_pods("g", 2)]),
    "a gated member": ("SchedulingGated", [*RACKS, a_group("g", 1), *some_pods("g", 1, schedulingGates=GATES)]),
    "behind somebody else": (
        "Unschedulable",
        [*RACKS, *[a_bound_pod(f"old-{i}", f"n{i % 4}") for i in range(7)], a_group("g", 3), *some_pods("g", 3)],
    ),
}
LIVE_TO_OFFLINE = {"Unschedulable": "Infeasible"}


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_the_verdict_offline_is_the_live_one(situation: str):
    reason, objects = SITUATIONS[situation]
    live, offline = await _both(objects, reason)
    assert offline.verdict == LIVE_TO_OFFLINE.get(reason, reason)
    assert offline.condition is not None
    assert offline.condition.message == live["message"]
    assert live["message"] in offline.sentence


async def _both(objects: list[tuple[Resource, Obj]], reason: str) -> tuple[Obj, Explanation]:
    """What the live scheduler says of the group `g`, and what its snapshot says elsewhere."""
    async with api_server(controllers=True, scheduler=True) as plane:
        for resource, obj in objects:
            await plane.client.create(resource, obj)
        for _ in range(200):
            group = await plane.client.get(POD_GROUPS, "g", "default")
            conditions = (group.get("status") or {}).get("conditions") or []
            live = next((c for c in conditions if c["reason"] == reason), None)
            if live is not None:
                break
            await asyncio.sleep(0.05)
        else:
            raise AssertionError(f"the group never said {reason}: {conditions}")
        snapshot = decode(encode(await take_snapshot(plane.client)))
    return live, explain_in(snapshot, "PodGroup", "default", "g")


async def test_a_group_that_runs_is_said_to_run_offline():
    objects = [*RACKS, a_group("g", 2, topology=RACK), *some_pods("g", 2)]
    _, offline = await _both(objects, "Scheduled")
    assert offline.verdict == "Running"
    assert offline.levels[0].domain in ("r0", "r1")


async def test_a_tree_that_lacks_a_child_says_so_offline():
    tree = an_object(
        COMPOSITE_POD_GROUPS,
        "top",
        spec={
            "schedulingPolicy": {"gang": {"minGroupCount": 2}},
            "workloadRef": {"workloadName": "w", "templateName": "top"},
        },
    )
    child = a_group("g", 1, parentCompositePodGroupName="top", workloadRef={"workloadName": "w", "templateName": "g"})
    live, offline = await _both([*RACKS, tree, child, *some_pods("g", 1)], "WaitingForChildren")
    assert offline.verdict == "WaitingForChildren"
    assert live["message"] in offline.sentence
