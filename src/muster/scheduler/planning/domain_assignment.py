"""Which domain each group takes, where several groups compete for the domains of one key: bounds before packing.

A domain holds a set of groups only if, for any weights of the shapes, the groups weigh no more than the best patterns
of its nodes together. Each such inequality is a row: what every domain holds, what every group weighs. An assignment
that exceeds no row is proposed by local search (move a group, or exchange two, whatever lowers the excess most; a group
that moved stays for some rounds). Then the groups of each domain are packed. A domain whose groups do not pack teaches
a new row, and the search goes on from where it was. All of this only proposes: that nothing is found proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from muster.scheduler.placement.budget import Budget
from muster.scheduler.planning.node_matrix import Ints, Mask
from muster.scheduler.planning.patterns import PatternTable

SCALE = 1 << 32  # what the groups of a domain weigh on average, in every row


NOT_ALLOWED = SCALE * 16


NEVER_FULL = np.int64(1) << 52


STAYS = 8  # rounds in which a group that moved stays


class DomainAssignment:
    """Groups, domains, and the rows that an assignment must not exceed."""

    def __init__(self, patterns: PatternTable, domain_of: Ints, demands: Ints, allowed: Mask) -> None:
        self.patterns = patterns
        self.domain_of = domain_of  # [node of the table], -1 for none
        self.demands = demands  # [group, type]
        self.allowed = allowed  # [group, domain]
        self.domains = allowed.shape[1]
        self.room: Ints = np.zeros((0, self.domains), dtype=np.int64)  # [row, domain]
        self.load: Ints = np.zeros((0, len(demands)), dtype=np.int64)  # [row, group]
        self._proven: list[bool] = []  # [row], False for a guess
        self.domain: Ints = np.full(len(demands), -1, dtype=np.int64)  # of each group
        self._moved: Ints = np.full(len(demands), -STAYS, dtype=np.int64)
        self._round = 0

    def add_weights(self, weights: Ints) -> None:
        """The row of some weights of the types, for all domains."""
        dearest = self.patterns.best(self.patterns.table @ weights)[self.patterns.member_of]
        inside = self.domain_of >= 0
        room = np.zeros(self.domains, dtype=np.int64)
        np.add.at(room, self.domain_of[inside], dearest[inside])
        self._add(room, self.demands @ weights, proven=True)

    def forbid(self, domain: int, weights: Ints) -> None:
        """At these weights the domain holds less than what it has now: its groups did not pack."""
        load = self.demands @ weights
        room = np.full(self.domains, NEVER_FULL)
        room[domain] = int(load[self.domain == domain].sum()) - 1
        self._add(room, load, proven=False)

    def _add(self, room: Ints, load: Ints, *, proven: bool) -> None:
        """Rows are multiplied, never divided: what just fits still does."""
        factor = max(1, SCALE * self.domains // max(1, int(load.sum())))
        scaled = np.where(room >= NEVER_FULL, NEVER_FULL, np.minimum(room, NEVER_FULL // factor) * factor)
        self.room = np.vstack((self.room, scaled))
        self.load = np.vstack((self.load, load * factor))
        self._proven.append(proven)

    @property
    def rows(self) -> int:
        return len(self._proven)

    def proven_rows(self) -> tuple[Ints, Ints]:
        """The rows that follow from weights: what domains hold, and what groups weigh."""
        return self.room[self._proven], self.load[self._proven]

    def rows_from(self, first: int) -> Iterator[tuple[Ints, Ints]]:
        """The rows that follow from weights and were added since there were so many rows."""
        for at in range(first, self.rows):
            if self._proven[at]:
                yield self.room[at], self.load[at]

    # --- search ----------------------------------------------------------------------------------

    def start(self) -> None:
        """The largest group first, each in the domain that it fills best."""
        for group in np.argsort(-self.load.max(axis=0), kind="stable").tolist():
            left = self.room - self._loads() - self.load[:, group, None]
            excess = np.maximum(-left, 0).sum(axis=0) + np.where(self.allowed[group], 0, NOT_ALLOWED)
            spare = np.where(self.room < NEVER_FULL, left, 0).sum(axis=0)
            self.domain[group] = int(np.lexsort((spare, excess))[0])

    def improve(self, rounds: int, budget: Budget) -> bool:
        """Move groups until no row is exceeded; False if that does not succeed."""
        for _ in range(rounds):
            loads = self._loads()
            excess = np.maximum(loads - self.room, 0).sum(axis=0)
            misplaced = ~self.allowed[np.arange(len(self.domain)), self.domain]
            if not excess.any() and not misplaced.any():
                return True
            movable = np.flatnonzero(misplaced | (excess[self.domain] > 0))
            if not budget.spend_cells(self.room.shape[0] * len(movable) * (self.domains + 2 * len(self.domain))):
                return False
            self._round += 1
            self._move(movable, loads, excess)
        return False

    def _move(self, movable: Ints, loads: Ints, excess: Ints) -> None:
        """The single move or exchange after which the excess is least."""
        home = self.domain[movable]
        own = self.load[:, movable]
        bad_home = np.where(self.allowed[movable, home], 0, NOT_ALLOWED)
        without = np.maximum(loads[:, home] - own - self.room[:, home], 0).sum(axis=0)
        arriving = np.maximum(loads[:, None, :] + own[:, :, None] - self.room[:, None, :], 0).sum(axis=0)
        change = (without - excess[home] - bad_home)[:, None] + arriving - excess[None, :]
        change += np.where(self.allowed[movable], 0, NOT_ALLOWED)
        change[np.arange(len(movable)), home] = NEVER_FULL
        exchange = self._exchanges(movable, loads, excess)
        staying = self._round - self._moved < STAYS
        change[staying[movable]] += NEVER_FULL
        exchange[staying[movable]] += NEVER_FULL
        exchange[:, staying] += NEVER_FULL
        move, swap = int(change.argmin()), int(exchange.argmin())
        if change.flat[move] <= exchange.flat[swap]:
            group, to = movable[move // self.domains], move % self.domains
            self._moved[group], self.domain[group] = self._round, to
        else:
            group, other = movable[swap // len(self.domain)], swap % len(self.domain)
            self._moved[group] = self._moved[other] = self._round
            self.domain[group], self.domain[other] = self.domain[other], self.domain[group]

    def _exchanges(self, movable: Ints, loads: Ints, excess: Ints) -> Ints:
        """By how much the excess changes when a group changes places with another one."""
        home, everybody = self.domain[movable], np.arange(len(self.domain))
        difference = self.load[:, None, :] - self.load[:, movable, None]  # [row, group, other]
        here = np.maximum((loads - self.room)[:, home, None] + difference, 0).sum(axis=0)
        there = np.maximum((loads - self.room)[:, None, self.domain] - difference, 0).sum(axis=0)
        change = here + there - excess[home][:, None] - excess[self.domain][None, :]
        change += np.where(self.allowed[movable][:, self.domain], 0, NOT_ALLOWED)
        change += np.where(self.allowed[everybody][:, home].T, 0, NOT_ALLOWED)
        change[home[:, None] == self.domain[None, :]] = NEVER_FULL
        return change

    def _loads(self) -> Ints:
        """[row, domain]: what the groups that are there weigh."""
        found = np.zeros_like(self.room)
        placed = np.flatnonzero(self.domain >= 0)
        np.add.at(found.T, self.domain[placed], self.load.T[placed])
        return found

    def tightest_first(self) -> list[int]:
        """The domains with groups, by what their fullest row has left."""
        left = np.where(self.room < NEVER_FULL, self.room - self._loads(), NEVER_FULL).min(axis=0)
        used = np.unique(self.domain)
        return used[np.argsort(left[used], kind="stable")].tolist()
