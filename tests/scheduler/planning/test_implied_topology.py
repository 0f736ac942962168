"""Topology constraints that follow from required affinity."""

from __future__ import annotations

from muster.scheduler.placement.verdict import Infeasible
from tests.build.objects import a_node, a_pod, near
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
