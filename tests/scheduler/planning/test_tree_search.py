"""The tree search: domains and children that only fit together in one arrangement."""

from __future__ import annotations

import pytest

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.budget import Budget, Pausing, run_to_end
from muster.scheduler.placement.request import CompositeRequest, GroupRequest
from muster.scheduler.placement.verdict import Infeasible
from muster.scheduler.planning import tree_search
from muster.scheduler.planning.exact import BudgetSpent
from muster.scheduler.planning.node_matrix import NodeMatrix
from muster.scheduler.planning.tree_search import Found, NotFound, TreeSearch
from tests.build.matrices import a_leaf, a_matrix
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


def a_composite(name: str, need: int, *children: GroupRequest, topology: str = "") -> CompositeRequest:
    return CompositeRequest(EntityKey("CompositePodGroup", "ns", name), need, children, topology)


def solve(matrix: NodeMatrix, request: GroupRequest, steps: int = 2000) -> Found | NotFound:
    return run_to_end(TreeSearch(matrix, Budget(steps)).solve(request, matrix.everywhere()))


def found(matrix: NodeMatrix, request: GroupRequest, steps: int = 2000) -> Found:
    answer = solve(matrix, request, steps)
    assert isinstance(answer, Found), answer
    return answer


def placed(answer: Found) -> dict[str, dict[int, int]]:
    """How many pods of each PodGroup are on each node."""
    counts: dict[str, dict[int, int]] = {}
    for packed in answer.packed:
        of_group = counts.setdefault(packed.pods.members[0].uid.split("-")[0], {})
        for node, count in zip(packed.nodes.tolist(), packed.counts.tolist(), strict=True):
            of_group[node] = of_group.get(node, 0) + count
    return counts


def test_a_placement_names_the_domains_and_every_group_that_it_satisfies():
    matrix = a_matrix([[2, 1, 1, 1]], [[1]], rack=[1, 1, 2, 2])
    three, two = a_leaf("three", 3, "rack", s0=3), a_leaf("two", 2, "rack", s0=2)
    root = a_composite("root", 2, two, three)

    answer = found(matrix, root)

    assert {group.key.name: value for group, value in answer.domains} == {"three": 1, "two": 2}
    assert [group.key.name for group in answer.satisfied] == ["two", "three", "root"]
    assert {name: sum(nodes.values()) for name, nodes in placed(answer).items()} == {"three": 3, "two": 2}
    assert set(placed(answer)["three"]) <= {0, 1}


def test_what_counting_alone_refutes_is_said_so_and_costs_nothing():
    matrix = a_matrix([[2, 2]], [[1]], rack=[1, 2])
    search = TreeSearch(matrix, Budget(100))

    answer = run_to_end(search.solve(a_leaf("g", 3, "rack", s0=3), matrix.everywhere()))

    assert answer == NotFound(complete=True, counted=True)
    assert search.budget.spent == 0


def test_groups_that_do_not_fit_together_anywhere_are_refuted_before_domains_are_tried():
    matrix = a_matrix([[4, 4]], [[3], [2]], rack=[1, 2])
    root = a_composite(
        "root", 3, *(a_leaf(f"g{i}", 1, "rack", **{shape: 1}) for i, shape in enumerate(("s0", "s0", "s1")))
    )

    answer = solve(matrix, root)

    assert isinstance(answer, NotFound)
    assert (answer.complete, answer.counted, answer.tried_domains) == (True, False, 0)
    assert answer.certificate is not None
    assert answer.relaxed, "the certificate holds whatever the domains"


def test_a_certificate_is_kept_for_the_proof():
    matrix = a_matrix([[4, 4]], [[3], [2]])

    answer = solve(matrix, a_leaf("g", 3, s0=2, s1=1))

    assert isinstance(answer, NotFound)
    assert answer.complete
    assert answer.certificate is not None
    assert answer.certificate[1].required > answer.certificate[1].available


def test_children_are_chosen_so_that_the_others_fit():
    matrix = a_matrix([[3, 3]], [[1], [2]])
    root = a_composite("root", 2, a_leaf("large", 3, s1=3), a_leaf("a", 3, s0=3), a_leaf("b", 2, s0=2))

    answer = found(matrix, root)

    assert set(placed(answer)) == {"a", "b"}
    assert [group.key.name for group in answer.satisfied] == ["a", "b", "root"]


def test_a_child_that_does_not_fit_alone_is_not_chosen():
    matrix = a_matrix([[4, 4]], [[1], [9]])
    root = a_composite("root", 1, a_leaf("huge", 1, s1=1), a_leaf("fits", 8, s0=8))

    assert set(placed(found(matrix, root))) == {"fits"}
    assert solve(matrix, a_composite("both", 2, *root.children)) == NotFound(complete=True, counted=True)


