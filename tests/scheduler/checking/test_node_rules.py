"""What a pod requires of its node, checked on the API objects."""

from __future__ import annotations

import msgspec
import pytest

from muster.api.types import PersistentVolume, PersistentVolumeClaim
from tests.build.objects import RACK, a_node, a_pod
from tests.build.placements import fault, two_nodes
from tests.build.planning import Scene


@pytest.mark.parametrize(
    ("node", "pod", "words"),
    [
        ({"labels": {"disk": "slow"}}, {"nodeSelector": {"disk": "fast"}}, "selector"),
        ({"taints": ["team=:NoSchedule"]}, {}, "taint team"),
        ({"unschedulable": True}, {}, "unschedulable"),
    ],
)
def test_rules_about_nodes_are_judged_again(node: dict, pod: dict, words: str):
    scene = Scene().nodes(a_node("n0", **node))
    assert words in fault(scene, scene.gang("g", a_pod("g-0", cpu=1, **pod)), g_0="n0")


def test_a_port_is_not_given_twice():
    scene = two_nodes()
    port = [{"containerPort": 80, "hostPort": 80}]
    gang = scene.gang("g", *(a_pod(f"g-{i}", cpu=1, container={"ports": port}) for i in range(2)))
    assert "port 80" in fault(scene, gang, g_0="n0", g_1="n0")


def test_a_claim_for_one_pod_has_one_user():
    scene = two_nodes()
    claim = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"accessModes": ["ReadWriteOncePod"]}}
    scene.cluster.change("PersistentVolumeClaim", msgspec.convert(claim, PersistentVolumeClaim))
    volume = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    gang = scene.gang("g", *(a_pod(f"g-{i}", cpu=1, volumes=volume) for i in range(2)))
    assert "claim c" in fault(scene, gang, g_0="n0", g_1="n1")


def test_a_volume_must_be_in_reach():
    scene = two_nodes()
    term = {"matchExpressions": [{"key": RACK, "operator": "In", "values": ["r0"]}]}
    volume = {"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}
    claim = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"volumeName": "pv"}}
    scene.cluster.change("PersistentVolume", msgspec.convert(volume, PersistentVolume))
    scene.cluster.change("PersistentVolumeClaim", msgspec.convert(claim, PersistentVolumeClaim))
    gang = scene.gang("g", a_pod("g-0", cpu=1, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
    assert "cannot reach" in fault(scene, gang, g_0="n1")
    assert fault(scene, gang, g_0="n0") == ""
