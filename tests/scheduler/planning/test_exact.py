"""Exact answers on plain arrays: certificates, complete search, and nothing claimed without either."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning import patterns
from muster.scheduler.planning.exact import Answer, BudgetSpent, DualCertificate, Exhausted, decide, weight_of_need
from muster.scheduler.planning.first_fit import pack
from muster.scheduler.planning.packing_instance import PackingInstance
from muster.scheduler.planning.patterns import pattern_table
from tests.build.matrices import a_leaf, a_matrix, an_instance, is_sound


def decided(instance: PackingInstance, budget: Budget) -> Answer:
    return run_to_end(decide(instance, budget))


def test_a_packing_that_no_quick_order_finds_is_found_exactly():
    # 6+4, 5+5, 4+3+3 fill three nodes of ten to the brim.
    instance = an_instance(a_matrix([[10, 10, 10]], [[6], [5], [4], [3]]), a_leaf("a", 7, s0=1, s1=2, s2=2, s3=2))

    placed = decided(instance, Budget(5000))

    assert isinstance(placed, np.ndarray)
    assert is_sound(instance, placed)
    assert placed.sum(axis=1).tolist() == [1, 2, 2, 2]


def test_too_much_of_one_resource_is_weighed():
    answer = decided(
        an_instance(a_matrix([[3, 3], [9, 9]], [[2, 1], [1, 4]]), a_leaf("a", 5, s0=3, s1=2)), Budget(1000)
    )

    assert isinstance(answer, DualCertificate)
    assert answer.available < answer.required


def test_what_weights_cannot_show_is_shown_by_search():
    # Sizes 7, 6, 5 in two nodes of ten: each pair is too large, though 18 is less than 20.
    answer = decided(an_instance(a_matrix([[10, 10]], [[7], [6], [5]]), a_leaf("a", 3, s0=1, s1=1, s2=1)), Budget(1000))

    assert isinstance(answer, DualCertificate | Exhausted)


def test_a_leaf_that_may_choose_takes_the_members_that_fit():
    instance = an_instance(a_matrix([[3, 3]], [[3], [2]]), a_leaf("a", 2, s0=2, s1=2), a_leaf("b", 1, s1=1))

    assert isinstance(decided(instance, Budget(1000)), DualCertificate | Exhausted)
    easier = an_instance(a_matrix([[3, 3, 2]], [[3], [2]]), a_leaf("a", 2, s0=2, s1=2), a_leaf("b", 1, s1=1))
    placed = pack(easier, Budget(1000))
    assert placed is not None
    assert is_sound(easier, placed)


def test_a_budget_that_ends_claims_nothing():
    rng = np.random.default_rng(3)
    matrix = a_matrix([rng.integers(20, 40, 12).tolist()], [[11], [9], [7], [5]])

    answer = decided(an_instance(matrix, a_leaf("a", 34, s0=8, s1=8, s2=9, s3=9)), Budget(20))

    assert isinstance(answer, BudgetSpent | DualCertificate)


@pytest.mark.parametrize("nodes", [10, 1000])
def test_many_nodes_of_one_kind_cost_no_more_than_few(nodes: int):
    instance = an_instance(a_matrix([[10] * nodes], [[6], [4]]), a_leaf("a", 2 * nodes, s0=nodes, s1=nodes))
    budget = Budget(2000)

    assert isinstance(decided(instance, budget), np.ndarray)
    assert budget.spent < 400


PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def only_pairs(*nodes: set[tuple[int, int]]) -> PackingInstance:
    """Four pods, one of each shape, and nodes that take just these pairs of them: one row for each pair."""
    requests = [[int(shape in pair) for pair in PAIRS] for shape in range(4)]
    free = [[2 if pair in allowed else 1 for allowed in nodes] for pair in PAIRS]
    return an_instance(a_matrix(free, requests), a_leaf("a", 4, s0=1, s1=1, s2=1, s3=1))


def test_what_fractions_of_patterns_would_cover_is_refuted_by_search():
    # Half of each pattern covers every pod, so no weights refute it; whole patterns leave two pods that differ.
    answer = decided(only_pairs({(0, 1), (2, 3)}, {(0, 2), (1, 3)}), Budget(1000))

    assert isinstance(answer, Exhausted)
    assert answer.classes == 2
    assert answer.steps > 0
    fitting = decided(only_pairs({(0, 1), (2, 3)}, {(0, 1), (2, 3)}), Budget(1000))
    assert isinstance(fitting, np.ndarray)
    assert fitting.sum(axis=1).tolist() == [1, 1, 1, 1]


def test_the_search_gives_up_without_a_claim_when_its_budget_ends():
    hard = only_pairs({(0, 1), (2, 3)}, {(0, 2), (1, 3)})
    complete = decided(hard, Budget(1000))
    assert isinstance(complete, Exhausted)

    assert isinstance(decided(hard, Budget(complete.steps - 1)), BudgetSpent)


def test_a_group_that_may_choose_weighs_as_its_lightest_pods():
    instance = an_instance(a_matrix([[50]], [[1], [5], [3]]), a_leaf("may", 3, s0=2, s1=2), a_leaf("must", 2, s2=2))

    assert weight_of_need(instance, (1, 5, 3), instance.counts) == 1 + 1 + 5 + 3 + 3
    assert weight_of_need(instance, (1, 5, 3), [1, 2, 0]) == 1 + 5  # one light pod and both of the other are placed


def test_a_certificate_needs_no_patterns_where_there_are_too_many():
    # Too many patterns to list: eight small types on a large node.
    free, requests = [[900]], [[1], [2], [3], [4]]
    counts = {"s0": 200, "s1": 200, "s2": 200, "s3": 200}
    answer = decided(an_instance(a_matrix(free, requests), a_leaf("a", 800, **counts)), Budget(100_000))

    assert isinstance(answer, DualCertificate)
    assert (answer.available, answer.required) == (900, 2000)


def test_only_as_many_pods_are_placed_as_are_needed():
    instance = an_instance(a_matrix([[3, 3]], [[3], [2]]), a_leaf("a", 2, s0=2, s1=2))

    placed = decided(instance, Budget(1000))

    assert isinstance(placed, np.ndarray)
    assert placed.sum() == 2
    assert is_sound(instance, placed)


def fits(free: list[list[int]], pods: list[list[int]]) -> bool:
    """Whether the pods fit on the nodes, by trying every node for every pod. `free` is [node][row]."""
    if not pods:
        return True
    for node in free:
        if all(have >= take for have, take in zip(node, pods[0], strict=True)):
            node[:] = [have - take for have, take in zip(node, pods[0], strict=True)]
            found = fits(free, pods[1:])
            node[:] = [have + take for have, take in zip(node, pods[0], strict=True)]
            if found:
                return True
    return False


def some_fit(free: list[list[int]], pods: list[list[int]], need: int) -> bool:
    return any(fits([list(node) for node in free], list(chosen)) for chosen in combinations(pods, need))


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("choose", [False, True])
def test_small_instances_are_decided_as_by_trying_everything(rows: int, choose: bool):
    rng = random.Random(rows + 10 * choose)
    answers: Counter[str] = Counter()
    for _ in range(120):
        requests = [[rng.randint(1, 5) for _ in range(rows)] for _ in range(rng.randint(2, 3))]
        nodes = rng.randint(2, 3)
        free = [[rng.randint(3, 9) for _ in range(nodes)] for _ in range(rows)]
        counts = {f"s{at}": rng.randint(1, 3) for at in range(len(requests))}
        pods = [requests[int(shape[1:])] for shape, count in counts.items() for _ in range(count)]
        need = rng.randint(1, len(pods)) if choose else len(pods)
        instance = an_instance(a_matrix(free, requests), a_leaf("g", need, **counts))

        answer = decided(instance, Budget(100_000))

        possible = some_fit([list(node) for node in zip(*free, strict=True)], pods, need)
        assert isinstance(answer, np.ndarray) is possible, (free, requests, counts, need)
        if isinstance(answer, np.ndarray):
            assert is_sound(instance, answer)
            assert answer.sum() == need
        elif isinstance(answer, DualCertificate):
            assert answer.available < answer.required
        answers[type(answer).__name__] += 1
    assert len(answers) > 1


def test_rounded_fractions_spare_the_search_of_large_instances():
    # Four kinds of node and three of pod: the weights leave fractions, and their whole parts almost suffice.
    rng = random.Random(4)
    free = [[rng.choice((13, 17, 19, 23)) for _ in range(60)]]
    counts = {"s0": 30, "s1": 40, "s2": 55}
    instance = an_instance(a_matrix(free, [[7], [6], [5]]), a_leaf("g", 125, **counts))
    budget = Budget(3000)

    placed = decided(instance, budget)

    assert isinstance(placed, np.ndarray)
    assert is_sound(instance, placed)
    assert placed.sum(axis=1).tolist() == [30, 40, 55]
    assert budget.spent < 800


@pytest.mark.parametrize("seed", range(8))
def test_too_many_patterns_are_searched_in_part_and_prove_nothing(seed: int, monkeypatch: pytest.MonkeyPatch):
    rng = random.Random(seed)
    counts = {"s0": 12, "s1": 9, "s2": 6}
    free = [[rng.randint(14, 20) for _ in range(6)]]
    instance = an_instance(a_matrix(free, [[2], [3], [5]]), a_leaf("a", sum(counts.values()), **counts))
    whole = run_to_end(pattern_table(instance, Budget(10_000)))
    assert whole is not None
    # Too many for a complete table, few enough for one of some of them.
    monkeypatch.setattr(patterns, "MOST_PATTERNS", len(whole.table) - 1)
    assert run_to_end(pattern_table(instance, Budget(10_000))) is None
    some = run_to_end(pattern_table(instance, Budget(10_000), 2))
    assert some is not None
    assert {tuple(each) for each in some.table.tolist()} <= {tuple(each) for each in whole.table.tolist()}

    answer = decided(instance, Budget(10_000))

    if isinstance(answer, np.ndarray):
        assert is_sound(instance, answer)
        assert answer.sum(axis=1).tolist() == list(counts.values())
    else:
        assert isinstance(answer, BudgetSpent | DualCertificate)
        if isinstance(answer, DualCertificate):
            assert sum(map(sum, free)) < 2 * 12 + 3 * 9 + 5 * 6, "only what is counted without patterns"
