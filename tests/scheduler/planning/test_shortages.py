"""What a request lacks, where it came nearest, and the proof that there is no placement."""

from __future__ import annotations

from muster.scheduler.placement.verdict import CountingProof, Infeasible, WeightProof
from tests.build.objects import RACK, a_node, a_pod, apart
from tests.build.planning import Scene, racks, slots


def test_a_gang_that_lacks_one_seat_is_refused_by_counting():
    scene = slots(5)

    verdict = scene.plan(scene.uniform("six", 6)).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, CountingProof)
    (short,) = verdict.proof.shortages
    assert (short.seats, short.needed) == (5, 6)
    assert ("cpu", 1000) in short.lacking


def test_shapes_that_fit_alone_but_not_together_are_refused_by_weighing():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    gang = scene.gang("mix", a_pod("a", cpu=3), a_pod("b", cpu=3), a_pod("c", cpu=2))

    verdict = scene.plan(gang).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, WeightProof)
    assert verdict.proof.required > verdict.proof.available


def test_members_that_repel_each_other_on_too_few_nodes_are_refused_by_counting():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=8) for i in range(2)))
    rule = apart("kubernetes.io/hostname", job="apart")
    gang = scene.gang("apart", *(a_pod(f"z{i}", labels={"job": "apart"}, affinity=rule) for i in range(3)))

    verdict = scene.plan(gang).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, CountingProof)


def test_room_in_several_racks_does_not_help():
    scene = racks(r1=3, r2=3).nodes(*(a_node(f"u{i}", cpu=1) for i in range(4)))

    verdict = scene.plan(scene.uniform("tight", 4, topology=RACK)).verdict

    assert isinstance(verdict, Infeasible)
    assert {short.domain for short in verdict.proof.shortages} == {"r1", "r2"}
    assert {(short.seats, short.needed) for short in verdict.proof.shortages} == {(3, 4)}


def test_the_nearest_domain_says_what_it_lacks_and_where():
    scene = Scene()
    for i in range(16):
        scene.nodes(a_node(f"n{i}", cpu=32, rack="r3", extended={"nvidia.com/gpu": 8}))
    scene.running(*(a_pod(f"busy{i}", cpu=1, requests={"nvidia.com/gpu": 8}, node=f"n{i}") for i in range(2)))
    scene.nodes(a_node("small", cpu=32, rack="r4", extended={"nvidia.com/gpu": 8}))

    verdict = scene.plan(scene.uniform("train", 16, requests={"nvidia.com/gpu": 8}, topology=RACK)).verdict

    assert isinstance(verdict, Infeasible)
    near = verdict.proof.shortages[0]
    assert (near.domain, near.seats, near.needed) == ("r3", 14, 16)
    assert near.lacking == (("nvidia.com/gpu", 16),)
    assert near.nodes == 2


def test_what_is_short_is_told_for_the_group_that_lacks_it():
    scene = slots(5)

    verdict = scene.plan(scene.composite("pair", scene.uniform("l", 3), scene.uniform("r", 3))).verdict

    assert isinstance(verdict, Infeasible)
    short = {shortage.group.name: (shortage.seats, shortage.needed) for shortage in verdict.proof.shortages}
    assert (2, 3) in short.values()
    assert short["pair"] == (1, 2)
