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
        self._forbidden: set[tuple[int, bytes]] = set()  # a domain, and the kinds of the groups of a set
        self._kind_of_group = _kinds(np.hstack((demands, allowed.astype(np.int64))))
        self._by_kind: Ints = np.argsort(self._kind_of_group, kind="stable")
        self._kind_of_domain: Ints = np.zeros(allowed.shape[1], dtype=np.int64)
        self._failed: set[tuple[bytes, bytes]] = set()
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

    def forbid(self, domain: int, groups: Ints) -> None:
        """These groups, or others of their kinds, do not pack in a domain."""
        self._forbidden.add((domain, self._kinds_of(groups)))

    def _kinds_of(self, groups: Ints) -> bytes:
        return np.sort(self._kind_of_group[groups]).tobytes()

    def fill(self, budget: Budget) -> Pausing[Ints | None]:
        """A domain for each group; None if there is none, or none was found.

        A wrong set for one of the first domains shows late, so the search starts again after some dead ends, each time
        with another order of the sets and more patience.
        """
        spare = int(self.room[0].sum()) - int(self.load[0].sum())
        self._kind_of_domain = self._domain_kinds()
        self._failed.clear()
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
        waiting, domains = self._by_kind[found[self._by_kind] < 0], np.flatnonzero(free)
        if not len(waiting):
            return True
        state = (self._kind_of_group[waiting].tobytes(), np.sort(self._kind_of_domain[domains]).tobytes())
        if not len(domains) or state in self._failed:
            return False
        if not budget.spend_cells(len(self.load) * len(waiting) * len(domains)):
            self._cut = True
            return False
        if budget.pause_due():
            yield
        cut, self._cut = self._cut, False
        filled = yield from self._fill_next(found, free, waiting, domains, spare, budget)
        if not filled and not self._cut:
            self._failed.add(state)
        self._cut |= cut
        return filled

    def _fill_next(
        self, found: Ints, free: Mask, waiting: Ints, domains: Ints, spare: int, budget: Budget
    ) -> Pausing[bool]:
        """Fill the domain that fewest groups fit into, and then the others."""
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

    def _domain_kinds(self) -> Ints:
        """Domains of one kind hold the same sets, as far as is known."""
        ruled_out = [
            sorted(kinds for at, kinds in self._forbidden if at == domain) for domain in range(len(self.allowed.T))
        ]
        number = {repr(kinds): at for at, kinds in enumerate(ruled_out)}
        known = np.array([[number[repr(kinds)]] for kinds in ruled_out], dtype=np.int64)
        return _kinds(np.hstack((self.room.T, self.allowed.T.astype(np.int64), known)))

    def _sets(self, domain: int, waiting: Ints, spare: int, budget: Budget) -> list[tuple[Ints, int]]:
        """The sets that fill a domain best, and what they waste; no further domain may waste more than is spare."""
        load, allowed, kinds = self.load[:, waiting], self.allowed[waiting, domain], self._kind_of_group[waiting]
        # Groups of one kind, which are neighbours here, join a set in one order only.
        before = np.where(np.append(False, kinds[1:] == kinds[:-1]), np.arange(len(kinds)) - 1, -2)
        start = np.full(1, -1, dtype=np.int64)
        sizes = [_Sets(start, start, self.room[:, domain][None, :])]
        while len(sizes[-1].group):
            following = _one_more(sizes[-1], load, allowed, before, budget)
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
            ranked += [(int(keys[at]), size, int(usable[at]), int(wastes[at])) for at in order]
        ranked.sort()
        named = ((waiting[_members(sizes, size, at)], waste) for _, size, at, waste in ranked)
        possible = [each for each in named if (domain, self._kinds_of(each[0])) not in self._forbidden]
        if len(ranked) > MOST_TRIED:
            self._cut = True
        return possible[:MOST_TRIED]

    def _shuffle(self, sets: Ints, spare: int) -> Ints:
        """What another start adds to the waste of each set when it orders them."""
        return (sets * 40_503 + self._start * 25_171) % 1_021 * (spare * min(self._start, 4) // 8_192)


def _one_more(sets: _Sets, load: Ints, allowed: Mask, before: Ints, budget: Budget) -> _Sets | None:
    """Every set with every further group that no row rules out, in one order only; None if there are too many."""
    groups = load.shape[1]
    if len(sets.group) > MOST_SETS or not budget.spend_cells(len(sets.group) * groups):
        return None
    positions: Ints = np.arange(groups, dtype=np.int64)
    later: Mask = np.greater(positions[None, :], sets.group[:, None])
    in_order: Mask = (before[None, :] < 0) | (before[None, :] == sets.group[:, None])
    light: Mask = load[0][None, :] <= sets.left[:, 0, None]
    able: Mask = allowed[None, :] & later & in_order & light
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


def _kinds(rows: Ints) -> Ints:
    """A number for each row; equal rows have the same."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
