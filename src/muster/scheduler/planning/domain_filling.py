"""Which domain each group takes: for every domain one of its sets of groups, so that every group is in one of them.

The sets of each domain are enumerated first (`group_sets`), as far as they are few. Then the domain with the fewest
sets is decided, the sets first that leave least of what is scarce; `filling_rules` has what follows from that, and
domains with too many sets are enumerated when few groups are left. If that meets too many dead ends, fractional
fillings are followed (`set_diving`). At last the groups are priced (`set_prices`), which may prove that there is no
assignment, and the sets come first that lose least at these prices, again and again, each time with another order of
the sets and more patience. After a proposal that did not pack, most domains keep their sets. An assignment found here
only proposes; that there is none is a proof, computed in integers, if nothing was left out.
"""

from __future__ import annotations

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.filling_rules import Choice, FillingRules, FillingState
from muster.scheduler.planning.group_sets import GroupSets, all_sets, some_sets, together
from muster.scheduler.planning.node_matrix import Ints, Mask
from muster.scheduler.planning.set_diving import SetDiving
from muster.scheduler.planning.set_prices import GroupPrices, price_groups

MOST_STARTS, FIRST_STATES = 40, 20  # how often to start, and how many states beside one a domain at first


STARTS_PER_DIVE = 3  # the search state by state and dives take turns


RELEASED = (3, 8)  # domains that give up their sets for those whose sets did not pack


MOST_TRIED = 12  # sets of a domain that was not enumerated in full


MOST_PRICINGS = 4  # where domains have too many sets to price all of them


MOST_PRICED = 200  # sets of a domain that are priced


SCALE = 1 << 10  # parts of what is spare in a row, in which what a set leaves is counted


