"""autoscaling/v1 and v2 show the same autoscalers, and nothing is lost on the way there and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from core_api import Api
from hypothesis import given
from hypothesis import strategies as st

from muster.server.resources.autoscaler_versions import BEHAVIOR, CONDITIONS, CURRENT_METRICS, METRICS, convert

Obj = dict[str, Any]

_quantities = st.sampled_from(["10", "500m", "1Gi"])
_selectors = st.sampled_from([None, {"matchLabels": {"a": "b"}}])


def cpu(percentage: int) -> Obj:
    target = {"type": "Utilization", "averageUtilization": percentage}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def autoscaler(metrics: list[Obj], **more: Any) -> Obj:
    spec: Obj = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 5, "metrics": metrics}
    status = {"currentReplicas": 1, "desiredReplicas": 1, "currentMetrics": None, **more.pop("status", {})}
    metadata = {"name": "web", "namespace": "default", **more.pop("metadata", {})}
    head = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}
    return {**head, "metadata": metadata, "spec": {**spec, **more}, "status": status}


@st.composite
def other_metrics(draw: st.DrawFn) -> Obj:
    source = draw(st.sampled_from(["Resource", "ContainerResource", "Pods", "Object", "External"]))
    average = {"type": "AverageValue", "averageValue": draw(_quantities)}
    value = {"type": "Value", "value": draw(_quantities)}
    metric: Obj = {"name": "requests"}
    if selector := draw(_selectors):
        metric["selector"] = selector
    either = draw(st.sampled_from([average, value]))
    found: dict[str, Obj] = {
        "Resource": {"name": "memory", "target": average},
        "ContainerResource": {"name": "cpu", "container": "main", "target": average},
        "Pods": {"metric": metric, "target": average},
        "Object": {"metric": metric, "describedObject": {"kind": "Service", "name": "web"}, "target": either},
        "External": {"metric": metric, "target": either},
    }
    return {"type": source, source[0].lower() + source[1:]: found[source]}


@given(st.lists(other_metrics(), max_size=3), st.integers(1, 100))
def test_nothing_is_lost_on_the_way_through_v1(others: list[Obj], percentage: int):
    original = autoscaler([*others, cpu(percentage)], metadata={"annotations": {"mine": "kept"}})
    old = convert(original, "v1")
    assert old["apiVersion"] == "autoscaling/v1"
    assert old["spec"]["targetCPUUtilizationPercentage"] == percentage
    assert "metrics" not in old["spec"]
    assert convert(old, "v2") == original


def test_behaviour_measured_metrics_and_conditions_travel_in_annotations():
    policies = [{"type": "Pods", "value": 4, "periodSeconds": 60}]
    measured = {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 30, "averageValue": "1"}},
    }
    original = autoscaler(
        [cpu(50)],
        behavior={"scaleDown": {"stabilizationWindowSeconds": 30, "policies": policies}},
        status={"currentMetrics": [measured], "conditions": [{"type": "AbleToScale", "status": "True"}]},
    )
    old = convert(original, "v1")
    assert old["status"]["currentCPUUtilizationPercentage"] == 30
    kept = {name: json.loads(text) for name, text in old["metadata"]["annotations"].items()}
    assert set(kept) == {BEHAVIOR, CURRENT_METRICS, CONDITIONS}
    assert kept[BEHAVIOR]["ScaleDown"]["Policies"] == [{"Type": "Pods", "Value": 4, "PeriodSeconds": 60}]
    assert kept[CURRENT_METRICS][0]["resource"]["currentAverageUtilization"] == 30
    assert convert(old, "v2") == original


@pytest.mark.parametrize("text", ["", "no JSON", "7", "[7]", "{}", "[" * 100_000])
def test_annotations_that_say_nothing_are_as_if_they_were_not_there(text: str):
    old = convert(autoscaler([]), "v1")
    old["metadata"]["annotations"] = {METRICS: text, BEHAVIOR: text if text != "{}" else "[]", CONDITIONS: text}
    shown = convert(old, "v2")
    assert shown["spec"]["metrics"] == [cpu(80)], "what v1 means when it says nothing"
    assert "annotations" not in shown["metadata"]
    assert "behavior" not in shown["spec"]


async def test_the_server_shows_both(api: Api) -> None:
    path = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "maxReplicas": 3}
    made = await api.post(path.format("v1"), {"metadata": {"name": "web"}, "spec": spec})
    assert made.code == 201, made.body
    assert made.body["apiVersion"] == "autoscaling/v1"
    shown = (await api.get(path.format("v2") + "/web")).body
    assert (shown["apiVersion"], shown["spec"]["metrics"]) == ("autoscaling/v2", [cpu(80)])
    changed = await api.merge(path.format("v1") + "/web", {"spec": {"targetCPUUtilizationPercentage": 20}})
    assert changed.body["spec"]["targetCPUUtilizationPercentage"] == 20
    assert (await api.get(path.format("v2") + "/web")).body["spec"]["metrics"] == [cpu(20)]
    listed = (await api.get(path.format("v1"))).body
    assert (listed["apiVersion"], len(listed["items"])) == ("autoscaling/v1", 1)
