"""The heaviest pods of each node: those of trying every set, or a bound that no set exceeds."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from muster.scheduler.checking import heaviest_pods
from muster.scheduler.checking.heaviest_pods import heaviest


def by_trying(
    room: list[int], able: list[bool], requests: list[list[int]], weights: list[int], counts: list[int]
) -> int:
    best = 0
    for taken in product(*(range(count + 1 if can else 1) for count, can in zip(counts, able, strict=True))):
        used = [sum(n * each[at] for n, each in zip(taken, requests, strict=True)) for at in range(len(room))]
        if all(u <= max(0, have) or not u for u, have in zip(used, room, strict=True)):
            best = max(best, sum(n * weight for n, weight in zip(taken, weights, strict=True)))
    return best


@pytest.mark.parametrize("fillings", [200_000, 0])
@pytest.mark.parametrize("seed", range(40))
def test_the_weight_is_that_of_trying_every_set(seed: int, fillings: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(heaviest_pods, "MOST_FILLINGS", fillings)
    rng = random.Random(seed)
    shapes, nodes = rng.randint(1, 3), rng.randint(1, 5)
    room = [[rng.randint(-1, 12), rng.randint(0, 12)] for _ in range(nodes)]
    able = [[rng.random() < 0.8 for _ in range(shapes)] for _ in range(nodes)]
    requests = [[rng.randint(1, 6), rng.randint(0, 6)] for _ in range(shapes)]
    weights = [rng.randint(0, 9) for _ in range(shapes)]
    counts = [rng.randint(1, 4) for _ in range(shapes)]

    found, exact = heaviest(*map(np.array, (room, able, requests, weights, counts)))

    tried = [by_trying(room[at], able[at], requests, weights, counts) for at in range(nodes)]
    if fillings:
        assert exact
        assert found.tolist() == tried
    else:
        assert all(bound >= best for bound, best in zip(found.tolist(), tried, strict=True))


def test_weights_that_are_amounts_of_a_resource_need_no_fillings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(heaviest_pods, "MOST_FILLINGS", 0)
    room, requests = np.array([[10, 99], [7, 99]]), np.array([[4, 1], [3, 2]])

    found, exact = heaviest(room, np.ones((2, 2), dtype=bool), requests, np.array([4, 3]), np.array([9, 9]))

    assert found.tolist() == [10, 7]
    assert not exact


def test_thousands_of_nodes_are_filled_a_few_at_a_time():
    room = np.tile(np.array([[8, 8]]), (5_000, 1))
    requests = np.array([[1, 2], [2, 1], [3, 3]])

    found, exact = heaviest(room, np.ones((5_000, 3), dtype=bool), requests, np.array([1, 1, 2]), np.array([99] * 3))

    assert exact
    assert set(found.tolist()) == {5}
