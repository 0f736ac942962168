"""Topology constraints that follow from required affinity."""

from __future__ import annotations

import pytest

from muster.scheduler.placement.request import CompositeRequest, PodGroupRequest
from muster.scheduler.placement.verdict import Infeasible
from muster.scheduler.planning.implied_topology import ImpliedTopology
from muster.scheduler.planning.partial_placement import PartialPlacement
from tests.build.cluster import evaluator_of
from tests.build.objects import RACK, ZONE, a_node, a_pod, near
from tests.build.planning import Scene


def test_workers_that_no_zone_can_hold_beside_their_launcher_are_refuted_at_any_size():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=4, zone=f"z{i // 10}") for i in range(40)))
    rule = near("example.com/zone", role="launcher")
    workers = [a_pod(f"w{i}", affinity=rule) for i in range(40)]

    verdict = scene.plan(scene.gang("mpi", *workers, a_pod("launcher", labels={"role": "launcher"}))).verdict

    assert isinstance(verdict, Infeasible)
    assert scene.plan(scene.gang("fits", *workers[:39], a_pod("lead", labels={"role": "launcher"}))).placed


def test_company_that_runs_already_leaves_the_workers_free_to_choose():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=4, zone=f"z{i // 2}") for i in range(4)))
    scene.running(*(a_pod(f"lead{i}", cpu=1, node=f"n{2 * i}", labels={"role": "launcher"}) for i in range(2)))
    workers = [a_pod(f"w{i}", affinity=near("example.com/zone", role="launcher")) for i in range(14)]

    assert scene.plan(scene.gang("both", *workers)).seats_of("both") == 14


def implied(
    scene: Scene, request: PodGroupRequest | CompositeRequest, place: bool = False, evicted: str = ""
) -> list[str]:
    """The keys of the constraints that are added above the first PodGroup."""
    request = scene.fresh(scene.fresh(request))
    with evaluator_of(scene.cluster).trial() as trial:
        placement = PartialPlacement(trial)
        if evicted:
            trial.evict(evicted)
        if place:
            placement.place_on(scene.uniform("placed", 1).identical[0], 0)
        found = ImpliedTopology(placement, request)
    keys: list[str] = []
    group = found.request
    while isinstance(group, CompositeRequest):
        if found.original(group) is None:
            keys.append(group.topology)
        group = group.children[0]
    assert found.found is bool(keys)
    return keys


def mpi(scene: Scene, leads: int = 1, workers: int = 2, **more: object) -> PodGroupRequest:
    rule = near(ZONE, role="lead")
    pods = [a_pod(f"w{i}", affinity=rule) for i in range(workers)]
    return scene.gang("mpi", *pods, *(a_pod(f"l{i}", labels={"role": "lead"}) for i in range(leads)), **more)  # type: ignore[arg-type]


def two_zones() -> Scene:
    return Scene().nodes(*(a_node(f"n{i}", cpu=4, zone=f"z{i}") for i in range(2)))


def test_pods_that_require_one_pod_of_their_group_are_in_its_domain():
    scene = two_zones()

    assert implied(scene, mpi(scene)) == [ZONE]
    assert implied(scene, mpi(scene, leads=2)) == []  # the workers may follow either


def test_pods_that_require_their_own_shape_are_in_one_domain():
    scene = two_zones()
    alike = [a_pod(f"p{i}", labels={"app": "x"}, affinity=near(ZONE, app="x")) for i in range(3)]

    assert implied(scene, scene.gang("g", *alike)) == [ZONE]
    assert implied(scene, scene.gang("g", *alike, a_pod("other"))) == []  # this one is free to go elsewhere
    follower = a_pod("follower", affinity=near(ZONE, app="x"))
    assert implied(scene, scene.gang("g", *alike, follower)) == []  # requires them and is not one of them
    free = a_pod("free", labels={"app": "x"})
    assert implied(scene, scene.gang("g", *alike, free)) == []  # is one of them and requires nothing


def test_a_matching_pod_elsewhere_leaves_the_choice():
    scene = two_zones()
    scene.fresh(mpi(scene))  # makes the selector known before the shapes of the others are looked up
    other = scene.gang("other", a_pod("o", labels={"role": "lead"}))

    assert implied(scene, scene.composite("root", mpi(scene), scene.uniform("plain", 1))) == [ZONE]
    assert implied(scene, scene.composite("root", mpi(scene), other)) == []
    mixed = scene.gang("mixed", a_pod("m", cpu=2), a_pod("n", labels={"role": "lead"}))
    assert implied(scene, scene.composite("root", mpi(scene), mixed)) == []
    assert implied(scene, mpi(scene), place=True) == []
    scene.running(a_pod("plain", node="n0"))
    assert implied(scene, mpi(scene)) == [ZONE]
    scene.running(a_pod("running", node="n0", labels={"role": "lead"}))
    assert implied(scene, mpi(scene)) == []
    assert implied(scene, mpi(scene), evicted="pod-running") == [ZONE]


@pytest.mark.parametrize(
    "more", [{"namespaces": ["ns"]}, {"namespaceSelector": {}}, {"matchLabelKeys": ["v"]}, {"mismatchLabelKeys": ["v"]}]
)
def test_terms_that_select_by_more_than_labels_imply_nothing(more: dict[str, object]):
    scene = two_zones()
    rule = near(ZONE, role="lead")
    rule["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0] |= more
    gang = scene.gang("g", a_pod("w", affinity=rule), a_pod("l", labels={"role": "lead"}))

    assert implied(scene, gang) == []


def test_a_group_with_a_constraint_of_its_own_keeps_it_inside():
    scene = two_zones()
    request = scene.fresh(scene.fresh(scene.composite("root", mpi(scene, topology=RACK), topology=ZONE)))
    with evaluator_of(scene.cluster).trial() as trial:
        found = ImpliedTopology(PartialPlacement(trial), request)

    assert isinstance(found.request, CompositeRequest)
    (added,) = found.request.open
    assert (found.request.topology, added.topology) == (ZONE, ZONE)
    assert isinstance(added, CompositeRequest)
    (leaf,) = added.open
    assert leaf.topology == RACK
    assert [found.original(group) for group in (found.request, added, leaf)] == [request, None, request.children[0]]
