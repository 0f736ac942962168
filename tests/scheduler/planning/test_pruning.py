"""What the tree search need not try: symmetric domains, and states beyond the domain bounds."""

from __future__ import annotations

import numpy as np
import pytest

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import CompositeRequest, GroupRequest
from muster.scheduler.placement.verdict import ExhaustionProof, Infeasible
from muster.scheduler.planning.node_matrix import NodeMatrix, NodeSet
from muster.scheduler.planning.packing_instance import ScopedRequest
from muster.scheduler.planning.pruning import DomainBounds, DomainSymmetry, Task
from tests.build.matrices import a_leaf, a_matrix
from tests.build.objects import RACK, a_node
from tests.build.planning import Scene, racks


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


def racks_of(*nodes: list[int]) -> tuple[NodeMatrix, dict[int, NodeSet]]:
    """Nodes with so much free, rack by rack; shapes s0 and s1 request 1 and 2."""
    values = [rack for rack, free in enumerate(nodes, 1) for _ in free]
    matrix = a_matrix([[each for free in nodes for each in free]], [[1], [2]], rack=values, zone=[1] * len(values))
    return matrix, matrix.domains(matrix.everywhere(), "rack")


def symmetric(
    matrix: NodeMatrix,
    one: NodeSet,
    other: NodeSet,
    request: GroupRequest | None = None,
    rest: tuple[Task, ...] = (),
    *scoped: ScopedRequest,
) -> bool:
    request = request or a_leaf("g", 2, "rack", s0=2)
    tried = DomainSymmetry(matrix).tried_domains(request, matrix.everywhere(), rest, scoped)
    assert not tried.has_symmetric(one)
    tried.add(one)
    return tried.has_symmetric(other)


def test_domains_of_equal_nodes_are_symmetric_in_any_order():
    matrix, domains = racks_of([4, 2], [2, 4], [4, 4])

    assert symmetric(matrix, domains[1], domains[2])
    assert not symmetric(matrix, domains[1], domains[3])


def test_nodes_that_another_shape_may_not_use_make_a_difference():
    matrix, domains = racks_of([4], [4])
    matrix.allowed = np.array([[True, True], [True, False]])

    assert not symmetric(matrix, domains[1], domains[2])


def test_a_domain_that_another_group_uses_already_is_not_symmetric_to_a_free_one():
    matrix, domains = racks_of([4], [4], [4])
    there = ScopedRequest(a_leaf("there", 1, s0=1), domains[1])

    assert not symmetric(matrix, domains[1], domains[2], None, (), there)
    assert symmetric(matrix, domains[2], domains[3], None, (), there)


def test_a_domain_of_which_another_node_set_has_a_part_is_like_no_other():
    matrix, domains = racks_of([4, 4], [4, 4])
    cut = matrix.everywhere(np.array([True, False, True, False]))

    assert not symmetric(matrix, domains[1], domains[2], None, (), ScopedRequest(a_leaf("cut", 1, s0=1), cut))


@pytest.mark.parametrize(
    ("topology", "domains", "chosen", "comparable"),
    [("rack", (), False, True), ("zone", (), False, False), ("zone", (), True, True), ("rack", ("1",), False, False)],
)
def test_other_groups_there_must_be_free_to_use_either_domain(
    topology: str, domains: tuple[str, ...], chosen: bool, comparable: bool
):
    matrix, found = racks_of([4], [4])
    other = a_leaf("other", 1, s0=1).with_topology(topology, domains)

    assert symmetric(matrix, found[1], found[2], None, ((other, matrix.everywhere(), chosen),)) is comparable


def test_a_group_that_is_elsewhere_does_not_matter():
    matrix, domains = racks_of([4], [4], [9])
    other = a_leaf("other", 1, "zone", s0=1)

    tried = DomainSymmetry(matrix).tried_domains(
        a_leaf("g", 2, "rack", s0=2),
        matrix.everywhere(np.array([True, True, False])),
        ((other, domains[3], False),),
        (),
    )
    tried.add(domains[1])

    assert tried.has_symmetric(domains[2])


@pytest.mark.parametrize("topology", ["", "zone"])
def test_a_group_whose_children_need_other_domains_is_compared_with_none(topology: str):
    matrix, domains = racks_of([4], [4])
    parent = CompositeRequest(EntityKey("C", "ns", "p"), 1, (a_leaf("g", 2, topology, s0=2),), "rack")

    assert symmetric(matrix, domains[1], domains[2], parent) is (topology == "")


