"""The supply of seats: countable shapes, what is free, what victims free."""

from __future__ import annotations

from tests.build.objects import a_gang, a_node, a_pod, pods
from tests.build.preemption import HIGH, with_lows
from tests.build.scheduler import a_world


def test_pod_level_resources_count():
    world = with_lows(a_world([a_node("n0", cpu=2)]), ("low", "n0", 1))
    world.add(a_pod("vip", cpu=0, priority=HIGH, resources={"requests": {"cpu": "2"}})).run()
    assert world.evicted() == ["low"]


def test_the_holder_of_a_host_port_leaves_although_there_is_room():
    port = {"name": "c", "ports": [{"hostPort": 80, "containerPort": 80}], "resources": {"requests": {"cpu": "1"}}}
    world = a_world([a_node("n0", cpu=4)])
    with_lows(world, ("holder", "n0", 1), containers=[port])
    with_lows(world, ("other", "n0", 1))
    world.add(a_gang("g", 1, priority=HIGH), *pods(1, "g", priority=HIGH, containers=[port])).run()
    assert world.evicted() == ["holder"]
