"""Claims that wait for their pod: who asks for a volume, when, and what happens when none comes."""

from __future__ import annotations

from muster.api import types
from muster.scheduler.cache.volumes import SELECTED_NODE
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from muster.scheduler.interface.keys import ObjectRef
from tests.build.objects import ZONE, a_claim, a_class, a_gang, a_node, a_pod, a_volume, using
from tests.build.scheduler import TestWorld, a_world

LOCAL = "kubernetes.io/no-provisioner"


def local_volume(name: str, zone: str) -> types.PersistentVolume:
    return a_volume(name, zone, zone_key=ZONE, phase="Available")


def two_zones() -> TestWorld:
    return a_world(nodes=[a_node("a", zone="a"), a_node("b", zone="b")])


def turn(world: TestWorld) -> list[d.Decision]:
    """The next turn that says something about volumes or binds, not carried out."""
    for _ in range(20):
        decisions = world.scheduler.next(world.now)
        found = [each for each in decisions if isinstance(each, d.Bind | d.SelectVolumeNode | d.PromiseVolume)]
        if found or not decisions:
            return found
    raise AssertionError("the scheduler does not come to rest")


def claim_of(decision: d.Decision) -> str:
    assert isinstance(decision, d.SelectVolumeNode | d.PromiseVolume)
    return decision.claim.name


def fail(world: TestWorld, *decisions: d.Decision) -> None:
    for each in decisions:
        if isinstance(each, d.Bind):
            world.scheduler.handle(events.BindFailed(each.pod.uid, each.node, "no volume"), world.now)


def test_a_waiting_claim_gets_the_node_of_its_pod_before_the_bind() -> None:
    world = two_zones().add(a_class(zones=("b",), zone_key=ZONE), a_claim("data"), using("data", name="p"))
    select, bind = turn(world)
    assert select == d.SelectVolumeNode(ObjectRef("PersistentVolumeClaim", "ns", "data", "claim-data"), "b")
    assert isinstance(bind, d.Bind)
    assert bind.node == "b"


def test_a_bound_claim_needs_nothing() -> None:
    world = two_zones().add(a_class(), local_volume("pv", "a"), a_claim("data", volume="pv"), using("data", name="p"))
    (bind,) = turn(world)
    assert isinstance(bind, d.Bind)


def test_a_free_volume_is_kept_for_the_claim_that_counted_on_it() -> None:
    world = two_zones().add(
        a_class(provisioner=LOCAL), local_volume("pv", "b"), a_claim("data"), using("data", name="p")
    )
    keep, bind = turn(world)
    assert keep == d.PromiseVolume("pv", ObjectRef("PersistentVolumeClaim", "ns", "data", "claim-data"))
    assert isinstance(bind, d.Bind)
    assert bind.node == "b"


def test_a_gang_asks_for_all_its_volumes_in_one_turn() -> None:
    world = two_zones().add(a_class(), a_gang("g", min_count=3))
    world.add(*(a_claim(f"data-{i}") for i in range(2)))
    world.add(*(using(f"data-{i}", name=f"g-{i}", group="g") for i in range(2)), a_pod("g-2", group="g"))
    decisions = turn(world)
    assert sorted(claim_of(each) for each in decisions if isinstance(each, d.SelectVolumeNode)) == ["data-0", "data-1"]
    assert sum(isinstance(each, d.Bind) for each in decisions) == 3


def test_a_gang_asks_for_nothing_when_one_claim_cannot_be_served() -> None:
    world = two_zones().add(a_class(provisioner=LOCAL), a_gang("g", min_count=2), local_volume("pv", "a"))
    world.add(a_claim("data-0"), a_claim("data-1"))
    world.add(using("data-0", name="g-0", group="g"), using("data-1", name="g-1", group="g"))
    assert turn(world) == []


def test_two_members_keep_two_volumes() -> None:
    world = two_zones().add(
        a_class(provisioner=LOCAL), a_gang("g", min_count=2), local_volume("pv-0", "a"), local_volume("pv-1", "a")
    )
    world.add(a_claim("data-0"), a_claim("data-1"))
    world.add(using("data-0", name="g-0", group="g"), using("data-1", name="g-1", group="g"))
    kept = [each.volume for each in turn(world) if isinstance(each, d.PromiseVolume)]
    assert sorted(kept) == ["pv-0", "pv-1"]


def test_seats_are_held_while_the_volumes_are_made() -> None:
    world = a_world(nodes=[a_node("a", cpu=1)]).add(a_class(), a_claim("data"), using("data", name="p", cpu=1))
    assert len(turn(world)) == 2
    world.add(a_claim("data", annotations={SELECTED_NODE: "a"}), a_pod("late", cpu=1, priority=0, created=9))
    assert turn(world) == []


def test_a_refused_volume_is_asked_for_again_but_not_at_once() -> None:
    world = two_zones().add(a_class(), a_claim("data"), using("data", name="p"))
    decisions = turn(world)
    fail(world, *decisions)
    assert turn(world) == []
    world.now += 1.0
    assert [type(each) for each in turn(world)] == [d.SelectVolumeNode, d.Bind]


def test_a_gang_whose_volumes_fail_gives_all_its_seats_back() -> None:
    world = a_world(nodes=[a_node("a", cpu=2)]).add(a_class(), a_gang("g", min_count=2), a_claim("data"))
    world.add(using("data", name="g-0", group="g", cpu=1), a_pod("g-1", group="g", cpu=1))
    decisions = turn(world)
    assert len(decisions) == 3
    world.add(a_pod("other", cpu=2, created=9))
    assert turn(world) == []
    fail(world, *decisions)
    assert [each for each in turn(world) if isinstance(each, d.Bind) and each.pod.name == "other"]


def test_a_volume_under_way_ties_the_pod_to_its_node() -> None:
    world = two_zones().add(a_class(), a_claim("data", annotations={SELECTED_NODE: "b"}), using("data", name="p"))
    select, bind = turn(world)
    assert isinstance(select, d.SelectVolumeNode)
    assert isinstance(bind, d.Bind)
    assert (select.node, bind.node) == ("b", "b")


def test_pods_that_share_a_claim_agree_on_its_node() -> None:
    world = two_zones().add(a_class(), a_gang("g", min_count=8), a_claim("data"))
    world.add(*(using("data", name=f"g-{i}", group="g", cpu=1) for i in range(8)))
    chosen = {each.node for each in turn(world) if isinstance(each, d.SelectVolumeNode)}
    assert len(chosen) == 1
