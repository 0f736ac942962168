from __future__ import annotations

from typing import Any

from tools.scenario_decisions import ScenarioCluster, merge_patch


def a_node(name: str, cpu: int) -> dict[str, Any]:
    room = {"cpu": str(cpu), "pods": "110"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": room}}


def a_class(name: str, value: int) -> dict[str, Any]:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def a_pod(name: str, group: str, class_name: str, **labels: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    spec |= {"schedulingGroup": {"podGroupName": group}, "priorityClassName": class_name}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "ns", "labels": labels}, "spec": spec}


def a_gang(name: str, minimum: int, class_name: str) -> dict[str, Any]:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "priorityClassName": class_name}
    return {"kind": "PodGroup", "metadata": {"name": name, "namespace": "ns"}, "spec": spec}


def bound(cluster: ScenarioCluster) -> dict[str, str]:
    pods = {key[2]: obj["spec"].get("nodeName") for key, obj in cluster.objects.items() if key[0] == "Pod"}
    return {name: node for name, node in pods.items() if node}


def submit(cluster: ScenarioCluster, name: str, size: int, class_name: str) -> None:
    cluster.create(a_gang(name, size, class_name))
    for index in range(size):
        cluster.create(a_pod(f"{name}-{index}", name, class_name, app=name))
    cluster.settle()


def test_binds_are_carried_out_and_victims_leave_for_a_higher_priority():
    cluster = ScenarioCluster()
    for obj in (a_class("low", 1), a_class("high", 9), a_node("n0", 2)):
        cluster.create(obj)
    submit(cluster, "small", 2, "low")
    assert bound(cluster) == {"small-0": "n0", "small-1": "n0"}
    submit(cluster, "vip", 2, "high")
    cluster.wait(60)
    assert bound(cluster) == {"vip-0": "n0", "vip-1": "n0"}
    conditions = cluster.objects["PodGroup", "ns", "vip"]["status"]["conditions"]
    assert {each["status"] for each in conditions} == {"True"}


def test_room_that_appears_later_is_used_and_a_budget_counts_bound_pods():
    cluster = ScenarioCluster()
    cluster.create(a_class("low", 1))
    submit(cluster, "g", 2, "low")
    assert bound(cluster) == {}
    cluster.create(a_node("n0", 4))
    cluster.wait(5)
    assert set(bound(cluster)) == {"g-0", "g-1"}
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "g"}}}
    cluster.create({"kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "ns"}, "spec": spec})
    assert cluster.objects["PodDisruptionBudget", "ns", "b"]["status"]["disruptionsAllowed"] == 1


def test_a_merge_patch_replaces_adds_and_removes():
    base = {"a": {"b": 1, "c": 2}, "d": [1]}
    assert merge_patch(base, {"a": {"b": None, "e": {"f": 3}}, "d": [2]}) == {"a": {"c": 2, "e": {"f": 3}}, "d": [2]}
    assert base == {"a": {"b": 1, "c": 2}, "d": [1]}
