"""The tree search: domains and children that only fit together in one arrangement."""

from __future__ import annotations

from muster.scheduler.placement.verdict import Infeasible
from tests.build.objects import BLOCK, RACK, ZONE, a_node, a_pod
from tests.build.planning import Scene, racks


def kep_example(block_b: bool) -> Scene:
    scene = Scene()
    sizes = {("block-A", "rack-A1"): 3, ("block-A", "rack-A2"): 5}
    if block_b:
        sizes |= {("block-B", "rack-B1"): 5, ("block-B", "rack-B2"): 5}
    for (block, rack), count in sizes.items():
        scene.nodes(*(a_node(f"{rack}-{i}", cpu=1, block=block, rack=rack) for i in range(count)))
    return scene


def test_only_an_uneven_split_of_two_resources_works():
    scene = Scene().nodes(a_node("n0", cpu=5, memory="5Gi"), a_node("n1", cpu=5, memory="5Gi"))
    thin = [a_pod(f"thin{i}", cpu=1, memory="2Gi") for i in range(2)]
    wide = [a_pod(f"wide{i}", cpu=2, memory="1Gi") for i in range(4)]

    assert scene.plan(scene.gang("mix", *wide, *thin)).seats_of("mix") == 6


def test_zone_then_rack():
    scene = Scene().nodes(*(a_node(f"e{i}", cpu=1, zone="east", rack=f"e{i // 2}") for i in range(6)))
    scene.nodes(*(a_node(f"w{i}", cpu=1, zone="west", rack="w0") for i in range(3)))
    scene.nodes(*(a_node(f"v{i}", cpu=1, zone="west", rack="w1") for i in range(2)))
    tree = scene.composite(
        "root", scene.uniform("three", 3, topology=RACK), scene.uniform("two", 2, topology=RACK), topology=ZONE
    )

    result = scene.plan(tree)

    assert (result.values_of("three", RACK), result.values_of("two", RACK)) == ({"w0"}, {"w1"})


def test_zone_block_and_rack():
    scene = Scene().nodes(*(a_node(f"p{i}", cpu=1, zone="north", block="nb0", rack=f"nr{i // 2}") for i in range(4)))
    scene.nodes(*(a_node(f"q{i}", cpu=1, zone="south", block="sb0", rack=f"sr{i // 2}") for i in range(4)))
    scene.nodes(*(a_node(f"s{i}", cpu=1, zone="south", block="sb1", rack="sr2") for i in range(2)))
    trainers = [scene.uniform(f"t{i}", 2, topology=RACK) for i in range(2)]
    tree = scene.composite(
        "root",
        scene.composite("trainers", *trainers, topology=BLOCK),
        scene.composite("servers", scene.uniform("v0", 2, topology=RACK), topology=BLOCK),
        topology=ZONE,
    )

    result = scene.plan(tree)

    assert result.values_of("t0", BLOCK) == result.values_of("t1", BLOCK) == {"sb0"}
    assert result.values_of("v0", RACK) == {"sr2"}


def test_equal_values_in_different_zones_are_told_apart_by_the_parent():
    scene = Scene()
    for zone in ("z1", "z2"):
        scene.nodes(*(a_node(f"{zone}-{i}", cpu=1, zone=zone, rack="rack-1") for i in range(2)))

    assert scene.plan(scene.uniform("four", 4, topology=RACK)).placed
    nested = scene.composite("root", scene.uniform("nested", 4, topology=RACK), topology=ZONE)
    assert isinstance(scene.plan(nested).verdict, Infeasible)


def test_the_worked_example_lands_on_block_b():
    scene = kep_example(block_b=True)
    tree = scene.composite(
        "cpg-root", scene.uniform("pg-1", 5, topology=RACK), scene.uniform("pg-2", 5, topology=RACK), topology=BLOCK
    )

    result = scene.plan(tree)

    assert result.values_of("pg-1", BLOCK) == result.values_of("pg-2", BLOCK) == {"block-B"}
    assert result.values_of("pg-1", RACK) | result.values_of("pg-2", RACK) == {"rack-B1", "rack-B2"}


def test_a_smaller_first_child_leaves_the_larger_rack_to_its_sibling():
    scene = kep_example(block_b=False)
    tree = scene.composite(
        "cpg-root", scene.uniform("pg-1", 3, topology=RACK), scene.uniform("pg-2", 5, topology=RACK), topology=BLOCK
    )

    result = scene.plan(tree)

    assert (result.values_of("pg-1", RACK), result.values_of("pg-2", RACK)) == ({"rack-A1"}, {"rack-A2"})


def test_the_fuller_rack_is_left_to_the_sibling_that_fits_nowhere_else():
    scene = racks(r1=9, r2=4).running(*(a_pod(f"busy{i}", cpu=1, node=f"r1-{i}") for i in range(4)))
    tree = scene.composite(
        "root", scene.uniform("small", 3, topology=RACK), scene.uniform("large", 5, topology=RACK), topology=BLOCK
    )

    result = scene.plan(tree)

    assert (result.values_of("small", RACK), result.values_of("large", RACK)) == ({"r2"}, {"r1"})


def test_gangs_that_fill_racks_only_in_one_arrangement_are_arranged():
    scene = racks(r1=7, r2=6, r3=5)
    sizes = (4, 3, 3, 3, 2, 3)
    tree = scene.composite("root", *(scene.uniform(f"g{i}", size, topology=RACK) for i, size in enumerate(sizes)))

    assert len(scene.plan(tree).verdict.assignments) == sum(sizes)


def test_mixed_gangs_in_racks_use_a_rack_that_packs():
    scene = Scene()
    scene.nodes(*(a_node(f"a{i}", cpu=3, rack="r1") for i in range(4)))
    scene.nodes(*(a_node(f"b{i}", cpu=4, rack="r2") for i in range(3)))
    gang = scene.gang("mix", a_pod("l", cpu=3), *(a_pod(f"m{i}", cpu=2) for i in range(4)), topology=RACK)

    assert scene.plan(gang).values_of("mix", RACK) == {"r2"}
