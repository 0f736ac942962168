"""Domains: which have room, by sums of seats, and in which order they are tried."""

from __future__ import annotations

from tests.build.objects import RACK, a_node, a_pod
from tests.build.planning import Scene, racks


def test_a_constrained_gang_stays_in_one_rack():
    scene = racks(r1=2, r2=4, r3=2)

    assert scene.plan(scene.uniform("tight", 4, topology=RACK)).values_of("tight", RACK) == {"r2"}


def test_a_smaller_rack_that_fills_up_more_is_preferred():
    scene = Scene().nodes(*(a_node(f"a{i}", cpu=2, rack="rack1") for i in range(2)))
    scene.nodes(*(a_node(f"b{i}", cpu=2, rack="rack2") for i in range(3)))

    assert scene.plan(scene.uniform("g", 3, topology=RACK)).values_of("g", RACK) == {"rack1"}


def test_a_rack_that_is_fuller_already_is_preferred():
    scene = Scene().nodes(*(a_node(f"a{i}", cpu=2, rack="rack1") for i in range(2)))
    scene.nodes(*(a_node(f"b{i}", cpu=2, rack="rack2") for i in range(3)))
    scene.nodes(*(a_node(f"c{i}", cpu=2, rack="rack3") for i in range(3)))
    scene.running(a_pod("x", cpu=1, node="b0"), a_pod("y", cpu=1, node="b1"), a_pod("z", cpu=1, node="c0"))

    assert scene.plan(scene.uniform("g", 3, topology=RACK)).values_of("g", RACK) == {"rack2"}
