"""Sparse columns give the sums of the dense ones."""

from __future__ import annotations

import numpy as np
import pytest

from muster.scheduler.planning.pattern_columns import DenseColumns, SparseColumns


@pytest.mark.parametrize("seed", range(10))
def test_dense_and_sparse_columns_agree(seed: int):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 3, size=(12, 7)) * (rng.random((12, 7)) < 0.4)
    need = rng.integers(1, 5, size=7)
    dense, sparse = DenseColumns(counts / need), SparseColumns.of(counts, need)
    shares, point = rng.random(12), rng.random(7)
    class_of = np.sort(np.append(rng.integers(0, 4, size=8), np.arange(4)))
    starts = np.searchsorted(class_of, np.arange(4))
    some = np.array([1, 4, 5])

    assert sparse.values(point) == pytest.approx(dense.values(point))
    assert sparse.values(np.eye(7)) == pytest.approx(dense.values(np.eye(7)))
    assert sparse.only(some).values(point) == pytest.approx(dense.only(some).values(point))
    assert sparse.means(shares, class_of, starts) == pytest.approx(dense.means(shares, class_of, starts))
    assert sparse.products(shares) == pytest.approx(dense.products(shares))


def test_patterns_without_members_are_worth_nothing():
    sparse = SparseColumns.of(np.zeros((2, 3), dtype=np.int64), np.ones(3, dtype=np.int64))

    assert sparse.values(np.ones(3)).tolist() == [0, 0]
    assert sparse.products(np.ones(2)).tolist() == np.zeros((3, 3)).tolist()
