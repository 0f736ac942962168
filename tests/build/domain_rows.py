"""Rows of domains and groups from plain numbers."""

from __future__ import annotations

import numpy as np

from muster.scheduler.placement.budget import Budget, run_to_end
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.patterns import pattern_table
from tests.build.matrices import a_leaf, a_matrix, an_instance


def rows_of(rooms: list[int], groups: list[int], shared: tuple[int, ...] = ()) -> DomainRows:
    """Domains of one node and one resource; groups of so many pods of one shape; one row, in pods."""
    instance = an_instance(a_matrix([rooms], [[1]]), a_leaf("a", sum(groups), s0=sum(groups)))
    table = run_to_end(pattern_table(instance, Budget(1000)))
    assert table is not None
    allowed = np.ones((len(groups), len(rooms)), dtype=bool)
    rows = DomainRows(table, instance.nodes.copy(), np.array(groups)[:, None], allowed, shared)
    rows.add_weights(np.array([1]))
    return rows
