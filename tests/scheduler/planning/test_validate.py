"""The checker finds every kind of fault by itself: plans that are wrong by one detail."""

from __future__ import annotations

import msgspec
import pytest

from muster.api.types import PersistentVolume, PersistentVolumeClaim
from muster.scheduler.checking.check_proof import check_proof
from muster.scheduler.checking.validate import validate
from muster.scheduler.placement.request import GroupRequest, leaves
from muster.scheduler.placement.verdict import (
    Assignment,
    CountingProof,
    ExhaustionProof,
    Infeasible,
    Placed,
    WeightProof,
)
from tests.build.objects import RACK, ZONE, a_node, a_pod, apart, near
from tests.build.planning import Scene


def seated(scene: Scene, demand: GroupRequest, **where: str) -> Placed:
    """A plan that puts the named pods on the named nodes; underscores in names stand for dashes."""
    members = {member.name: member.uid for leaf in leaves(demand) for member in leaf.members}
    at = {name.replace("_", "-"): node for name, node in where.items()}
    seats = tuple(Assignment(members[name], node, scene.cluster.index[node]) for name, node in at.items())
    return Placed(seats, frozenset({demand.key}))


def fault(scene: Scene, demand: GroupRequest, **where: str) -> str:
    return validate(seated(scene, demand, **where), demand, scene.cluster) or ""


def two_nodes(**more: object) -> Scene:
    return Scene().nodes(a_node("n0", cpu=2, rack="r0", zone="z0"), a_node("n1", cpu=2, rack="r1", zone="z0"))


def test_a_sound_plan_has_no_fault():
    scene = two_nodes()
    gang = scene.uniform("g", 2)

    assert fault(scene, gang, g_0="n0", g_1="n1") == ""


def test_too_much_on_one_node_is_found():
    scene = two_nodes()
    assert "cpu" in fault(scene, scene.uniform("g", 3), g_0="n0", g_1="n0", g_2="n0")


def test_what_runs_already_counts_and_what_is_evicted_does_not():
    scene = two_nodes().running(a_pod("busy", cpu=2, node="n0"))
    gang = scene.uniform("g", 1)
    plan = seated(scene, gang, g_0="n0")

    assert "cpu" in (validate(plan, gang, scene.cluster) or "")
    assert validate(plan, gang, scene.cluster, evicted=frozenset({"pod-busy"})) is None


def test_seats_held_for_others_count():
    scene = two_nodes()
    gang = scene.uniform("g", 2)
    other = scene.uniform("other", 1).members[0].shape
    plan = seated(scene, gang, g_0="n0", g_1="n0")

    assert validate(plan, gang, scene.cluster) is None
    assert "cpu" in (validate(plan, gang, scene.cluster, nominated=[(other, 0)]) or "")


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


def test_the_number_of_pods_of_a_node_is_limited():
    scene = Scene().nodes(a_node("n0", cpu=8, pods=1))
    assert "pods" in fault(scene, scene.uniform("g", 2), g_0="n0", g_1="n0")


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


def test_a_minimum_that_does_not_hold_is_found_at_every_level():
    scene = two_nodes()
    left, right = scene.uniform("l", 1), scene.uniform("r", 2)
    assert "minimum of g" in fault(scene, scene.uniform("g", 2), g_0="n0")
    assert "minimum of root" in fault(scene, scene.composite("root", left, right), l_0="n0", r_0="n1")
    loose = scene.composite("root", left, right, min_groups=1)
    assert "r has seats" in fault(scene, loose, l_0="n0", r_0="n1")


def test_a_group_in_two_domains_is_found():
    scene = two_nodes()
    assert "more than one domain" in fault(scene, scene.uniform("g", 2, topology=RACK), g_0="n0", g_1="n1")
    pinned = scene.uniform("p", 1, bound=1, min_count=1, topology=RACK, domains=("r1",))
    assert "more than one domain" in fault(scene, pinned, p_0="n0")


def test_nobody_sits_twice_and_no_stranger_sits():
    scene = two_nodes()
    gang = scene.uniform("g", 1)
    seat = Assignment("uid-g-0", "n0", 0)
    assert "twice" in (validate(Placed((seat, seat), frozenset()), gang, scene.cluster) or "")
    assert "not a waiting member" in (
        validate(Placed((Assignment("x", "n0", 0),), frozenset()), gang, scene.cluster) or ""
    )
    assert "index" in (validate(Placed((Assignment("uid-g-0", "n0", 1),), frozenset()), gang, scene.cluster) or "")
    assert "nobody" in (validate(Placed((), frozenset()), gang, scene.cluster) or "")


def test_a_false_proof_of_any_kind_is_refuted():
    scene = two_nodes()
    gang = scene.gang("g", a_pod("g-0", cpu=1), a_pod("g-1", cpu=2))
    shapes = [member.shape.id for member in gang.members]

    counting = Infeasible(CountingProof(gang.key, ()))
    weighing = Infeasible(WeightProof(gang.key, ((shapes[0], 1), (shapes[1], 2)), 5, 4))
    search = Infeasible(ExhaustionProof(gang.key, 1, 2, 10))

    assert "does not rule out" in (check_proof(counting, gang, scene.cluster) or "")
    assert "needed" in (check_proof(weighing, gang, scene.cluster) or "")
    assert check_proof(search, gang, scene.cluster) == "a placement exists"
