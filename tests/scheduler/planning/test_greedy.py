"""Greedy placement: nodes and domains by score, the hardest child first, extras last."""

from __future__ import annotations

import msgspec

from tests.build.objects import RACK, a_node, a_pod, apart
from tests.build.planning import Scene, racks, slots


def test_a_large_member_that_comes_last_finds_its_node():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    gang = scene.gang("mix", *(a_pod(f"small{i}") for i in range(4)), a_pod("large", cpu=4))

    assert scene.plan(gang).seats_of("mix") == 5


def test_a_minimum_may_be_reached_with_other_members_than_the_first():
    scene = Scene().nodes(a_node("n0", cpu=2))
    gang = scene.gang("mix", a_pod("huge", cpu=8), a_pod("a", cpu=1), a_pod("b", cpu=1), min_count=2)

    assert set(scene.plan(gang).nodes_of("mix")) == {"a", "b"}


def test_members_that_repel_each_other_get_a_node_each():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=8) for i in range(3)))
    rule = apart("kubernetes.io/hostname", job="apart")
    gang = scene.gang("apart", *(a_pod(f"z{i}", labels={"job": "apart"}, affinity=rule) for i in range(3)))

    assert len(set(scene.plan(gang).nodes_of("apart").values())) == 3


def test_extras_of_one_child_never_starve_a_sibling():
    scene = slots(5)

    result = scene.plan(scene.composite("root", scene.uniform("greedy", 4, min_count=2), scene.uniform("exact", 3)))

    assert (result.seats_of("greedy"), result.seats_of("exact")) == (2, 3)


def test_children_beyond_the_minimum_come_before_extra_members():
    scene = slots(5)
    first, second = scene.uniform("first", 4, min_count=2), scene.uniform("second", 3)

    result = scene.plan(scene.composite("root", first, second, min_groups=1))

    assert (result.seats_of("first"), result.seats_of("second")) == (2, 3)


def test_small_pods_leave_the_large_node_to_the_sibling_that_needs_it():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=2) for i in range(3)), a_node("wide", cpu=3, labels={"kind": "wide"}))
    picky = scene.gang("b", a_pod("b0", cpu=3, nodeSelector={"kind": "wide"}))

    result = scene.plan(scene.composite("root", scene.uniform("a", 5), picky))

    assert result.nodes_of("b") == {"b0": "wide"}
    assert "wide" not in result.nodes_of("a").values()


def test_of_children_that_compete_the_one_with_the_higher_priority_runs():
    scene = slots(3)
    low, high = scene.uniform("low", 2), scene.uniform("high", 3)
    high = high.with_members(tuple(msgspec.structs.replace(member, priority=10) for member in high.members))

    result = scene.plan(scene.composite("bag", low, high, min_groups=1))

    assert (result.seats_of("low"), result.seats_of("high")) == (0, 3)


def test_a_domain_with_room_for_the_extras_beats_one_without():
    scene = racks(r1=3, r2=5)

    result = scene.plan(scene.uniform("g", 5, min_count=3, topology=RACK))

    assert result.values_of("g", RACK) == {"r2"}
    assert result.seats_of("g") == 5


def test_running_members_fix_the_rack_of_later_ones():
    scene = racks(small=3, large=6).running(a_pod("founder", cpu=1, node="small-0"))

    result = scene.plan(scene.uniform("club", 3, bound=1, min_count=1, topology=RACK, domains=("small",)))

    assert result.values_of("club", RACK) == {"small"}
    assert result.seats_of("club") == 2


def test_a_basic_group_keeps_to_one_rack():
    scene = racks(r1=3, r2=3)

    result = scene.plan(scene.uniform("pool", 5, min_count=1, topology=RACK))

    assert result.seats_of("pool") == 3
    assert len(result.values_of("pool", RACK)) == 1


def test_the_constraint_of_a_parent_binds_its_children_to_one_domain():
    scene = racks(r1=3, r2=4, r3=2)

    result = scene.plan(scene.composite("root", scene.uniform("p", 2), scene.uniform("q", 2), topology=RACK))

    assert result.values_of("p", RACK) == result.values_of("q", RACK) == {"r2"}
