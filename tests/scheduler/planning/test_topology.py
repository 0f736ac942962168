"""Topology: one domain for each constrained group, nested, pinned by bound members, chosen by score."""

from muster.scheduler.placement.verdict import ExhaustionProof, Infeasible
from tests.build.objects import BLOCK, RACK, ZONE, a_node, a_pod
from tests.build.planning import Scene


def racks(**sizes: int) -> Scene:
    """Nodes of one cpu, so many in each rack."""
    scene = Scene()
    for rack, count in sizes.items():
        scene.nodes(*(a_node(f"{rack}-{i}", cpu=1, rack=rack, block="b0") for i in range(count)))
    return scene


def test_a_constrained_gang_stays_in_one_rack():
    scene = racks(r1=2, r2=4, r3=2)

    assert scene.plan(scene.uniform("tight", 4, topology=RACK)).values_of("tight", RACK) == {"r2"}


def test_room_in_several_racks_does_not_help():
    scene = racks(r1=3, r2=3).nodes(*(a_node(f"u{i}", cpu=1) for i in range(4)))

    verdict = scene.plan(scene.uniform("tight", 4, topology=RACK)).verdict

    assert isinstance(verdict, Infeasible)
    assert {short.domain for short in verdict.proof.shortages} == {"r1", "r2"}
    assert {(short.seats, short.needed) for short in verdict.proof.shortages} == {(3, 4)}


def test_the_nearest_domain_says_what_it_lacks_and_where():
    scene = Scene()
    for i in range(16):
        scene.nodes(a_node(f"n{i}", cpu=32, rack="r3", extended={"nvidia.com/gpu": 8}))
    scene.running(*(a_pod(f"busy{i}", cpu=1, requests={"nvidia.com/gpu": 8}, node=f"n{i}") for i in range(2)))
    scene.nodes(a_node("small", cpu=32, rack="r4", extended={"nvidia.com/gpu": 8}))

    verdict = scene.plan(scene.uniform("train", 16, requests={"nvidia.com/gpu": 8}, topology=RACK)).verdict

    assert isinstance(verdict, Infeasible)
    near = verdict.proof.shortages[0]
    assert (near.domain, near.seats, near.needed) == ("r3", 14, 16)
    assert near.lacking == (("nvidia.com/gpu", 16),)
    assert near.nodes == 2


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


def test_members_in_two_domains_are_a_clear_fault_of_that_group_only():
    scene = racks(r1=3, r2=3)
    torn = scene.uniform("torn", 2, bound=2, min_count=4, topology=RACK, domains=("r1", "r2"))

    alone = scene.plan(torn).verdict
    beside = scene.plan(scene.composite("root", torn, scene.uniform("fine", 2), min_groups=1))

    assert isinstance(alone, Infeasible)
    assert "r1, r2" in alone.proof.shortages[0].lacking[0][0]
    assert beside.seats_of("fine") == 2


def test_a_basic_group_keeps_to_one_rack():
    scene = racks(r1=3, r2=3)

    result = scene.plan(scene.uniform("pool", 5, min_count=1, topology=RACK))

    assert result.seats_of("pool") == 3
    assert len(result.values_of("pool", RACK)) == 1


def test_the_constraint_of_a_parent_binds_its_children_to_one_domain():
    scene = racks(r1=3, r2=4, r3=2)

    result = scene.plan(scene.composite("root", scene.uniform("p", 2), scene.uniform("q", 2), topology=RACK))

    assert result.values_of("p", RACK) == result.values_of("q", RACK) == {"r2"}


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


def kep_example(block_b: bool) -> Scene:
    scene = Scene()
    sizes = {("block-A", "rack-A1"): 3, ("block-A", "rack-A2"): 5}
    if block_b:
        sizes |= {("block-B", "rack-B1"): 5, ("block-B", "rack-B2"): 5}
    for (block, rack), count in sizes.items():
        scene.nodes(*(a_node(f"{rack}-{i}", cpu=1, block=block, rack=rack) for i in range(count)))
    return scene


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


def test_one_gang_too_many_for_the_racks_is_proven():
    scene = racks(r1=5, r2=5, r3=4)
    tree = scene.composite("root", *(scene.uniform(f"g{i}", 3, topology=RACK) for i in range(4)))

    verdict = scene.plan(tree).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, ExhaustionProof)


def test_sixty_gangs_for_fifty_racks_are_refuted_at_once():
    scene = Scene()
    for rack in range(50):
        scene.nodes(*(a_node(f"r{rack}-{i}", cpu=4, rack=f"r{rack}") for i in range(2)))
    tree = scene.composite("root", *(scene.uniform(f"g{i}", 5, topology=RACK) for i in range(60)))

    verdict = scene.plan(tree).verdict

    assert isinstance(verdict, Infeasible)
    assert verdict.steps < 1000


def test_mixed_gangs_in_racks_use_a_rack_that_packs():
    scene = Scene()
    scene.nodes(*(a_node(f"a{i}", cpu=3, rack="r1") for i in range(4)))
    scene.nodes(*(a_node(f"b{i}", cpu=4, rack="r2") for i in range(3)))
    gang = scene.gang("mix", a_pod("l", cpu=3), *(a_pod(f"m{i}", cpu=2) for i in range(4)), topology=RACK)

    assert scene.plan(gang).values_of("mix", RACK) == {"r2"}
