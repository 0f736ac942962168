"""Requests and allocatable amounts, added up from the API objects."""

from __future__ import annotations

from tests.build.objects import a_pod
from tests.build.placements import fault, two_nodes


def test_init_containers_sidecars_and_overhead_are_added_up():
    scene = two_nodes()
    request = {"resources": {"requests": {"cpu": "500m"}}}
    heavy = a_pod(
        "g-0",
        cpu=1,
        initContainers=[{**request, "restartPolicy": "Always"}, {"resources": {"requests": {"cpu": "1800m"}}}],
    )
    assert "cpu" in fault(scene, scene.gang("g", heavy), g_0="n0")
    light = a_pod("h-0", cpu=1, overhead={"cpu": "1100m"})
    assert "cpu" in fault(scene, scene.gang("h", light), h_0="n0")
