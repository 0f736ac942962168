"""Domains: which have room, by sums of seats, and in which order they are tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from muster.scheduler.planning.domains import (
    TopologyDomains,
    capacity_of,
    domain_rank,
    feasible_domains,
    ranked,
    score,
    unbounded_capacity,
)
from muster.scheduler.planning.partial_placement import PartialPlacement
from tests.build.cluster import evaluator_of
from tests.build.objects import RACK, ZONE, a_node, a_pod
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


@contextmanager
def a_placement(scene: Scene) -> Iterator[PartialPlacement]:
    with evaluator_of(scene.cluster).trial() as trial:
        yield PartialPlacement(trial)


def by_name(scene: Scene, key: str, values: np.ndarray) -> dict[str, float]:
    """One value per domain, by the name of the domain."""
    return {scene.cluster.label_value(key, value): float(each) for value, each in enumerate(values) if value}


def test_domains_are_counted_among_the_given_nodes_with_the_label():
    scene = racks(r1=2, r2=1).nodes(a_node("loose"))
    with a_placement(scene) as placement:
        everywhere = TopologyDomains.of(placement, RACK, None)
        without_r2 = np.array([name != "r2-0" for name in scene.cluster.names])
        some = TopologyDomains.of(placement, RACK, without_r2)

    assert (everywhere.count, some.count) == (2, 1)
    assert by_name(scene, RACK, everywhere.sums(np.ones(4, dtype=np.int64))) == {"r1": 2, "r2": 1}
    assert by_name(scene, RACK, some.sums(np.ones(4, dtype=np.int64)))["r1"] == 2


def test_the_capacity_of_a_domain_is_the_sum_of_its_seats_up_to_the_pods():
    scene = racks(r1=2, r2=5)
    gang = scene.uniform("g", 4, min_count=3, topology=RACK)
    with a_placement(scene) as placement:
        found = capacity_of(placement, gang, TopologyDomains.of(placement, RACK, None))

    assert by_name(scene, RACK, found.pods) == {"r1": 2, "r2": 4}
    assert by_name(scene, RACK, found.feasible) == {"r1": False, "r2": True}
    assert by_name(scene, RACK, found.usage[0]) == {"r1": 2000, "r2": 4000}


def test_a_composite_needs_enough_children_that_fit_alone():
    scene = racks(r1=2, r2=3)
    two, three = scene.uniform("two", 2), scene.uniform("three", 3)
    extra = scene.uniform("extra", 1, bound=1, min_count=1)
    with a_placement(scene) as placement:
        domains = TopologyDomains.of(placement, RACK, None)
        both = capacity_of(placement, scene.composite("both", two, three, topology=RACK), domains)
        any_ = capacity_of(placement, scene.composite("any", two, three, extra, min_groups=2, topology=RACK), domains)

    assert by_name(scene, RACK, both.feasible) == {"r1": False, "r2": True}
    assert by_name(scene, RACK, any_.feasible) == {"r1": True, "r2": True}
    assert by_name(scene, RACK, any_.pods) == {"r1": 2 + 1, "r2": 2 + 3 + 1}  # `three` does not count in r1
    assert by_name(scene, RACK, any_.usage[0]) == {"r1": 3000, "r2": 6000}


def test_a_nested_constraint_counts_its_best_inner_domain():
    scene = Scene().nodes(*(a_node(f"a{i}", cpu=1, zone="z1", rack=f"r{i // 2}") for i in range(4)))
    scene.nodes(*(a_node(f"b{i}", cpu=1, zone="z2", rack="r9") for i in range(3)))
    scene.nodes(*(a_node(f"c{i}", cpu=1, zone="z1") for i in range(9)))  # in no rack
    with a_placement(scene) as placement:
        leaf = scene.uniform("g", 3, topology=RACK)
        found = capacity_of(placement, leaf, TopologyDomains.of(placement, ZONE, None))

    assert by_name(scene, ZONE, found.pods) == {"z1": 2, "z2": 3}


def test_a_pinned_group_has_one_feasible_domain_or_none():
    scene = racks(r1=2, r2=2)
    with a_placement(scene) as placement:
        domains = TopologyDomains.of(placement, RACK, None)

        def feasible(*pins: str) -> list[str]:
            gang = scene.uniform("g", 1, bound=len(pins), topology=RACK, domains=pins)
            found = feasible_domains(placement, gang, domains, capacity_of(placement, gang, domains))
            return sorted(scene.cluster.label_value(RACK, int(value)) for value in found)

        assert feasible() == ["r1", "r2"]
        assert feasible("r2") == ["r2"]
        assert feasible("") == []
        assert feasible("gone") == []


def test_a_domain_without_room_for_a_single_pod_is_not_feasible():
    scene = racks(r1=1, r2=1).running(a_pod("busy", node="r1-0"))
    done = scene.uniform("g", 2, bound=1, min_count=1, topology=RACK)  # its minimum holds anywhere
    with a_placement(scene) as placement:
        domains = TopologyDomains.of(placement, RACK, None)
        found = feasible_domains(placement, done, domains, capacity_of(placement, done, domains))

    assert [scene.cluster.label_value(RACK, int(value)) for value in found] == ["r2"]


def test_a_single_feasible_domain_needs_no_score():
    scene = racks(r1=2, r2=1)
    gang = scene.uniform("g", 2, topology=RACK)
    with a_placement(scene) as placement:
        domains = TopologyDomains.of(placement, RACK, None)
        found = ranked(placement, gang, domains, capacity_of(placement, gang, domains))

    assert found == [(0, scene.cluster.label_id(RACK, "r1"))]


def test_resources_that_a_domain_does_not_have_do_not_count_for_its_score():
    scene = Scene().nodes(a_node("a", cpu=4, memory="0", rack="r1"))
    with a_placement(scene) as placement:
        domains = TopologyDomains.of(placement, RACK, None)
        found = score(placement, domains, np.array([1]), np.array([0.0]), np.array([[1000.0], [5.0]]))

    assert found.tolist() == [25]


def test_the_score_is_the_share_of_pods_plus_how_full_the_domain_gets():
    scene = Scene().nodes(a_node("a", cpu=4, memory="4Gi", rack="r1"), a_node("b", cpu=4, memory="4Gi", rack="r2"))
    scene.running(a_pod("busy", cpu=2, memory="1Gi", node="b"))
    gib = 2**30
    with a_placement(scene) as placement:
        domains = TopologyDomains.of(placement, RACK, None)
        values = np.array([scene.cluster.label_id(RACK, name) for name in ("r1", "r2")])
        found = score(placement, domains, values, np.array([2.0, 1.0]), np.array([[2000.0, 1000.0], [gib, gib]]))

    assert found.tolist() == [100 + (50 + 25) // 2, 50 + (75 + 50) // 2]


def test_domains_are_ranked_by_score_and_only_the_best_on_request():
    scene = racks(r1=4, r2=2, r3=2)
    gang = scene.uniform("g", 4, min_count=2, topology=RACK)
    with a_placement(scene) as placement:
        domains = TopologyDomains.of(placement, RACK, None)
        capacity = capacity_of(placement, gang, domains)
        order = ranked(placement, gang, domains, capacity)
        best = ranked(placement, gang, domains, capacity, only_best=True)

    names = [scene.cluster.label_value(RACK, value) for _, value in order]
    assert names[0] == "r1"
    assert [points for points, _ in order] == sorted((points for points, _ in order), reverse=True)
    assert names[1:] == sorted(names[1:], key=lambda name: domain_rank(0, name))
    assert best == order[:1]


def test_bound_members_count_for_the_score():
    scene = racks(r1=4, r2=2)
    with a_placement(scene) as placement:
        domains = TopologyDomains.of(placement, RACK, None)
        few, many = (
            ranked(placement, gang, domains, capacity_of(placement, gang, domains))
            for gang in (scene.uniform("g", 4, bound=b, min_count=b + 2, topology=RACK) for b in (0, 40))
        )

    assert few[0][0] - few[1][0] > many[0][0] - many[1][0]


def test_ties_are_broken_by_the_seed_and_not_by_the_order_of_nodes():
    assert domain_rank(1, "r1") == domain_rank(1, "r1")
    assert len({domain_rank(seed, "r1") for seed in range(5)}) == 5
    assert len({domain_rank(1, f"r{i}") for i in range(5)}) == 5


def test_without_counts_every_domain_is_feasible():
    scene = racks(r1=1, r2=1).running(a_pod("busy", node="r1-0"))
    gang = scene.uniform("g", 9, topology=RACK)
    with a_placement(scene) as placement:
        domains = TopologyDomains.of(placement, RACK, None)
        found = feasible_domains(placement, gang, domains, unbounded_capacity(domains))

    assert len(found) == 2