class DomainFilling:
    """The search for domains that obeys the rows as they are when it is asked."""

    def __init__(self, rows: DomainRows, budget: Budget) -> None:
        self.rows = rows
        self.budget = budget
        self.rules = FillingRules(rows, budget)
        self.complete = True  # every set was tried or is known not to pack
        self._sets: GroupSets | None = None  # of the kinds of domains that are known
        self._known: Mask = np.zeros(len(rows.domains), dtype=bool)
        self._chosen: list[Choice] = []  # of the last proposal
        self._failed: set[tuple[bytes, bytes]] = set()  # states, for as long as no row is added
        self._start = 0
        self._diving = SetDiving(rows, budget)
        self._prices: GroupPrices | None = None

    def fill(self) -> Pausing[Ints | None]:
        """A domain for each group; None if there is none, or none was found."""
        yield from self._enumerate()
        self._failed.clear()
        states = FIRST_STATES + int(self.rows.domains.sum())
        found = yield from self._repair()
        if found is None:
            found = yield from self._run(0, states, self._begin())
        if found is None:
            found = yield from self._dive(0)
        if found is None:
            found = yield from self._price()
        for start in range(MOST_STARTS):
            if found is None and start % STARTS_PER_DIVE == STARTS_PER_DIVE - 1:
                found = yield from self._dive(1 + start // STARTS_PER_DIVE)
            if found is not None or self.budget.exhausted:
                break
            found = yield from self._run(start, states, self._begin())
            states += states // 4
        if found is None:
            self.complete = False
        return self._assignment() if found else None

    def _enumerate(self) -> Pausing[None]:
        """The sets of every kind of domain that has few, once; then what new rows leave of them."""
        if self._sets is not None:
            self.budget.spend_cells(2 * self._sets.left.size)
            self._sets = self._sets.refreshed(self.rows)
            return
        parts: list[GroupSets] = []
        spare = self.rules.spare(self.rows.domains, self.rows.groups)
        for domain in range(len(self.rows.domains)):
            sets = all_sets(self.rows, domain, self.rows.groups, spare, self.budget)
            if sets is not None:
                self._known[domain] = True
                parts.append(sets)
            if self.budget.pause_due():
                yield
        self._sets = together(parts, self.rows)

    def _begin(self) -> FillingState:
        """All domains open, all groups waiting."""
        assert self._sets is not None, "sets are enumerated first"
        return FillingState(self._sets, self._known.copy(), self.rows.domains.copy(), self.rows.groups.copy())

    def _assignment(self) -> Ints:
        """A domain for each group, from what was chosen for kinds of them."""
        rows = self.rows
        groups = [np.flatnonzero(rows.kind_of_group == kind).tolist() for kind in range(len(rows.groups))]
        domains = [np.flatnonzero(rows.kind_of_domain == kind).tolist() for kind in range(len(rows.domains))]
        found = np.full(len(rows.kind_of_group), -1, dtype=np.int64)
        for domain_kind, counts in self._chosen:
            domain = domains[domain_kind].pop()
            for kind in np.flatnonzero(counts).tolist():
                for _ in range(min(int(counts[kind]), len(groups[kind]))):
                    found[groups[kind].pop()] = domain
        return found

    # --- beside the search state by state --------------------------------------------------------

    def _repair(self) -> Pausing[bool | None]:
        """Domains keep the sets of the last proposal that are still allowed, but for the few that have most others."""
        kept = [choice for choice in self._chosen if self.rules.allows(choice)]
        begin = self._begin()
        sizes = np.where(begin.known, begin.sizes, np.iinfo(np.int64).max)
        kept.sort(key=lambda choice: (int(sizes[choice[0]]), choice[0]))
        for released in RELEASED:
            if len(kept) <= released or self.budget.exhausted:
                break
            state = self.rules.take(begin, kept[: len(kept) - released])
            found = yield from self._run(0, FIRST_STATES, state)
            if found:
                return True
        return None

    def _dive(self, variant: int) -> Pausing[bool | None]:
        """Follow fractional fillings, and search what they leave."""
        state = self._begin()
        if self._diving.hopeless or self.rules.settle(state) is not None:
            return None
        reached = yield from self._diving.dive(state, variant)
        if reached is None:
            return None
        found = yield from self._run(0, FIRST_STATES + int(reached.open.sum()), reached)
        return found or None

    def _price(self) -> Pausing[bool | None]:
        """Find the prices of groups that order the sets from now on; False if they prove that there is no assignment.

        Sets of domains that have too many are added where they are dear, and priced again.
        """
        state = self._begin()
        settled = self.rules.settle(state)
        if settled is not None:
            return None
        weights, spare = None, self.rules.spare(state.open, state.waiting)
        for _ in range(MOST_PRICINGS if len(state.unknown) else 1):
            samples = yield from self._diving.samples.of(state, spare, weights)
            sets = together([state.sets, *samples], self.rows)
            chosen = sets.best(self._penalty(state, sets), MOST_PRICED)
            if (np.bincount(chosen.domain, minlength=len(state.open))[state.open > 0] == 0).any():
                return None
            prices = yield from price_groups(chosen, state.open, state.waiting, self.budget)
            if prices is None:
                return None
            self._prices, weights = prices, prices.weights
            if prices.sufficient:
                return None
            if not samples and len(chosen) == len(sets):
                return False
        return None

    # --- state by state --------------------------------------------------------------------------

    def _run(self, start: int, most: int, state: FillingState) -> Pausing[bool | None]:
        """Whether every group finds a domain; None if states or the budget run out, or something was left out."""
        self._start = start
        stack, keys = list[FillingState](), list[tuple[bytes, bytes]]()
        for _ in range(most):
            if self.budget.exhausted:
                return None
            if self.budget.pause_due():
                yield
            keys.append((state.waiting.tobytes(), state.open.tobytes()))
            settled = False if keys[-1] in self._failed else self.rules.settle(state)
            if settled:
                self._chosen = state.chosen
                return True
            if settled is None:
                self._order(state)
            stack.append(state)
            while not stack[-1].options:
                ended, key = stack.pop(), keys.pop()
                if not ended.cut:
                    self._failed.add(key)
                if not stack:
                    return None if ended.cut else False
                stack[-1].cut |= ended.cut
            top = stack[-1]
            option = top.options.pop()
            state = self.rules.take(top, [(int(top.sets.domain[option]), top.sets.counts[option])])
        return None

    def _order(self, state: FillingState) -> None:
        """The sets to try: those of the domain, or with the group, that has fewest; best first."""
        sizes = state.sizes
        if not sizes.any():
            self._enumerate_some(state)
            sizes = state.sizes
            if not sizes.any():
                return
        present = np.flatnonzero(sizes)
        fewest = int(present[np.lexsort((self.rows.room[present, 0], sizes[present]))[0]])
        among = np.flatnonzero(state.sets.domain == fewest)
        if not len(state.unknown):
            choices = np.where(state.waiting > 0, np.count_nonzero(state.sets.counts, axis=0), np.iinfo(np.int64).max)
            group = int(choices.argmin())
            if choices[group] < len(among):
                among = np.flatnonzero(state.sets.counts[:, group])
        penalty = self._penalty(state, state.sets.only(among)) + self._noise(among, len(state.open))
        order = among[np.argsort(penalty, kind="stable")]
        if not state.known[fewest]:
            order = order[:MOST_TRIED]
        state.options = order[::-1].tolist()

    def _enumerate_some(self, state: FillingState) -> None:
        """Some sets of the domain that fewest groups fit into: all domains have too many."""
        fits = np.count_nonzero(self.rows.fits & (state.waiting > 0), axis=1)
        domain = int(np.where(state.open > 0, fits, np.iinfo(np.int64).max).argmin())
        spare = self.rules.spare(state.open, state.waiting)
        sets = some_sets(self.rows, domain, state.waiting, spare, self.budget)
        state.cut = True
        if sets is not None:
            state.sets = sets

    def _penalty(self, state: FillingState, sets: GroupSets) -> Ints:
        """How much of what is spare in any row a set uses up; at prices, what it is worth less than its domain is."""
        if self._prices is not None:
            worth = self._prices.worth
            loss = worth[sets.domain] - sets.counts @ self._prices.weights
            return np.maximum(loss, 0) * SCALE * SCALE // max(1, int(worth.max()))
        spare = np.maximum(self.rules.spare(state.open, state.waiting), 1)
        share = np.minimum(sets.left * SCALE // spare, SCALE)
        return (share * share).sum(axis=1)

    def _noise(self, sets: Ints, domains: int) -> Ints:
        """What another start adds when it orders sets."""
        return (
            (sets * 40_503 + self._start * 25_171) % 1_021 * (SCALE * SCALE * min(self._start, 4) // (domains * 1_021))
        )
