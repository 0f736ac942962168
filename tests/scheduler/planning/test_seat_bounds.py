"""Upper bounds on seats: what a pod's own rules imply, and what a trial allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from muster.scheduler.placement.verdict import Infeasible
from muster.scheduler.planning.seat_bounds import (
    affinity_keys,
    most,
    node_matrix_of,
    repelled_keys,
    room_only_shrinks,
    seats_at_most,
)
from tests.build.cluster import evaluator_of
from tests.build.objects import RACK, ZONE, a_node, a_pod, apart, near
from tests.build.planning import Scene


def test_host_ports_of_two_shapes_are_kept_apart():
    scene = Scene().nodes(a_node("n0", cpu=8), a_node("n1", cpu=8))
    port = [{"containerPort": 80, "hostPort": 80}]
    gang = scene.gang("web", a_pod("a", cpu=1, container={"ports": port}), a_pod("b", cpu=2, container={"ports": port}))

    assert len(set(scene.plan(gang).nodes_of("web").values())) == 2
    third = scene.gang("more", *(a_pod(f"p{i}", cpu=1, container={"ports": port}) for i in range(3)))
    assert isinstance(scene.plan(third).verdict, Infeasible)


def spread(key: str, when: str = "DoNotSchedule") -> dict[str, Any]:
    rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when}
    return {"topologySpreadConstraints": [rule | {"labelSelector": {"matchLabels": {"app": "x"}}}]}


@pytest.mark.parametrize(
    ("spec", "shrinks"),
    [
        ({}, True),
        ({"affinity": apart(ZONE, app="x")}, True),
        ({"affinity": near(ZONE, app="x")}, False),
        (spread(ZONE), False),
        (spread(ZONE, "ScheduleAnyway"), True),
    ],
)
def test_only_affinity_and_hard_spreading_can_make_room_later(spec: dict[str, Any], shrinks: bool):
    assert room_only_shrinks(a_pod("p", **spec)) is shrinks


def test_the_keys_of_affinity_are_listed_once():
    pod = a_pod("p", affinity=near(ZONE, app="x"), **spread(RACK))

    assert affinity_keys(pod) == (ZONE, RACK)
    assert affinity_keys(a_pod("p", affinity=near(ZONE, app="x"), **spread(ZONE))) == (ZONE,)
    assert affinity_keys(a_pod("p", affinity=apart(ZONE, app="x"))) == ()


def test_a_pod_is_repelled_from_the_domains_of_pods_like_itself_only():
    own = a_pod("p", labels={"app": "x"}, affinity=apart(RACK, app="x"))
    other = a_pod("p", labels={"app": "y"}, affinity=apart(RACK, app="x"))
    elsewhere = apart(RACK, app="x")
    elsewhere["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["namespaces"] = ["else"]

    unequal, unselective = apart(RACK, app="x"), apart(RACK, app="x")
    unequal["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["mismatchLabelKeys"] = ["app"]
    del unselective["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["labelSelector"]

    assert (repelled_keys(own), repelled_keys(other)) == ((RACK,), ())
    for rule in (unequal, unselective):
        assert repelled_keys(a_pod("p", labels={"app": "x"}, affinity=rule)) == ()
    assert repelled_keys(a_pod("p", labels={"app": "x"}, affinity=elsewhere)) == ()


def shape_of(scene: Scene, pod: Any) -> Any:
    scene.member(pod)
    return scene.member(pod).shape  # the first call makes its selectors known


def test_a_pod_that_requires_another_may_still_get_a_seat_where_it_is_not_feasible_now():
    scene = Scene().nodes(a_node("n0", cpu=4, zone="z0"), a_node("n1", cpu=2, zone="z1"))
    scene.running(a_pod("busy", cpu=1, node="n0"))
    shape = shape_of(scene, a_pod("p", cpu=1, affinity=near(ZONE, app="x")))
    with evaluator_of(scene.cluster).trial() as trial:
        assert not trial.feasible(shape).any()
        assert seats_at_most(trial, shape).tolist() == [3, 2]


def test_a_pod_whose_room_only_shrinks_gets_no_seat_where_it_is_not_feasible_now():
    scene = Scene().nodes(a_node("n0", cpu=4, rack="r0"), a_node("n1", cpu=2, rack="r1"))
    scene.running(a_pod("there", cpu=1, node="n0", labels={"app": "x"}))
    shape = shape_of(scene, a_pod("p", cpu=1, affinity=apart(RACK, app="x")))
    with evaluator_of(scene.cluster).trial() as trial:
        assert seats_at_most(trial, shape).tolist() == [0, 2]


def test_anti_affinity_to_its_own_pods_leaves_one_seat_a_domain():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=4, rack=f"r{i // 2}") for i in range(4)), a_node("loose", cpu=4))
    plain = shape_of(scene, a_pod("plain", cpu=2))
    alone = shape_of(scene, a_pod("alone", cpu=2, labels={"app": "x"}, affinity=apart(RACK, app="x")))
    with evaluator_of(scene.cluster).trial() as trial:
        some = np.array([True, True, True, False, False])
        assert (most(trial, plain, None), most(trial, plain, some)) == (10, 6)
        assert (most(trial, alone, None), most(trial, alone, some)) == (2 + 2, 2)


def test_the_matrix_has_the_requested_rows_and_one_more_for_other_limits():
    scene = Scene().nodes(a_node("n0", cpu=8, memory="8Gi", rack="r0"), a_node("n1", cpu=4, rack="r1"))
    plain = shape_of(scene, a_pod("plain", cpu=2))
    port = shape_of(scene, a_pod("port", cpu=1, container={"ports": [{"containerPort": 80, "hostPort": 80}]}))
    with evaluator_of(scene.cluster).trial() as trial:
        exact = node_matrix_of(trial, [plain], ())
        matrix = node_matrix_of(trial, [plain, port], [RACK])

    assert (exact.limited, matrix.limited) == (False, True)
    assert exact.free.shape[0] == 2  # cpu and the number of pods
    assert matrix.free.shape[0] == 3
    assert (matrix.seats(plain).tolist(), matrix.seats(port).tolist()) == ([4, 2], [1, 1])
    assert len(matrix.domains(matrix.everywhere(), RACK)) == 2


def test_the_matrix_allows_one_pod_a_node_that_repels_its_own():
    scene = Scene().nodes(a_node("n0", cpu=8, rack="r0"), a_node("n1", cpu=8, rack="r1"), a_node("loose", cpu=8))
    plain = shape_of(scene, a_pod("plain", cpu=2))
    alone = shape_of(scene, a_pod("alone", cpu=2, labels={"app": "x"}, affinity=apart(RACK, app="x")))
    with evaluator_of(scene.cluster).trial() as trial:
        matrix = node_matrix_of(trial, [alone, plain], ())

    assert matrix.seats(alone).tolist() == [1, 1, 4]  # without the label there is no domain
    assert matrix.seats(plain).tolist() == [4, 4, 4]


def test_the_matrix_shows_what_is_free_on_the_trial():
    scene = Scene().nodes(a_node("n0", cpu=4))
    shape = shape_of(scene, a_pod("p", cpu=1))
    with evaluator_of(scene.cluster).trial() as trial:
        trial.place(shape, 0, 3)
        assert node_matrix_of(trial, [shape], ()).seats(shape).tolist() == [1]
