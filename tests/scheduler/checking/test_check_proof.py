"""`check_proof` accepts true proofs and refutes false ones of every kind."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.checking import check_proof as module
from muster.scheduler.checking.check_proof import check_proof
from muster.scheduler.placement.request import GroupRequest
from muster.scheduler.placement.verdict import (
    CountingProof,
    ExhaustionProof,
    Infeasible,
    WeightProof,
)
from tests.build.objects import HOSTNAME, RACK, a_node, a_pod, apart
from tests.build.placements import two_nodes
from tests.build.planning import Scene, racks, slots

WEB = {"ports": [{"containerPort": 80, "hostPort": 80}]}


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


@pytest.mark.parametrize(
    ("expected", "new"),
    [
        ({"affinity": apart(HOSTNAME, app="new")}, {"labels": {"app": "new"}}),
        ({"labels": {"app": "x"}}, {"affinity": apart(HOSTNAME, app="x")}),
        ({"container": WEB}, {"container": WEB}),
    ],
    ids=["keeps others away", "is kept away from", "has the port"],
)
def test_pods_that_seats_are_nominated_for_count_as_if_they_were_there(expected: dict[str, Any], new: dict[str, Any]):
    scene = Scene().nodes(a_node("n0", cpu=4))
    asked = scene.uniform("new", 1, **new)
    seat = (scene.uniform("other", 1, **expected).members[0].shape, 0)
    assert counting(scene, asked) is not None
    assert counting(scene, asked, nominated=[seat]) is None


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


def test_weights_about_a_group_with_its_minimum_are_those_of_one_thing_more():
    scene = Scene().nodes(a_node("n0", cpu=3))
    done, more = (
        scene.uniform("done", 0, bound=1),
        scene.gang("more", a_pod("a", cpu=2), a_pod("b", cpu=2, memory="1Mi")),
    )
    tree = scene.composite("tree", done, more, min_groups=1)
    shapes = [member.shape.id for member in more.members]

    def checked(weight: int) -> str | None:
        weights = tuple((shape, weight) for shape in shapes)
        return check_proof(Infeasible(WeightProof(tree.key, weights, 0, 0)), tree, scene.cluster)

    assert checked(1) is None  # two pods of weight 1, and the node holds one
    assert checked(0) is not None


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


def test_pods_of_different_shapes_are_enumerated_on_every_node():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    for first, second in (("n0", "n1"), ("n1", "n0")):
        one = a_pod("one", cpu=3, nodeSelector={HOSTNAME: first})
        two = a_pod("two", cpu=2, nodeSelector={HOSTNAME: second})
        assert exhaustion(scene, scene.gang("g", one, two)) == "a placement exists"


def test_the_heaviest_pods_of_a_node_are_of_any_shape():
    scene = Scene().nodes(a_node("n0", cpu=5))
    gang = scene.gang("g", a_pod("a", cpu=3), a_pod("b", cpu=2), a_pod("c", cpu=2))
    large, small = gang.members[0].shape.id, gang.members[1].shape.id

    def checked(*weights: tuple[int, int]) -> str | None:
        return check_proof(Infeasible(WeightProof(gang.key, weights, 0, 0)), gang, scene.cluster)

    assert checked((large, 3), (small, 2)) is None  # 5 of 7
    assert "nodes hold 2, only 2 is needed" in (checked((small, 1)) or "")  # two small ones, not the large one
    assert "nodes hold 1, only 1 is needed" in (checked((large, 1)) or "")
