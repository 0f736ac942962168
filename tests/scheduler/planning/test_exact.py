"""Exact answers on plain arrays: certificates, complete search, and nothing claimed without either."""

from __future__ import annotations

import numpy as np
import pytest

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import PendingPod, PodGroupRequest
from muster.scheduler.placement.verdict import Budget
from muster.scheduler.planning.exact import BudgetSpent, DualCertificate, Exhausted, decide
from muster.scheduler.planning.first_fit import pack
from muster.scheduler.planning.node_matrix import NodeMatrix
from muster.scheduler.planning.packing_instance import PackingInstance, ScopedRequest
from tests.build.objects import a_pod
from tests.build.planning import Scene

SCENE = Scene()
SHAPES = [SCENE.member(a_pod(f"s{i}", cpu=i + 1)).shape for i in range(4)]


def a_board(free: list[list[int]], requests: list[list[int]]) -> NodeMatrix:
    """Columns of `free` are nodes; every shape may go everywhere."""
    amounts = np.array(free, dtype=np.int64)
    allowed = np.ones((len(requests), amounts.shape[1]), dtype=bool)
    return NodeMatrix(
        SHAPES[: len(requests)], amounts, np.array(requests, dtype=np.int64), allowed, np.arange(amounts.shape[1])
    )


def a_leaf(name: str, need: int, **counts: int) -> PodGroupRequest:
    """A PodGroup with so many members of shapes s0, s1, …"""
    shapes = [SHAPES[int(shape[1:])] for shape, count in counts.items() for _ in range(count)]
    members = tuple(PendingPod(f"{name}-{i}", "d", f"{name}-{i}", shape, 0) for i, shape in enumerate(shapes))
    return PodGroupRequest(EntityKey("PodGroup", "d", name), need, 0, members)


def ask(board: NodeMatrix, *leaves: PodGroupRequest) -> PackingInstance:
    return PackingInstance(board, [ScopedRequest(leaf, board.everywhere()) for leaf in leaves])


def sound(question: PackingInstance, placed: np.ndarray) -> bool:
    used = question.requests.T @ placed
    return bool((used <= question.free).all() and (placed[~question.fits] == 0).all())


def test_equal_lots_of_several_leaves_become_one_type():
    question = ask(a_board([[4, 4]], [[1]]), a_leaf("a", 2, s0=2), a_leaf("b", 3, s0=3))

    assert question.types == 1
    assert question.counts == [5]


def test_seats_of_a_shared_type_are_handed_back_to_each_leaf():
    question = ask(a_board([[4, 4]], [[1]]), a_leaf("a", 2, s0=2), a_leaf("b", 5, s0=5))
    placed = pack(question, Budget(100))
    assert placed is not None

    given = {packed.pods.members[0].uid[0]: int(packed.counts.sum()) for packed in question.packed(placed)}

    assert given == {"a": 2, "b": 5}


def test_nodes_that_differ_in_nothing_that_matters_form_one_class():
    question = ask(a_board([[7, 8, 9]], [[4], [4]]), a_leaf("a", 2, s0=1, s1=1))

    assert len(np.unique(question.free)) <= 2


def test_a_packing_that_no_quick_order_finds_is_found_exactly():
    # 6+4, 5+5, 4+3+3 fill three nodes of ten to the brim.
    question = ask(a_board([[10, 10, 10]], [[6], [5], [4], [3]]), a_leaf("a", 7, s0=1, s1=2, s2=2, s3=2))

    placed = decide(question, Budget(5000))

    assert isinstance(placed, np.ndarray)
    assert sound(question, placed)
    assert placed.sum(axis=1).tolist() == [1, 2, 2, 2]


def test_too_much_of_one_resource_is_weighed():
    answer = decide(ask(a_board([[3, 3], [9, 9]], [[2, 1], [1, 4]]), a_leaf("a", 5, s0=3, s1=2)), Budget(1000))

    assert isinstance(answer, DualCertificate)
    assert answer.available < answer.required


def test_what_weights_cannot_show_is_shown_by_search():
    # Sizes 7, 6, 5 in two nodes of ten: each pair is too large, though 18 is less than 20.
    answer = decide(ask(a_board([[10, 10]], [[7], [6], [5]]), a_leaf("a", 3, s0=1, s1=1, s2=1)), Budget(1000))

    assert isinstance(answer, DualCertificate | Exhausted)


def test_a_leaf_that_may_choose_takes_the_members_that_fit():
    question = ask(a_board([[3, 3]], [[3], [2]]), a_leaf("a", 2, s0=2, s1=2), a_leaf("b", 1, s1=1))

    assert isinstance(decide(question, Budget(1000)), DualCertificate | Exhausted)
    easier = ask(a_board([[3, 3, 2]], [[3], [2]]), a_leaf("a", 2, s0=2, s1=2), a_leaf("b", 1, s1=1))
    placed = pack(easier, Budget(1000))
    assert placed is not None
    assert sound(easier, placed)


def test_a_budget_that_ends_claims_nothing():
    rng = np.random.default_rng(3)
    board = a_board([rng.integers(20, 40, 12).tolist()], [[11], [9], [7], [5]])

    answer = decide(ask(board, a_leaf("a", 34, s0=8, s1=8, s2=9, s3=9)), Budget(20))

    assert isinstance(answer, BudgetSpent | DualCertificate)


@pytest.mark.parametrize("nodes", [10, 1000])
def test_many_nodes_of_one_kind_cost_no_more_than_few(nodes: int):
    question = ask(a_board([[10] * nodes], [[6], [4]]), a_leaf("a", 2 * nodes, s0=nodes, s1=nodes))
    budget = Budget(2000)

    assert isinstance(decide(question, budget), np.ndarray)
    assert budget.spent < 400
