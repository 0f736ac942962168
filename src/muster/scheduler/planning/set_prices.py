"""Prices of groups: at which every domain takes one of its sets, and all of them together are worth least.

That each domain takes one of its sets and every group is covered has the form of "each node takes one of its patterns,
and the needs are met", so `PriceSearch` finds the prices. A set that is worth much less than the dearest of its domain
is in hardly any assignment. Prices at which all domains are worth less than all groups prove that there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.group_sets import GroupSets
from muster.scheduler.planning.node_matrix import Ints
from muster.scheduler.planning.pattern_columns import SparseColumns
from muster.scheduler.planning.patterns import PatternTable
from muster.scheduler.planning.prices import ROUNDING_LEVEL, PriceSearch


@dataclass(frozen=True, slots=True, eq=False)
class GroupPrices:
    """Integer prices of kinds of groups, and what the dearest set of each kind of domain is worth."""

    weights: Ints  # [kind of group]
    worth: Ints  # [kind of domain]
    sufficient: bool  # all open domains together are worth as much as all waiting groups


def price_groups(sets: GroupSets, domains: Ints, waiting: Ints, budget: Budget) -> Pausing[GroupPrices | None]:
    """The prices of waiting groups where every open domain takes one of its sets; None if the budget ends."""
    kinds, open_kinds = np.flatnonzero(waiting > 0), np.flatnonzero(domains > 0)
    table = np.ascontiguousarray(sets.counts[:, kinds])
    class_of = np.searchsorted(open_kinds, sets.domain)
    positions = np.arange(len(open_kinds))
    patterns = PatternTable(table, class_of, np.searchsorted(class_of, positions), domains[open_kinds], positions)
    need = waiting[kinds]
    prices = yield from PriceSearch(patterns, need, budget, SparseColumns.of(table, need)).run(ROUNDING_LEVEL)
    if prices is None:
        return None
    weights, worth = np.zeros(len(waiting), dtype=np.int64), np.zeros(len(domains), dtype=np.int64)
    weights[kinds] = prices.weights
    worth[open_kinds] = patterns.best(table @ prices.weights)
    return GroupPrices(weights, worth, int(domains @ worth) >= int(waiting @ weights))
