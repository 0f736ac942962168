"""Plans on a cluster without some victims, and which of them can be reprieved."""

from __future__ import annotations

from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, with_lows
from tests.build.scheduler import a_world


def test_a_pod_that_repels_the_preemptor_leaves_although_there_is_room():
    term = {"labelSelector": {"matchLabels": {"app": "loud"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    world = a_world([a_node("n0", cpu=4)])
    with_lows(world, ("loud", "n0", 1), labels={"app": "loud"})
    with_lows(world, ("calm", "n0", 1))
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH, affinity=apart)).run()
    assert world.evicted() == ["loud"]
    assert world.bound("g") == {"g-0": "n0"}


def test_a_spread_pod_moves_a_victim_where_cpu_would_fit():
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    world = a_world([a_node("n0", cpu=4), a_node("n1", cpu=1)])
    world.add(a_pod("web-0", priority=HIGH, node="n0", labels={"app": "web"}))
    with_lows(world, ("low", "n1", 1))
    world.add(a_pod("web-1", priority=HIGH, labels={"app": "web"}, topologySpreadConstraints=spread)).run()
    assert world.evicted() == ["low"]
    assert world.bound("web-1") == {"web-1": "n1"}
