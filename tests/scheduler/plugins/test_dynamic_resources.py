"""DynamicResources."""

from __future__ import annotations

from muster.scheduler.plugins.dynamic_resources import DynamicResources
from tests.build.cluster import a_zoned_cluster, asked
from tests.build.objects import a_pod


def test_a_pod_with_device_claims_is_held_and_told_so():
    question = asked(
        a_zoned_cluster(), a_pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}]), DynamicResources()
    )
    text = "pod has dynamic resource claims, which this scheduler does not support"
    assert question.text == f"0/3 nodes are available: {text}."
    assert question.best == ""
    assert asked(a_zoned_cluster(), a_pod(), DynamicResources()).best