def test_a_pinned_group_uses_its_domain_or_none():
    matrix = a_matrix([[1, 9]], [[1]], rack=[1, 2])

    assert placed(found(matrix, a_leaf("g", 1, s0=1).with_topology("rack", ("1",)))) == {"g": {0: 1}}
    assert isinstance(solve(matrix, a_leaf("g", 2, s0=2).with_topology("rack", ("1",))), NotFound)
    assert isinstance(solve(matrix, a_leaf("g", 1, s0=1).with_topology("rack", ("7",))), NotFound)


def test_inner_domains_are_those_of_the_outer_one():
    matrix = a_matrix([[1, 1, 1, 1]], [[1]], zone=[1, 1, 2, 2], rack=[1, 2, 3, 3])
    root = a_composite("root", 1, a_leaf("g", 2, "rack", s0=2), topology="zone")

    assert placed(found(matrix, root)) == {"g": {2: 1, 3: 1}}


def test_domains_are_tried_tightest_first():
    matrix = a_matrix([[9, 2, 3]], [[1]], rack=[1, 2, 3])
    root = a_composite("root", 2, a_leaf("a", 2, "rack", s0=2), a_leaf("b", 3, "rack", s0=3))

    answer = found(matrix, root)

    assert placed(answer) == {"a": {1: 2}, "b": {2: 3}}


def test_a_search_whose_budget_ends_claims_nothing():
    matrix = a_matrix([[7, 6, 5]], [[1]], rack=[1, 2, 3])
    sizes = (4, 3, 3, 3, 2, 3)
    tree = a_composite("root", 6, *(a_leaf(f"g{i}", size, "rack", s0=size) for i, size in enumerate(sizes)))
    assert isinstance(solve(matrix, tree), Found)

    answer = solve(matrix, tree, steps=4)

    assert isinstance(answer, NotFound)
    assert not answer.complete


def test_equal_groups_and_symmetric_domains_are_tried_once():
    def steps(racks: int) -> int:
        matrix = a_matrix([[4] * racks], [[1]], rack=list(range(1, racks + 1)))
        groups = [a_leaf(f"g{i}", 3, "rack", s0=3) for i in range(racks)]
        search = TreeSearch(matrix, Budget(100_000))
        root = a_composite("root", racks + 1, *groups, a_leaf("two", 2, "rack", s0=2))
        answer = run_to_end(search.solve(root, matrix.everywhere()))
        assert isinstance(answer, NotFound)
        assert answer.complete
        return search.budget.spent

    assert steps(7) < 200


@pytest.mark.parametrize("need", [1, 2])
def test_equal_children_are_one_alternative(need: int):
    matrix = a_matrix([[1, 1]], [[2], [1]], rack=[1, 2])
    matrix.requests[0, 0] = 1
    small = [a_leaf(f"s{i}", 1, "rack", s1=1) for i in range(6)]
    root = a_composite("root", need, *small)

    assert len(placed(found(matrix, root, steps=60))) == need


def test_a_search_says_how_many_domains_it_tried():
    matrix = a_matrix([[4, 4, 4]], [[1]], rack=[1, 2, 3])
    groups = [a_leaf(f"g{i}", 3, "rack", s0=3) for i in range(3)]

    answer = solve(matrix, a_composite("root", 4, *groups, a_leaf("two", 2, "rack", s0=2)))

    assert isinstance(answer, NotFound)
    assert (answer.complete, answer.counted) == (True, False)
    assert answer.tried_domains > 0


def test_the_group_with_the_fewest_alternatives_is_decided_first():
    matrix = a_matrix([[2, 4, 4]], [[1]], rack=[1, 2, 3])
    search = TreeSearch(matrix, Budget(2000))
    few, many = a_leaf("few", 3, "rack", s0=3), a_leaf("many", 1, "rack", s0=1)
    choice = a_composite("choice", 1, *(a_leaf(f"c{i}", 1, s0=1) for i in range(4)))
    everywhere = matrix.everywhere()

    assert search._alternatives((few, everywhere, False)) < search._alternatives((many, everywhere, False))
    assert search._alternatives((few, everywhere, True))[0] == 1
    assert search._alternatives((choice, everywhere, False))[0] == 5
    assert search._alternatives((few, everywhere, False))[1] < search._alternatives((many, everywhere, False))[1]


def test_one_hard_corner_gets_half_of_the_steps_that_are_left(monkeypatch: pytest.MonkeyPatch):
    given: list[int] = []

    def recorded(instance: object, budget: Budget) -> Pausing[BudgetSpent]:
        given.append(budget.limit)
        yield
        return BudgetSpent()

    monkeypatch.setattr(tree_search, "decide", recorded)
    search = TreeSearch(a_matrix([[4, 4]], [[3], [2]]), Budget(1000))

    answer = run_to_end(search.solve(a_leaf("g", 3, s0=2, s1=1), search.matrix.everywhere()))

    assert isinstance(answer, NotFound)
    assert not answer.complete
    (limit,) = given
    assert 400 < limit < 500
