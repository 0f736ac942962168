"""Which domain each group takes: for every domain one of its sets of groups, so that every group is in one of them.

The sets of each domain are enumerated first (`group_sets`), as far as they are few. What is left unused in all domains
together is fixed for every row, so a set that leaves too much beside the least that the others leave is dropped, and a
domain with one set left takes it. Then the domain with the fewest sets is decided, the sets first that leave least of
what is scarce; domains with too many sets are enumerated when few groups are left. If that meets too many dead ends the
groups are priced (`set_prices`), and from then on the sets come first that lose least at these prices. An early mistake
shows late, so the search starts again after some states, each time with another order of the sets and more patience. An
assignment found here only proposes; that there is none is a proof, computed in integers, if nothing was left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.group_sets import GroupSets, all_sets, some_sets, together
from muster.scheduler.planning.node_matrix import Ints, Mask
from muster.scheduler.planning.set_prices import GroupPrices, price_groups

MOST_STARTS, FIRST_STATES = 40, 20  # how often to start, and how many states beside one a domain at first


MOST_TRIED = 12  # sets of a domain that was not enumerated in full


MOST_PRICINGS = 4  # where domains have too many sets to price all of them


MOST_PRICED = 200  # sets of a domain that are priced


FEW_SAMPLES = 50  # below which a domain is sampled again


FEW_GROUPS = 14  # of which all sets for a domain can be enumerated


SCALE = 1 << 10  # parts of what is spare in a row, in which what a set leaves is counted


@dataclass(slots=True, eq=False)
class _State:
    """What is left to decide."""

    sets: GroupSets  # of the kinds of domains that are enumerated
    known: Mask  # [kind of domain]: enumerated
    open: Ints  # [kind of domain]: how many take no set yet
    waiting: Ints  # [kind of group]: how many are in no set yet
    options: list[int] = field(default_factory=list[int])  # sets to try next, the last one first
    choices: int = 0  # made before its options
    cut: bool = False  # something was left out here or below


class DomainFilling:
    """The search for domains that obeys the rows as they are when it is asked."""

    def __init__(self, rows: DomainRows, budget: Budget) -> None:
        self.rows = rows
        self.budget = budget
        self.complete = True  # every set was tried or is known not to pack
        self._sets: GroupSets | None = None  # of the kinds of domains that are known
        self._known: Mask = np.zeros(len(rows.domains), dtype=bool)
        self._samples: dict[int, GroupSets] = {}  # some sets of those that are not
        self._chosen: list[tuple[int, Ints]] = []  # a kind of domain, and how many groups of each kind it takes
        self._failed: set[tuple[bytes, bytes]] = set()  # states, for as long as no row is added
        self._start = 0
        self._prices: GroupPrices | None = None

    def fill(self) -> Pausing[Ints | None]:
        """A domain for each group; None if there is none, or none was found."""
        yield from self._enumerate()
        self._failed.clear()
        states = FIRST_STATES + int(self.rows.domains.sum())
        found = yield from self._run(0, states)
        if found is None:
            found = yield from self._price()
        for start in range(MOST_STARTS):
            if found is not None or self.budget.exhausted:
                break
            found = yield from self._run(start, states)
            states += states // 4
        if found is None:
            self.complete = False
        return self._assignment() if found else None

    def _enumerate(self) -> Pausing[None]:
        """The sets of every kind of domain that has few, once; then what new rows leave of them."""
        if self._sets is not None:
            self._sets = self._sets.refreshed(self.rows)
            self._samples = {domain: sets.refreshed(self.rows) for domain, sets in self._samples.items()}
            return
        parts: list[GroupSets] = []
        spare = self._spare(self.rows.domains, self.rows.groups)
        for domain in range(len(self.rows.domains)):
            sets = all_sets(self.rows, domain, self.rows.groups, spare, self.budget)
            if sets is not None:
                self._known[domain] = True
                parts.append(sets)
            if self.budget.pause_due():
                yield
        self._sets = together(parts, self.rows)

    def _begin(self) -> _State:
        """All domains open, all groups waiting."""
        assert self._sets is not None, "sets are enumerated first"
        self._chosen = []
        return _State(self._sets, self._known.copy(), self.rows.domains.copy(), self.rows.groups.copy())

    def _spare(self, domains: Ints, groups: Ints) -> Ints:
        """By row, what some domains have beyond some groups."""
        return domains @ self.rows.room - groups @ self.rows.load

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

    # --- prices ----------------------------------------------------------------------------------

    def _price(self) -> Pausing[bool | None]:
        """Find the prices of groups that order the sets from now on; False if they prove that there is no assignment.

        Sets of domains that have too many are added where they are dear, and priced again.
        """
        state = self._begin()
        settled = self._settle(state)
        if settled is not None:
            return None if state.cut else settled
        unknown = np.flatnonzero(~state.known & (state.open > 0)).tolist()
        for _ in range(MOST_PRICINGS if unknown else 1):
            sets = together([state.sets, *self._sampled(state, unknown)], self.rows)
            chosen = sets.best(self._penalty(state, sets), MOST_PRICED)
            if (np.bincount(chosen.domain, minlength=len(state.open))[state.open > 0] == 0).any():
                return None
            prices = yield from price_groups(chosen, state.open, state.waiting, self.budget)
            if prices is None:
                return None
            self._prices = prices
            if prices.sufficient:
                return None
            if not unknown and len(chosen) == len(sets):
                return False
        return None

    def _sampled(self, state: _State, unknown: list[int]) -> list[GroupSets]:
        """Some sets of the domains that have too many; with prices, those in addition that are dear."""
        spare, taken = self._spare(state.open, state.waiting), np.flatnonzero(state.waiting < self.rows.groups)
        weights = self._prices.weights if self._prices is not None else None
        for domain in unknown:
            known = self._samples.get(domain)
            if known is not None:
                known = known.only(known.within(state.waiting, taken))
            if known is None or len(known) < FEW_SAMPLES or weights is not None:
                more = some_sets(self.rows, domain, state.waiting, spare, self.budget, weights)
                known = more if known is None else known if more is None else together([known, more], self.rows)
            if known is not None:
                self._samples[domain] = known
        return [self._samples[domain] for domain in unknown if domain in self._samples]

    # --- state by state --------------------------------------------------------------------------

    def _run(self, start: int, most: int) -> Pausing[bool | None]:
        """Whether every group finds a domain; None if states or the budget run out, or something was left out."""
        self._start = start
        stack, keys = list[_State](), list[tuple[bytes, bytes]]()
        state = self._begin()
        for _ in range(most):
            if self.budget.exhausted:
                return None
            if self.budget.pause_due():
                yield
            keys.append((state.waiting.tobytes(), state.open.tobytes()))
            settled = False if keys[-1] in self._failed else self._settle(state)
            if settled:
                return True
            if settled is None:
                self._order(state)
            state.choices = len(self._chosen)
            stack.append(state)
            while not stack[-1].options:
                ended, key = stack.pop(), keys.pop()
                if not ended.cut:
                    self._failed.add(key)
                if not stack:
                    return None if ended.cut else False
                stack[-1].cut |= ended.cut
            del self._chosen[stack[-1].choices :]
            state = self._take(stack[-1], stack[-1].options.pop())
        return None

    def _take(self, state: _State, option: int) -> _State:
        """The state after a domain takes a set."""
        domain, counts = int(state.sets.domain[option]), state.sets.counts[option]
        self._chosen.append((domain, counts))
        opened, waiting = state.open.copy(), state.waiting - counts
        opened[domain] -= 1
        changed = np.flatnonzero(counts)
        # Of a domain that is only sampled nothing is known once another one took its set.
        possible = state.sets.within(waiting, changed) & (state.known & (opened > 0))[state.sets.domain]
        return _State(state.sets.only(possible), state.known.copy(), opened, waiting)

    def _settle(self, state: _State) -> bool | None:
        """Drop the sets that leave too much, and take the only set of a domain, for as long as there are any.

        True once every group is in a set; False if that cannot be reached.
        """
        while state.waiting.any():
            spare = self._spare(state.open, state.waiting)
            if (spare < 0).any():
                return False
            found = self._drop(state, spare)
            if found is None:
                return False
            sizes, slack = found
            if not self._covered(state):
                return False
            if self._enumerate_more(state, sizes, slack):
                continue
            single = np.flatnonzero(sizes == 1)
            if not len(single):
                return None
            after = self._take(state, int(np.flatnonzero(state.sets.domain == single[0])[0]))
            state.sets, state.open, state.waiting = after.sets, after.open, after.waiting
        return True

    def _drop(self, state: _State, spare: Ints) -> tuple[Ints, Ints] | None:
        """Drop sets that leave too much: how many each kind of domain has then, and what is spare beyond the least.

        None if a domain has none.
        """
        while True:
            sets = state.sets
            if not self.budget.spend_cells(3 * sets.left.size):
                state.cut = True
                return None
            sizes = np.bincount(sets.domain, minlength=len(state.open))
            if ((state.open > 0) & state.known & (sizes == 0)).any():
                return None
            present = np.flatnonzero(sizes)
            if not len(present):
                return sizes, spare
            starts = np.cumsum(sizes[present]) - sizes[present]
            least = np.minimum.reduceat(sets.left, starts)
            slack = spare - state.open[present] @ least
            if (slack < 0).any():
                return None
            usable = np.flatnonzero((sets.left - np.repeat(least, sizes[present], axis=0) <= slack).all(axis=1))
            if len(usable) == len(sets):
                return sizes, slack
            state.sets = sets.only(usable)

    def _covered(self, state: _State) -> bool:
        """Whether every waiting group is in some set, or fits into a domain that is not enumerated."""
        elsewhere = self.rows.fits[~state.known & (state.open > 0)].any(axis=0)
        return not (state.waiting.astype(bool) & ~elsewhere & ~state.sets.counts.any(axis=0)).any()

    def _enumerate_more(self, state: _State, sizes: Ints, slack: Ints) -> bool:
        """Enumerate a domain whose sets were too many, once few groups are left or there is nothing else to decide."""
        unknown = np.flatnonzero(~state.known & (state.open > 0))
        if not len(unknown):
            return False
        groups = np.count_nonzero(self.rows.fits[unknown] & (state.waiting > 0), axis=1)
        for at in np.argsort(groups, kind="stable").tolist():
            if groups[at] > FEW_GROUPS and sizes.any():
                return False
            domain = int(unknown[at])
            sets = all_sets(self.rows, domain, state.waiting, slack, self.budget)
            if sets is not None:
                state.sets = together([state.sets, sets], self.rows)
                state.known[domain] = True
                return True
        return False

    def _order(self, state: _State) -> None:
        """The sets to try: those of the domain, or with the group, that has fewest; best first."""
        sizes = np.bincount(state.sets.domain, minlength=len(state.open))
        if not sizes.any():
            self._enumerate_some(state)
            sizes = np.bincount(state.sets.domain, minlength=len(state.open))
            if not sizes.any():
                return
        present = np.flatnonzero(sizes)
        fewest = int(present[np.lexsort((self.rows.room[present, 0], sizes[present]))[0]])
        among = np.flatnonzero(state.sets.domain == fewest)
        if not (~state.known & (state.open > 0)).any():
            choices = np.where(state.waiting > 0, np.count_nonzero(state.sets.counts, axis=0), np.iinfo(np.int64).max)
            group = int(choices.argmin())
            if choices[group] < len(among):
                among = np.flatnonzero(state.sets.counts[:, group])
        penalty = self._penalty(state, state.sets.only(among)) + self._noise(among, len(state.open))
        order = among[np.argsort(penalty, kind="stable")]
        if not state.known[fewest]:
            order = order[:MOST_TRIED]
        state.options = order[::-1].tolist()

    def _enumerate_some(self, state: _State) -> None:
        """Some sets of the domain that fewest groups fit into: all domains have too many."""
        fits = np.count_nonzero(self.rows.fits & (state.waiting > 0), axis=1)
        domain = int(np.where(state.open > 0, fits, np.iinfo(np.int64).max).argmin())
        sets = some_sets(self.rows, domain, state.waiting, self._spare(state.open, state.waiting), self.budget)
        state.cut = True
        if sets is not None:
            state.sets = sets

    def _penalty(self, state: _State, sets: GroupSets) -> Ints:
        """How much of what is spare in any row a set uses up; at prices, what it is worth less than its domain is."""
        if self._prices is not None:
            worth = self._prices.worth
            loss = worth[sets.domain] - sets.counts @ self._prices.weights
            return np.maximum(loss, 0) * SCALE * SCALE // max(1, int(worth.max()))
        spare = np.maximum(self._spare(state.open, state.waiting), 1)
        share = np.minimum(sets.left * SCALE // spare, SCALE)
        return (share * share).sum(axis=1)

    def _noise(self, sets: Ints, domains: int) -> Ints:
        """What another start adds when it orders sets."""
        return (
            (sets * 40_503 + self._start * 25_171) % 1_021 * (SCALE * SCALE * min(self._start, 4) // (domains * 1_021))
        )
