"""Who uses what is short, and where."""

from __future__ import annotations

import numpy as np

from muster.scheduler.explain.holders import holders, inside_of, shares, short_resources
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.verdict import Shortage
from muster.scheduler.state.scheduler_state import SchedulerState
from tests.build.objects import RACK, a_gang, a_node, a_pod
from tests.build.scheduler import a_world

OWN = EntityKey("PodGroup", "ns", "own")


def a_busy_state() -> SchedulerState:
    """On `n0` in rack r0 two pods of the gang `g` and a single pod, on `n1` in rack r1 the third pod of `g`."""
    world = a_world([a_node("n0", cpu=8, rack="r0"), a_node("n1", cpu=8, rack="r1")])
    world.add(
        a_gang("g", 3, priority=7), *[a_pod(f"g-{i}", "g", cpu=2, node=f"n{i // 2}", priority=7) for i in range(3)]
    )
    return world.add(a_pod("solo", cpu=3, node="n0", priority=1), a_pod("idle", cpu=0, node="n0")).scheduler.state


def short_of(*lacking: tuple[str, int], domain: str = "") -> Shortage:
    return Shortage(OWN, RACK if domain else "", domain, 0, 1, lacking)


def test_the_largest_users_come_first_with_their_pods_and_amounts():
    found = holders(a_busy_state(), OWN, short_of(("cpu", 1000)), most=5)
    assert [(each.kind, each.name, each.priority, each.pods, each.amounts) for each in found] == [
        ("PodGroup", "g", 7, 3, {"cpu": "6"}),
        ("Pod", "solo", 1, 1, {"cpu": "3"}),
    ]


def test_only_pods_inside_the_domain_are_counted():
    found = holders(a_busy_state(), OWN, short_of(("cpu", 1000), domain="r1"), most=5)
    assert [(each.name, each.pods, each.amounts) for each in found] == [("g", 1, {"cpu": "2"})]


def test_no_more_than_asked_for_are_named_and_never_the_entity_itself():
    state = a_busy_state()
    assert [each.name for each in holders(state, OWN, short_of(("cpu", 1000)), most=1)] == ["g"]
    own = EntityKey("PodGroup", "ns", "g")
    assert [each.name for each in holders(state, own, short_of(("cpu", 1000)), most=5)] == ["solo"]


def test_nobody_holds_what_is_no_resource_or_what_no_node_has():
    state = a_busy_state()
    lacking = (("node(s) were unschedulable", 2), ("example.com/unknown", 1), ("memory", 5))
    assert short_resources(state, short_of(*lacking)) == ["memory"]
    assert holders(state, OWN, short_of(*lacking[:2]), most=5) == ()


def test_without_a_resource_pods_are_counted():
    state = a_busy_state()
    found = shares(state, [], inside_of(state, RACK, "r0"))
    assert {key.name: (share.sums, len(share.uids)) for key, share in found.items()} == {
        "g": ([2], 2),
        "solo": ([1], 1),
        "idle": ([1], 1),
    }


def test_without_a_domain_all_nodes_are_inside():
    state = a_busy_state()
    assert np.array_equal(inside_of(state, "", ""), np.ones(state.cluster.size, dtype=bool))
    assert inside_of(state, RACK, "r1").sum() == 1
