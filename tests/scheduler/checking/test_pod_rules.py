"""Rules between pods, checked on the API objects."""

from __future__ import annotations

from tests.build.objects import RACK, ZONE, a_pod, apart, near
from tests.build.placements import fault, two_nodes


def test_members_that_repel_each_other_must_be_apart():
    scene = two_nodes()
    rule = apart("kubernetes.io/hostname", job="x")
    gang = scene.gang("g", *(a_pod(f"g-{i}", cpu=1, labels={"job": "x"}, affinity=rule) for i in range(2)))
    assert "near" in fault(scene, gang, g_0="n0", g_1="n0")
    assert fault(scene, gang, g_0="n0", g_1="n1") == ""


def test_a_running_pod_keeps_others_away():
    scene = two_nodes().running(a_pod("guard", cpu=1, node="n0", affinity=apart(ZONE, job="x")))
    gang = scene.gang("g", a_pod("g-0", cpu=1, labels={"job": "x"}))
    assert "kept away by guard" in fault(scene, gang, g_0="n1")


def test_required_company_must_be_there():
    scene = two_nodes()
    gang = scene.gang(
        "g", a_pod("g-0", cpu=1, labels={"role": "lead"}), a_pod("g-1", cpu=1, affinity=near(RACK, role="lead"))
    )
    assert "needs" in fault(scene, gang, g_0="n0", g_1="n1")
    assert fault(scene, gang, g_0="n0", g_1="n0") == ""


def test_hard_spreading_is_counted_again():
    scene = two_nodes()
    rule = {
        "maxSkew": 1,
        "topologyKey": RACK,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job": "x"}},
    }
    pods = [a_pod(f"g-{i}", cpu=1, labels={"job": "x"}, topologySpreadConstraints=[rule]) for i in range(2)]
    assert "unevenly" in fault(scene, scene.gang("g", *pods), g_0="n0", g_1="n0")