def exceeded(matrix: NodeMatrix, *leaves: GroupRequest, scoped: tuple[ScopedRequest, ...] = ()) -> bool:
    tasks = tuple((leaf, matrix.everywhere(), False) for leaf in leaves)
    return DomainBounds(matrix).exceeded(tasks, scoped)


def test_a_domain_holds_its_seats_divided_by_the_need():
    matrix, domains = racks_of([3, 2], [5], [4])
    leaves = [a_leaf(f"g{i}", 3, "rack", s0=3) for i in range(4)]

    assert exceeded(matrix, *leaves)  # 5, 5 and 4 seats take one group of three each
    assert not exceeded(matrix, *leaves[:3])
    taken = ScopedRequest(a_leaf("there", 3, s0=3), domains[2])
    assert exceeded(matrix, *leaves[:3], scoped=(taken,))
    assert not exceeded(matrix, *leaves[:2], scoped=(taken,))


def test_groups_of_different_needs_are_compared_at_each_need():
    matrix, _ = racks_of([4], [4])

    assert not exceeded(matrix, *(a_leaf(f"g{i}", need, "rack", s0=need) for i, need in enumerate((3, 3, 1))))
    assert exceeded(matrix, *(a_leaf(f"g{i}", need, "rack", s0=need) for i, need in enumerate((3, 3, 3, 1))))


def test_what_is_left_in_a_domain_into_which_nothing_fits_is_wasted():
    matrix, _ = racks_of([5], [3], [3])
    mixed = [
        a_leaf(f"g{i}", 3, "rack", s0=1, s1=2) for i in range(2)
    ]  # at least 5 each, so only the first rack is usable

    assert exceeded(matrix, *mixed)
    roomy, _ = racks_of([5], [5], [3])
    assert not exceeded(roomy, *mixed)


def test_groups_that_do_not_compete_exceed_nothing():
    matrix, _ = racks_of([1], [1])
    large = a_leaf("large", 9, "rack", s0=9)
    pinned = a_leaf("pinned", 9, s0=9).with_topology("rack", ("1",))

    assert not exceeded(matrix, large)
    assert not exceeded(matrix, large, pinned)
    assert not exceeded(matrix, large, a_leaf("free", 9, s0=9))


def test_every_other_group_there_is_looked_at():
    matrix, domains = racks_of([4], [4], [9])
    nodes = matrix.everywhere(np.array([True, True, False]))
    elsewhere, zoned = (a_leaf("e", 1, "zone", s0=1), domains[3], False), (a_leaf("z", 1, "zone", s0=1), nodes, False)

    def comparable(*rest: Task) -> bool:
        tried = DomainSymmetry(matrix).tried_domains(a_leaf("g", 2, "rack", s0=2), nodes, rest, ())
        tried.add(domains[1])
        return tried.has_symmetric(domains[2])

    assert comparable(elsewhere)
    assert not comparable(elsewhere, zoned)
    assert not comparable((a_leaf("in-one", 1, s0=1), domains[1], True))  # it may use the first domain only


def test_a_pin_below_a_group_counts_too():
    matrix, domains = racks_of([4], [4])
    pinned = a_leaf("p", 1, s0=1).with_topology("rack", ("1",))
    parent = CompositeRequest(EntityKey("C", "ns", "p"), 2, (a_leaf("f", 1, "rack", s0=1), pinned))

    assert not symmetric(matrix, domains[1], domains[2], None, ((parent, matrix.everywhere(), True),))


def test_what_other_groups_take_of_a_domain_is_not_left():
    matrix, domains = racks_of([5], [5])
    mixed = [a_leaf(f"g{i}", 3, "rack", s0=1, s1=2) for i in range(2)]  # at least 5 each

    assert not exceeded(matrix, *mixed)
    assert exceeded(matrix, *mixed, scoped=(ScopedRequest(a_leaf("there", 1, s0=1), domains[1]),))


def test_a_group_that_may_choose_takes_its_smallest_pods_at_least():
    matrix, _ = racks_of([1], [1])

    assert not exceeded(matrix, *(a_leaf(f"g{i}", 1, "rack", s0=1, s1=1) for i in range(2)))
