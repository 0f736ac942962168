"""`check_proof` accepts true proofs and refutes false ones of every kind."""

from __future__ import annotations

from typing import Any

from muster.scheduler.checking import check_proof as module
from muster.scheduler.checking.check_proof import check_proof
from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.placement.verdict import (
    CountingProof,
    ExhaustionProof,
    Infeasible,
    WeightProof,
)
from tests.build.objects import RACK, a_node, a_pod, apart
from tests.build.placements import two_nodes
from tests.build.planning import Scene, racks, slots


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


def counting(scene: Scene, request: GroupRequest, **more: Any) -> str | None:
    return check_proof(Infeasible(CountingProof(request.key, ())), request, scene.cluster, **more)


def exhaustion(scene: Scene, request: GroupRequest, **more: Any) -> str | None:
    return check_proof(Infeasible(ExhaustionProof(request.key, 1, 1, 1)), request, scene.cluster, **more)


def test_counting_is_repeated_for_each_group_alone():
    scene = slots(3)

    assert counting(scene, scene.uniform("g", 4)) is None
    assert counting(scene, scene.uniform("g", 3)) == "counting does not rule out g"
    assert counting(scene, scene.uniform("g", 3, min_count=2)) is not None
    pair = [scene.uniform("a", 4), scene.uniform("b", 3)]
    assert counting(scene, scene.composite("both", *pair)) is None
    assert counting(scene, scene.composite("any", *pair, min_groups=1)) is not None


def test_counting_looks_into_each_domain():
    scene = racks(r1=2, r2=3)

    assert counting(scene, scene.uniform("g", 4, topology=RACK)) is None
    assert counting(scene, scene.uniform("g", 3, topology=RACK)) is not None
    assert counting(scene, scene.uniform("g", 3, bound=1, topology=RACK, domains=("r1",))) is None
    assert counting(scene, scene.uniform("g", 1, bound=2, topology=RACK, domains=("r1", "r2"))) is None


def test_running_evicted_and_nominated_pods_change_the_count():
    scene = slots(3).running(a_pod("busy", node="n0"))
    gang = scene.uniform("g", 3)
    shape = gang.members[0].shape

    assert counting(scene, gang) is None
    assert counting(scene, gang, evicted=frozenset({"pod-busy"})) is not None
    assert counting(scene, scene.uniform("h", 2)) is not None
    assert counting(scene, scene.uniform("h", 2), nominated=[(shape, scene.cluster.index["n1"])]) is None


def test_for_a_satisfied_request_every_single_addition_must_be_impossible():
    scene = slots(2)
    full = scene.uniform("full", 1, cpu=2, bound=1, min_count=1)
    room = scene.uniform("room", 1, bound=1, min_count=1)

    assert counting(scene, full) is None
    assert counting(scene, room) is not None
    assert counting(scene, scene.composite("root", full, scene.uniform("big", 3), min_groups=1)) is None
    assert counting(scene, scene.composite("root", full, room, min_groups=1)) is not None


def test_anti_affinity_ports_and_taints_limit_the_count():
    scene = Scene().nodes(
        a_node("n0", cpu=9, rack="r0"), a_node("n1", cpu=9, rack="r0"), a_node("n2", taints=["t=:NoSchedule"])
    )
    port = {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}
    repel = {"labels": {"app": "x"}, "affinity": apart(RACK, app="x")}

    assert counting(scene, scene.uniform("p", 3, **port)) is None
    assert counting(scene, scene.uniform("p", 2, **port)) is not None
    assert counting(scene, scene.uniform("r", 2, **repel)) is None
    assert counting(scene, scene.uniform("r", 1, **repel)) is not None
    scene.running(a_pod("there", node="n0", labels={"app": "x"}))
    assert counting(scene, scene.uniform("r", 1, **repel)) is None
    scene.running(a_pod("guard", node="n1", affinity=apart(RACK, app="y")))
    assert counting(scene, scene.uniform("y", 1, labels={"app": "y"})) is None


def test_true_weights_are_accepted_whatever_sums_the_proof_names():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    gang = scene.gang("g", a_pod("a", cpu=3), a_pod("b", cpu=3), a_pod("c", cpu=2))
    large, small = gang.members[0].shape.id, gang.members[2].shape.id

    def checked(*weights: tuple[int, int]) -> str | None:
        return check_proof(Infeasible(WeightProof(gang.key, weights, 0, 0)), gang, scene.cluster)

    assert checked((large, 2), (small, 2)) is None  # three pods of weight 2, and every node holds one
    assert "nodes hold 4, only 2 is needed" in (checked((small, 2)) or "")


def test_weights_of_a_tree_are_those_of_its_lightest_way():
    scene = slots(2)
    light, heavy = scene.uniform("light", 1), scene.uniform("heavy", 3)
    weights = ((light.members[0].shape.id, 1),)
    both, either = scene.composite("b", light, heavy), scene.composite("e", light, heavy, min_groups=1)

    assert check_proof(Infeasible(WeightProof(both.key, weights, 0, 0)), both, scene.cluster) is None
    assert check_proof(Infeasible(WeightProof(either.key, weights, 0, 0)), either, scene.cluster) is not None


def test_an_exhausted_search_is_enumerated_again():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    mixed = scene.gang("mix", a_pod("a", cpu=3), a_pod("b", cpu=3), a_pod("c", cpu=2))

    assert exhaustion(scene, mixed) is None
    assert exhaustion(scene, mixed.with_minimum(2)) == "a placement exists"
    scene = racks(r1=5, r2=5, r3=4)
    groups = [scene.uniform(f"g{i}", 3, topology=RACK) for i in range(4)]
    assert exhaustion(scene, scene.composite("root", *groups)) is None
    assert exhaustion(scene, scene.composite("root", *groups, min_groups=3)) == "a placement exists"


def test_what_is_too_large_to_enumerate_passes_unchecked(monkeypatch: Any):
    scene = slots(4)
    gang = scene.uniform("g", 3)
    assert exhaustion(scene, gang) == "a placement exists"

    monkeypatch.setattr(module, "MOST_VISITS", 2)

    assert exhaustion(scene, gang) is None


def test_searches_among_dependent_pods_pass_unchecked():
    scene = slots(4)

    assert exhaustion(scene, scene.uniform("g", 2, affinity=apart(RACK, app="x"))) is None
