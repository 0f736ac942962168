"""DynamicResources."""

from __future__ import annotations

from muster.scheduler.plugins.dynamic_resources import DynamicResources
from tests.scheduler.plugins.builders import (
    a_cluster,
    a_node,
    a_pod,
    asked,
)


def zones(*objects):
    return a_cluster(a_node("a", zone="a"), a_node("b", zone="b"), a_node("none"), *objects)


def test_a_pod_with_device_claims_is_held_and_told_so():
    question = asked(zones(), a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}]), DynamicResources())
    text = "pod has dynamic resource claims, which this scheduler does not support"
    assert question.text == f"0/3 nodes are available: {text}."
    assert question.best == ""
    assert asked(zones(), a_pod(), DynamicResources()).best
