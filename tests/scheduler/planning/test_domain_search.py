"""Groups that compete for domains: proposals are packed, and what does not pack is learned."""

from __future__ import annotations

import random

import numpy as np
import pytest

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning.domain_search import needed_leaves
from muster.scheduler.planning.node_matrix import NodeMatrix
from muster.scheduler.planning.tree_search import Found, NotFound, TreeSearch
from tests.build.matrices import a_leaf, a_matrix
from tests.scheduler.planning.test_tree_search import a_composite


def a_planted_tree(seed: int, racks: int, per_rack: int = 6, groups: int = 0) -> tuple[NodeMatrix, list[list[int]]]:
    """Racks whose nodes have room for the pods of their groups and little more; the counts of each group's shapes."""
    rng = random.Random(seed)
    shapes = [[rng.randint(2, 9), rng.randint(2, 9)] for _ in range(3)]
    count = groups or racks
    homes = [group % racks for group in range(count)]
    free = np.zeros((2, racks * per_rack), dtype=np.int64)
    counts = [[0, 0, 0] for _ in range(count)]
    for group in range(count):
        for _ in range(rng.randint(4, 9)):
            shape, node = rng.randrange(3), homes[group] * per_rack + rng.randrange(per_rack)
            free[:, node] += shapes[shape]
            counts[group][shape] += 1
    free += np.array([[rng.randint(0, 1) for _ in range(free.shape[1])] for _ in range(2)])
    rng.shuffle(counts)
    return a_matrix(free.tolist(), shapes, rack=[1 + at // per_rack for at in range(racks * per_rack)]), counts


def solved(matrix: NodeMatrix, counts: list[list[int]], steps: int = 25_000) -> Found | NotFound:
    leaves = [
        a_leaf(f"g{at}", sum(each), "rack", **{f"s{shape}": n for shape, n in enumerate(each) if n})
        for at, each in enumerate(counts)
    ]
    root = a_composite("root", len(leaves), *leaves)
    return run_to_end(TreeSearch(matrix, Budget(steps)).solve(root, matrix.everywhere()))


def check(matrix: NodeMatrix, counts: list[list[int]], found: Found) -> None:
    used = np.zeros_like(matrix.free)
    for packed in found.packed:
        used[:, packed.nodes] += matrix.request(packed.pods.shape)[:, None] * packed.counts
    assert (used <= matrix.free).all()
    assert sum(int(packed.counts.sum()) for packed in found.packed) == sum(map(sum, counts))
    assert len(found.domains) == len(counts)
    for group, value in found.domains:
        nodes = [packed.nodes for packed in found.packed if packed.pods in group.identical]
        assert {int(rack) for rack in matrix.columns["rack"][np.concatenate(nodes)]} == {value}


@pytest.mark.parametrize("groups", [8, 14])
@pytest.mark.parametrize("seed", range(6))
def test_planted_groups_find_their_racks(seed: int, groups: int):
    matrix, counts = a_planted_tree(seed, 8, groups=groups)

    answer = solved(matrix, counts)

    assert isinstance(answer, Found)
    check(matrix, counts, answer)


def test_a_group_too_many_is_refuted():
    matrix, counts = a_planted_tree(1, 6)

    answer = solved(matrix, [*counts, counts[0]])

    assert isinstance(answer, NotFound)
    assert answer.complete


def test_groups_that_only_fit_elsewhere_together_are_refuted_by_filling():
    # Two groups of two each fit anywhere alone, and all seats together suffice; but no rack has the second pair.
    matrix = a_matrix([[3, 1]], [[1]], rack=[1, 2])

    answer = solved(matrix, [[2, 0, 0], [2, 0, 0]])

    assert isinstance(answer, NotFound)
    assert answer.complete


def test_what_leaves_a_choice_is_not_assigned_as_a_whole():
    choosing = a_leaf("a", 2, "rack", s0=2, s1=1)
    fixed = a_leaf("b", 3, "rack", s0=2, s1=1)

    assert needed_leaves(choosing) is None
    assert needed_leaves(fixed) == (fixed,)
    assert needed_leaves(a_composite("c", 1, a_leaf("d", 1, s0=1), a_leaf("e", 1, s0=1))) is None
    assert needed_leaves(a_composite("f", 1, fixed)) is None, "a further domain is to be chosen"
