"""A change is tried without changing anything."""

from __future__ import annotations

from tests.build.suggestions import a_stuck_rack_gang, suggested


def test_asking_leaves_the_world_as_it_was():
    world = a_stuck_rack_gang()
    cluster = world.brain.state.cluster
    before = (sorted(cluster.index), cluster.used.tobytes(), len(cluster.pods))
    first = suggested(world, "PodGroup", "g")
    assert suggested(world, "PodGroup", "g") == first
    assert (sorted(cluster.index), cluster.used[:, : len(before[0])].tobytes(), len(cluster.pods)) == before
