"""Upper bounds on seats: what a pod's own rules imply, and what a trial allows."""

from __future__ import annotations

from muster.scheduler.placement.verdict import Infeasible
from tests.build.objects import a_node, a_pod
from tests.build.planning import Scene


def test_host_ports_of_two_shapes_are_kept_apart():
    scene = Scene().nodes(a_node("n0", cpu=8), a_node("n1", cpu=8))
    port = [{"containerPort": 80, "hostPort": 80}]
    gang = scene.gang("web", a_pod("a", cpu=1, container={"ports": port}), a_pod("b", cpu=2, container={"ports": port}))

    assert len(set(scene.plan(gang).nodes_of("web").values())) == 2
    third = scene.gang("more", *(a_pod(f"p{i}", cpu=1, container={"ports": port}) for i in range(3)))
    assert isinstance(scene.plan(third).verdict, Infeasible)
