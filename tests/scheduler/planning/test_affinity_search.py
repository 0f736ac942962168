"""The search for pods that depend on each other."""

from __future__ import annotations

from muster.scheduler.placement.verdict import Infeasible
from tests.build.objects import a_node, a_pod, near
from tests.build.planning import Scene


def test_workers_may_need_the_zone_of_a_launcher_that_comes_later():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2, zone=f"z{i // 2}") for i in range(4)))
    rule = near("example.com/zone", role="launcher")
    workers = [a_pod(f"w{i}", affinity=rule) for i in range(2)]

    result = scene.plan(scene.gang("mpi", *workers, a_pod("launcher", labels={"role": "launcher"})))

    assert result.seats_of("mpi") == 3
    assert len(result.values_of("mpi", "example.com/zone")) == 1


def test_the_launcher_goes_where_its_workers_have_room_too():
    scene = Scene().nodes(
        a_node("big", cpu=64, zone="z0"), a_node("a", cpu=2, zone="z1"), a_node("b", cpu=2, zone="z1")
    )
    scene.running(a_pod("busy", cpu=62, node="big"))
    rule = near("example.com/zone", role="launcher")
    gang = scene.gang(
        "mpi", *(a_pod(f"w{i}", affinity=rule) for i in range(3)), a_pod("launcher", labels={"role": "launcher"})
    )

    assert scene.plan(gang).values_of("mpi", "example.com/zone") == {"z1"}


def test_a_chain_of_dependencies_is_followed():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2, zone=f"z{i // 2}") for i in range(4)))
    gang = scene.gang(
        "chain",
        a_pod("c", labels={"tier": "c"}, affinity=near("example.com/zone", tier="b")),
        a_pod("b", labels={"tier": "b"}, affinity=near("example.com/zone", tier="a")),
        a_pod("a", labels={"tier": "a"}),
    )

    assert scene.plan(gang).seats_of("chain") == 3


def test_dependent_members_without_any_way_are_proven_infeasible():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=1, zone=f"z{i}") for i in range(3)))
    rule = near("example.com/zone", role="launcher")
    gang = scene.gang("mpi", a_pod("worker", affinity=rule), a_pod("launcher", labels={"role": "launcher"}))

    assert isinstance(scene.plan(gang).verdict, Infeasible)
