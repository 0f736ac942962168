"""The sets of groups that one domain can take: they exceed no row and leave no more than the other domains may lack.

What all domains have and all groups take is known for every row, so what a single domain may leave unused is known too;
where room is scarce, that leaves few sets to most domains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from muster.scheduler.placement.budget import Budget
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.node_matrix import Ints, Mask

MOST_SETS = 2_000  # of one size, for one kind of domain


MOST_SAMPLED = 500  # of one size, where there are more


GROWTH = 5  # times as many are looked at in one row before the others


ROOM_BITS = 8  # of room that do not matter where it is weighed against prices


@dataclass(frozen=True, slots=True, eq=False)
class GroupSets:
    """Sets of groups, each for one domain of a kind; those of one kind are neighbours, the kinds in order."""

    domain: Ints  # [set], the kind of the domain
    counts: NDArray[np.signedinteger[Any]]  # [set, kind of group]
    left: Ints  # [set, row]: what the domain has left

    def __len__(self) -> int:
        return len(self.domain)

    def only(self, chosen: Mask | Ints | slice) -> GroupSets:
        return GroupSets(self.domain[chosen], self.counts[chosen], self.left[chosen])

    def best(self, penalty: Ints, most: int) -> GroupSets:
        """Of each kind of domain, so many sets of the least penalty."""
        order = np.lexsort((penalty, self.domain))
        ordered = self.domain[order]
        rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        return self.only(np.sort(order[rank < most]))

    def within(self, waiting: Ints, kinds: Ints) -> Mask:
        """Which sets take no more groups of some kinds than wait."""
        return np.asarray(np.less_equal(self.counts[:, kinds], waiting[kinds]).all(axis=1), dtype=np.bool_)

    def refreshed(self, rows: DomainRows) -> GroupSets:
        """Those that also obey the rows that are new, and that were not ruled out since."""
        known = self.left.shape[1]
        added = rows.room[self.domain, known:] - self.counts @ rows.load[:, known:]
        usable: Mask = np.asarray(np.greater_equal(added, 0).all(axis=1), dtype=np.bool_)
        for domain, ruled_out in enumerate(rows.ruled_out):
            if ruled_out:
                start, stop = np.searchsorted(self.domain, (domain, domain + 1))
                equal = (self.counts[start:stop, None, :] == np.array(ruled_out)).all(axis=2).any(axis=1)
                usable[start:stop] &= ~equal
        chosen = np.flatnonzero(usable)
        return GroupSets(self.domain[chosen], self.counts[chosen], np.hstack((self.left[chosen], added[chosen])))


def together(parts: list[GroupSets], rows: DomainRows) -> GroupSets:
    """Sets of different kinds of domains as one."""
    none: Ints = np.zeros(0, dtype=np.int64)
    domain = np.concatenate([none, *(part.domain for part in parts)])
    order = np.argsort(domain, kind="stable")
    counts = np.vstack([none.reshape(0, len(rows.load)).astype(_dtype(rows)), *(part.counts for part in parts)])
    left = np.vstack([none.reshape(0, rows.load.shape[1]), *(part.left for part in parts)])
    return GroupSets(domain[order], counts[order], left[order])


def all_sets(rows: DomainRows, domain: int, waiting: Ints, spare: Ints, budget: Budget) -> GroupSets | None:
    """The sets of waiting groups for a kind of domain that leave no more than is spare; None if there are too many."""
    return _enumerate(rows, domain, waiting, spare, budget, MOST_SETS, some=False)


def some_sets(
    rows: DomainRows, domain: int, waiting: Ints, spare: Ints, budget: Budget, prices: Ints | None = None
) -> GroupSets | None:
    """Some of too many: at each size those that leave least, or promise most at prices; None if the budget ends."""
    return _enumerate(rows, domain, waiting, spare, budget, MOST_SAMPLED, some=True, prices=prices)


def _enumerate(
    rows: DomainRows,
    domain: int,
    waiting: Ints,
    spare: Ints,
    budget: Budget,
    most: int,
    *,
    some: bool,
    prices: Ints | None = None,
) -> GroupSets | None:
    """Every set with every further group, the heaviest groups first, in one order only."""
    cost = _cost_of_groups(rows, waiting, prices)
    usable = np.flatnonzero(rows.fits[domain] & (waiting > 0))
    usable = usable[np.argsort(-rows.load[usable, 0], kind="stable")]
    load, limits = rows.load[usable], waiting[usable]
    # What a set could still take, of the group that joined last and those after it.
    ahead = np.cumsum((load * limits[:, None])[::-1], axis=0)[::-1]
    counts: Ints = np.zeros((1, len(usable)), dtype=np.int64)
    left, last = rows.room[domain][None, :], np.zeros(1, dtype=np.int64)
    found: list[tuple[Ints, Ints]] = []
    while len(left):
        if not budget.spend_cells(4 * len(left) * max(1, len(usable))):
            return None
        enough = (left <= spare).all(axis=1)
        found.append((counts[enough], left[enough]))
        able: Mask = np.greater_equal(np.arange(len(usable)), last[:, None]) & (counts < limits)
        able &= np.less_equal(load[:, 0], left[:, 0, None])
        parent, group = np.nonzero(able)
        if len(parent) > GROWTH * most:
            if not some:
                return None
            parent, group = _least((counts @ cost[usable])[parent] + cost[usable][group], GROWTH * most, parent, group)
        if not budget.spend_cells(4 * len(parent) * load.shape[1]):
            return None
        after = left[parent] - load[group]
        fitting = np.flatnonzero(((after >= 0) & (after - ahead[group] <= spare)).all(axis=1))
        if len(fitting) > most:
            if not some:
                return None
            (fitting,) = _least((counts @ cost[usable])[parent[fitting]] + cost[usable][group[fitting]], most, fitting)
        parent, last, left = parent[fitting], group[fitting], after[fitting]
        counts = counts[parent]
        counts[np.arange(len(parent)), last] += 1
    return _gathered(rows, domain, usable, found)


def _gathered(rows: DomainRows, domain: int, usable: Ints, found: list[tuple[Ints, Ints]]) -> GroupSets:
    narrow, left = np.vstack([counts for counts, _ in found]), np.vstack([rest for _, rest in found])
    counts = np.zeros((len(narrow), len(rows.load)), dtype=_dtype(rows))
    counts[:, usable] = narrow
    sets = GroupSets(np.full(len(counts), domain, dtype=np.int64), counts, left)
    for each in rows.ruled_out[domain]:
        sets = sets.only((sets.counts != each).any(axis=1))
    return sets


def _dtype(rows: DomainRows) -> type[np.signedinteger[Any]]:
    """Counts are small where groups differ, and their table is large."""
    return np.int16 if int(rows.groups.max(initial=0)) < 1 << 14 else np.int64


def _cost_of_groups(rows: DomainRows, waiting: Ints, prices: Ints | None) -> Ints:
    """What a group costs a set in the order of sets: room is worth as much as what all groups need of it.

    Without prices the sets come first that take most.
    """
    load = rows.load[:, 0]
    if prices is None:
        return -load
    total = max(1, int(waiting @ load) >> ROOM_BITS)
    return (load >> ROOM_BITS) * int(waiting @ prices) // total - prices


def _least(costs: Ints, most: int, *columns: Ints) -> tuple[Ints, ...]:
    """So many of the sets of the least cost."""
    order = np.sort(np.argsort(costs, kind="stable")[:most])
    return tuple(column[order] for column in columns)
