"""Which domain each group takes, where several groups compete for the domains of one key: bounds before packing.

A domain holds a set of groups only if, for any weights of the shapes, the groups weigh no more than the best patterns
of its nodes together. Each such inequality is a row: what every domain holds, what every group weighs. At the weights
of the first row, the prices of all groups together, it is known how much all domains may waste. One domain is filled
after the other (bin completion): the domain that fewest of the groups left fit into is next, and the sets of groups
that fill it best are tried first. Rows and sets that proved wrong are added between two fillings. An assignment found
here only proposes; that there is none is a proof if nothing was left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.node_matrix import Ints, Mask
from muster.scheduler.planning.patterns import PatternTable

MOST_SETS = 20_000  # of one size, for one domain


MOST_TRIED = 12  # sets for one domain


MOST_STARTS, DEAD_ENDS = 12, 300  # how often to start, and dead ends in the first start


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """Sets of groups of one size: each is a set of the size before, and one more group."""

    parent: Ints
    group: Ints  # its position among the groups left
    left: Ints  # [set, row]: what the domain has left


class DomainFilling:
    """Groups, domains, the rows that no assignment may exceed, and the sets that do not pack."""

    def __init__(self, patterns: PatternTable, domain_of: Ints, demands: Ints, allowed: Mask) -> None:
        self.patterns = patterns
        self.domain_of = domain_of  # [node of the patterns], -1 for none
        self.demands = demands  # [group, type]
        self.allowed = allowed  # [group, domain]
        self.room: Ints = np.zeros((0, allowed.shape[1]), dtype=np.int64)  # [row, domain]
        self.load: Ints = np.zeros((0, len(demands)), dtype=np.int64)  # [row, group]
        self.forbidden: set[tuple[int, frozenset[int]]] = set()
        self.complete = True  # every set was tried or is known not to pack
        self._start = 0
        self._dead_ends = 0  # that are still allowed in this start
        self._cut = False  # something was left out in this start

    def add_weights(self, weights: Ints) -> None:
        """The row of some weights of the types."""
        dearest = self.patterns.best(self.patterns.table @ weights)[self.patterns.member_of]
        inside = self.domain_of >= 0
        room = np.zeros((1, self.allowed.shape[1]), dtype=np.int64)
        np.add.at(room[0], self.domain_of[inside], dearest[inside])
        self.room = np.vstack((self.room, room))
        self.load = np.vstack((self.load, self.demands @ weights))

    def fill(self, budget: Budget) -> Pausing[Ints | None]:
        """A domain for each group; None if there is none, or none was found.

        A wrong set for one of the first domains shows late, so the search starts again after some dead ends, each time
        with another order of the sets and more patience.
        """
        spare = int(self.room[0].sum()) - int(self.load[0].sum())
        for start in range(MOST_STARTS):
            found = np.full(len(self.demands), -1, dtype=np.int64)
            free = np.ones(self.allowed.shape[1], dtype=bool)
            self._start, self._dead_ends, self._cut = start, DEAD_ENDS << start, False
            filled = yield from self._fill(found, free, spare, budget)
            if filled:
                return found
            if not self._cut:
                return None
            if budget.exhausted:
                break
        self.complete = False
        return None

    def _fill(self, found: Ints, free: Mask, spare: int, budget: Budget) -> Pausing[bool]:
        """Place the groups that have no domain yet in the domains that are free."""
        waiting, domains = np.flatnonzero(found < 0), np.flatnonzero(free)
        if not len(waiting):
            return True
        if not len(domains):
            return False
        if not budget.spend_cells(len(self.load) * len(waiting) * len(domains)):
            self._cut = True
            return False
        if budget.pause_due():
            yield
        able = self.allowed[np.ix_(waiting, domains)]
        able = able & (self.load[:, waiting, None] <= self.room[:, None, domains]).all(axis=0)
        if not able.any(axis=1).all():
            return False
        domain = int(domains[np.lexsort((self.room[0, domains], able.sum(axis=0)))[0]])
        free[domain] = False
        for members, waste in self._sets(domain, waiting, spare, budget):
            found[members] = domain
            filled = yield from self._fill(found, free, spare - waste, budget)
            if filled:
                return True
            found[members] = -1
            if budget.exhausted or self._dead_ends <= 0:
                self._cut = True
                break
        self._dead_ends -= 1
        free[domain] = True
        return False

    def _sets(self, domain: int, waiting: Ints, spare: int, budget: Budget) -> list[tuple[Ints, int]]:
        """The sets that fill a domain best, and what they waste; no further domain may waste more than is spare."""
        load, allowed = self.load[:, waiting], self.allowed[waiting, domain]
        start = np.full(1, -1, dtype=np.int64)
        sizes = [_Sets(start, start, self.room[:, domain][None, :])]
        while len(sizes[-1].group):
            following = _one_more(sizes[-1], load, allowed, budget)
            if following is None:
                self._cut = True
                break
            sizes.append(following)
        ranked: list[tuple[int, int, int, int]] = []
        for size, sets in enumerate(sizes):
            usable = np.flatnonzero(sets.left[:, 0] <= spare)
            wastes = sets.left[usable, 0]
            keys = wastes + self._shuffle(usable, spare)
            order = np.argsort(keys, kind="stable")[: MOST_TRIED + 1]
            ranked += zip(keys[order].tolist(), [size] * len(order), usable[order].tolist(), wastes[order].tolist())
        ranked.sort()
        named = ((waiting[_members(sizes, size, at)], waste) for _, size, at, waste in ranked)
        possible = [
            (members, waste) for members, waste in named if (domain, frozenset(members.tolist())) not in self.forbidden
        ]
        if len(ranked) > MOST_TRIED:
            self._cut = True
        return possible[:MOST_TRIED]

    def _shuffle(self, sets: Ints, spare: int) -> Ints:
        """What another start adds to the waste of each set when it orders them."""
        return (sets * 40_503 + self._start * 25_171) % 1_021 * (spare * min(self._start, 4) // 8_192)


def _one_more(sets: _Sets, load: Ints, allowed: Mask, budget: Budget) -> _Sets | None:
    """Every set with every further group that no row rules out, in one order only; None if there are too many."""
    groups = load.shape[1]
    if len(sets.group) > MOST_SETS or not budget.spend_cells(len(sets.group) * groups):
        return None
    able = allowed[None, :] & (np.arange(groups)[None, :] > sets.group[:, None])
    able &= load[0][None, :] <= sets.left[:, 0, None]
    parent, group = np.nonzero(able)
    if not budget.spend_cells(len(parent) * len(load)):
        return None
    left = sets.left[parent] - load.T[group]
    fits = np.flatnonzero((left >= 0).all(axis=1))
    return _Sets(parent[fits], group[fits], left[fits])


def _members(sizes: list[_Sets], size: int, at: int) -> Ints:
    """The positions of the groups of one set."""
    found: list[int] = []
    for sets in sizes[size:0:-1]:
        found.append(int(sets.group[at]))
        at = int(sets.parent[at])
    return np.array(found[::-1], dtype=np.int64)
