"""What a request lacks, where it came nearest, and the proof that there is no placement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.verdict import CountingProof, ExhaustionProof, Infeasible, Shortage, WeightProof
from muster.scheduler.planning.greedy import Greedy
from muster.scheduler.planning.partial_placement import PartialPlacement
from muster.scheduler.planning.shortages import MOST_CHILDREN, NEAREST, ShortageFinder, excluded
from muster.scheduler.planning.tree_search import NotFound
from tests.build.cluster import evaluator_of
from tests.build.objects import BLOCK, RACK, ZONE, a_node, a_pod, apart
from tests.build.planning import Scene, racks, slots


def test_a_gang_that_lacks_one_seat_is_refused_by_counting():
    scene = slots(5)

    verdict = scene.plan(scene.uniform("six", 6)).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, CountingProof)
    (short,) = verdict.proof.shortages
    assert (short.seats, short.needed) == (5, 6)
    assert ("cpu", 1000) in short.lacking


def test_shapes_that_fit_alone_but_not_together_are_refused_by_weighing():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    gang = scene.gang("mix", a_pod("a", cpu=3), a_pod("b", cpu=3), a_pod("c", cpu=2))

    verdict = scene.plan(gang).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, WeightProof)
    assert verdict.proof.required > verdict.proof.available


def test_members_that_repel_each_other_on_too_few_nodes_are_refused_by_counting():
    scene = Scene().nodes(*(a_node(f"n{i}", cpu=8) for i in range(2)))
    rule = apart("kubernetes.io/hostname", job="apart")
    gang = scene.gang("apart", *(a_pod(f"z{i}", labels={"job": "apart"}, affinity=rule) for i in range(3)))

    verdict = scene.plan(gang).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, CountingProof)


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


def test_what_is_short_is_told_for_the_group_that_lacks_it():
    scene = slots(5)

    verdict = scene.plan(scene.composite("pair", scene.uniform("l", 3), scene.uniform("r", 3))).verdict

    assert isinstance(verdict, Infeasible)
    short = {shortage.group.name: (shortage.seats, shortage.needed) for shortage in verdict.proof.shortages}
    assert (2, 3) in short.values()
    assert short["pair"] == (1, 2)


@contextmanager
def a_finder(scene: Scene) -> Iterator[ShortageFinder]:
    with evaluator_of(scene.cluster).trial() as trial:
        yield ShortageFinder(Greedy(PartialPlacement(trial), Budget(100)))


def of_groups(shortages: tuple[Shortage, ...]) -> list[tuple[str, int, int]]:
    return [(short.group.name, short.seats, short.needed) for short in shortages]


def test_finding_shortages_leaves_the_placement_as_it_was():
    scene = racks(r1=2, r2=2)
    tree = scene.composite("root", scene.uniform("a", 2, topology=RACK), scene.uniform("b", 3, topology=RACK))
    before = scene.cluster.used.copy()
    with a_finder(scene) as finder:
        assert finder.shortages(tree, None)
        assert finder.placement.count == 0
        assert (scene.cluster.used == before).all()


def test_only_some_of_many_children_are_described():
    scene = slots(1)
    tree = scene.composite("root", *(scene.uniform(f"g{i}", 2) for i in range(3 * MOST_CHILDREN)))
    with a_finder(scene) as finder:
        found = finder.shortages(tree, None)

    assert len({short.group for short in found}) == MOST_CHILDREN + 1


def test_the_nearest_domains_come_first_and_not_more_than_a_few():
    scene = racks(**{f"r{i}": 1 + (i == 3) for i in range(8)})
    with a_finder(scene) as finder:
        found = finder.shortages(scene.uniform("g", 4, topology=RACK), None)

    assert (found[0].domain, found[0].seats) == ("r3", 2)
    assert len(found) == NEAREST
    assert {short.topology for short in found} == {RACK}


def test_a_key_that_no_node_has_is_named():
    scene = slots(2)
    with a_finder(scene) as finder:
        (leaf,) = finder.shortages(scene.uniform("g", 1, topology=RACK), None)
        *_, parent = finder.shortages(scene.composite("root", scene.uniform("g", 1), topology=ZONE), None)

    assert leaf.lacking == ((f"nodes with the label {RACK}", 0),)
    assert parent.lacking == ((f"nodes with the label {ZONE}", 0),)


def test_a_pinned_group_lacks_something_in_its_domain_only():
    scene = racks(r1=1, r2=9)
    with a_finder(scene) as finder:
        found = finder.shortages(scene.uniform("g", 3, bound=1, min_count=4, topology=RACK, domains=("r1",)), None)

    assert [(short.domain, short.seats) for short in found] == [("r1", 1)]


def test_siblings_are_placed_before_it_is_said_what_is_left():
    scene = slots(4)
    with a_finder(scene) as finder:
        found = finder.shortages(scene.composite("root", scene.uniform("a", 3), scene.uniform("b", 3)), None)

    assert len(found) == 2
    assert found[0].seats == 1
    assert of_groups(found)[1] == ("root", 1, 2)
    assert found[1].lacking == (("children", 1),)


def test_a_shortage_inside_a_domain_names_the_domain():
    scene = racks(r1=2)
    with a_finder(scene) as finder:
        found = finder.shortages(scene.composite("root", scene.uniform("g", 3), topology=BLOCK), None)

    assert of_groups(found) == [("g", 2, 3), ("root", 0, 1)]
    assert (found[0].within, found[1].within) == ((BLOCK, "b0"), ("", ""))
    assert (found[1].topology, found[1].domain) == (BLOCK, "b0")


def test_what_is_short_of_mixed_pods_is_what_the_unplaced_ones_request():
    scene = Scene().nodes(a_node("n0", cpu=4, memory="2Gi"), a_node("n1", cpu=4, memory="10Gi"))
    gang = scene.gang("g", a_pod("thin", cpu=1), a_pod("fat", cpu=1, memory="9Gi"), a_pod("fat2", cpu=1, memory="9Gi"))
    with a_finder(scene) as finder:
        (short,) = finder.shortages(gang, None)

    assert (short.seats, short.needed) == (2, 3)
    assert short.lacking == (("memory", 9 * 2**30),)
    assert short.nodes == 1


def test_the_amount_short_is_that_of_all_missing_pods():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    with a_finder(scene) as finder:
        (short,) = finder.shortages(scene.uniform("g", 5, cpu=3), None)

    assert (short.seats, short.lacking, short.nodes) == (2, (("cpu", 9000),), 0)
    scene.running(a_pod("busy", cpu=2, node="n0"))
    with a_finder(scene) as finder:
        (short,) = finder.shortages(scene.uniform("h", 5, cpu=3), None)
    assert (short.seats, short.nodes) == (1, 1)  # only n0 has no seat now


def test_where_room_is_not_what_is_missing_the_rejecting_rules_are_named():
    scene = slots(2)
    with a_finder(scene) as finder:
        (short,) = finder.shortages(scene.uniform("g", 1, nodeSelector={"disk": "fast"}), None)

    assert short.seats == 0
    assert short.nodes == 0
    ((reason, nodes),) = short.lacking
    assert "selector" in reason
    assert nodes == 2


def test_a_group_without_pending_pods_lacks_them():
    scene = slots(2)
    with a_finder(scene) as finder:
        (short,) = finder.shortages(scene.uniform("g", 0, bound=1, min_count=1), None)

    assert short.lacking == (("pending members", 0),)
    assert short.needed == 1


def test_a_group_is_excluded_for_too_few_members_children_or_domains_in_use():
    scene = slots(1)
    few = scene.uniform("few", 2, bound=1, min_count=4)
    torn = scene.uniform("torn", 3, bound=2, min_count=4, topology=RACK, domains=("r1", "r2", "r1"))
    parent = scene.composite("parent", few, torn, scene.uniform("fine", 1), min_groups=2)

    (members,), (domains,), (children,) = (list(excluded(group)) for group in (few, torn, parent))

    assert (members.seats, members.needed, members.lacking) == (3, 4, (("members", 1),))
    assert domains.lacking == (("one domain: members run in r1, r2 already", 0),)
    assert (children.seats, children.needed, children.lacking) == (1, 2, (("children", 1),))
    assert list(excluded(scene.uniform("fine", 1))) == []


def test_an_inadmissible_tree_is_proven_by_its_inadmissible_children():
    scene = slots(9)
    few = scene.uniform("few", 1, min_count=4)
    with a_finder(scene) as finder:
        proof = finder.inadmissible(scene.composite("root", few, scene.uniform("fine", 1)))

    assert proof.shortages[0].lacking == (("children", 1),)
    assert [child.group.name for child in proof.children] == ["few"]


def test_a_counting_proof_names_the_children_that_do_not_fit_alone():
    scene = slots(4)
    tree = scene.composite("root", scene.uniform("fits", 4), scene.uniform("not", 5))
    with a_finder(scene) as finder:
        proof = finder.proof(tree, None, NotFound(True, counted=True), (), 0)

    assert isinstance(proof, CountingProof)
    assert [child.group.name for child in proof.children] == ["not"]
    assert [short.group.name for short in proof.shortages] == ["root"]


def test_a_counting_proof_goes_into_the_nearest_domain():
    scene = racks(r1=2, r2=3)
    tree = scene.composite("root", scene.uniform("a", 3), scene.uniform("b", 4), topology=RACK)
    with a_finder(scene) as finder:
        proof = finder.proof(tree, None, NotFound(True, counted=True), (), 0)

    assert isinstance(proof, CountingProof)
    (child,) = proof.children
    assert (child.group.name, child.shortages[0].within) == ("b", (RACK, "r2"))
    assert (child.shortages[0].seats, child.shortages[0].needed) == (3, 4)


def test_a_search_without_a_certificate_is_proven_by_exhaustion():
    scene = slots(4)
    tree = scene.composite("root", scene.uniform("a", 3), scene.gang("b", a_pod("b0"), a_pod("b1", cpu=2)))
    with a_finder(scene) as finder:
        proof = finder.proof(tree, None, NotFound(True, classes=3), (), 77)

    assert isinstance(proof, ExhaustionProof)
    assert (proof.node_classes, proof.shapes, proof.steps) == (3, 2, 77)


def test_a_certificate_is_no_proof_where_children_or_domains_can_be_chosen():
    scene = Scene().nodes(a_node("n0", cpu=4), a_node("n1", cpu=4))
    mixed = scene.gang("mix", a_pod("a", cpu=3), a_pod("b", cpu=3), a_pod("c", cpu=2))
    large = scene.gang("large", a_pod("d", cpu=3), a_pod("e", cpu=3), a_pod("f", cpu=2))

    verdict = scene.plan(scene.composite("root", mixed, large, min_groups=1)).verdict

    assert isinstance(verdict, Infeasible)
    assert isinstance(verdict.proof, ExhaustionProof)


def test_one_proof_for_a_satisfied_request_holds_all_that_could_be_added():
    scene = slots(1)
    key = scene.uniform("root", 1).key
    shorts = [Shortage(key, "", f"d{i}", 0, 1) for i in range(8)]
    counting = [CountingProof(key, (short,)) for short in shorts]
    search = ExhaustionProof(key, 1, 1, 30, (shorts[0],))
    with a_finder(scene) as finder:
        request = scene.uniform("root", 1)
        assert finder.nothing_new(request, counting[:1]) is counting[0]
        together = finder.nothing_new(request, counting)
        mixed = finder.nothing_new(request, [*counting[:2], search, search])

    assert isinstance(together, CountingProof)
    assert (together.children, len(together.shortages)) == (tuple(counting), NEAREST)
    assert isinstance(mixed, ExhaustionProof)
    assert (mixed.steps, len(mixed.shortages)) == (60, 4)
