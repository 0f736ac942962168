"""Groups that compete for the domains of one key, as inequalities: what no assignment may exceed in any domain.

A domain holds a set of groups only if, for any weights of the shapes, the groups weigh no more than the best patterns
of its nodes together. Each such inequality is a row: what every domain holds, what every group weighs. A set of groups
that exceeds no row and yet does not pack in a domain is ruled out there by name.

Groups that nothing tells apart are of one kind, and so are domains whose nodes nothing tells apart; everything is
counted by kinds.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from muster.scheduler.planning.node_matrix import Ints, Mask
from muster.scheduler.planning.patterns import PatternTable


class DomainRows:
    """Groups, domains, the rows that no assignment may exceed, and the sets that do not pack."""

    def __init__(
        self, patterns: PatternTable, domain_of: Ints, demands: Ints, allowed: Mask, shared: Collection[int] = ()
    ) -> None:
        """`domain_of` is [node of the patterns], -1 for none; `demands` is [group, type]; `allowed` is [group, domain].

        In the domains that are `shared` other groups are settled already.
        """
        self.kind_of_group = _numbered(
            [row.tobytes() + able.tobytes() for row, able in zip(demands, allowed, strict=True)]
        )
        in_domains: list[Ints] = [np.sort(patterns.member_of[domain_of == at]) for at in range(allowed.shape[1])]
        self.kind_of_domain = _numbered(
            [
                (nodes.tobytes(), allowed[:, at].tobytes(), at if at in shared else -1)
                for at, nodes in enumerate(in_domains)
            ]
        )
        groups, domains = _first_of_each(self.kind_of_group), _first_of_each(self.kind_of_domain)
        self.groups: Ints = np.bincount(self.kind_of_group)  # [kind of group]: how many
        self.domains: Ints = np.bincount(self.kind_of_domain)  # [kind of domain]: how many
        self.room: Ints = np.zeros((len(domains), 0), dtype=np.int64)  # [kind of domain, row]
        self.load: Ints = np.zeros((len(groups), 0), dtype=np.int64)  # [kind of group, row]
        self.fits: Mask = allowed[np.ix_(groups, domains)].T  # [kind of domain, kind of group]: alone
        self.ruled_out: list[list[Ints]] = [[] for _ in domains]  # by kind of domain: groups of each kind in a set
        self._patterns = patterns
        self._demands = demands[groups]
        self._nodes: list[Ints] = [in_domains[int(at)] for at in domains]

    def add_weights(self, weights: Ints) -> None:
        """The row of some weights of the types."""
        dearest, load = self._patterns.best(self._patterns.table @ weights), self._demands @ weights
        # A domain uses no more than all groups take; so cut, no sum over domains exceeds 64 bits.
        held = [int(dearest[nodes].sum()) for nodes in self._nodes]
        room = np.array(held, dtype=np.int64).clip(max=int(self.groups @ load))
        self.room, self.load = np.column_stack((self.room, room)), np.column_stack((self.load, load))
        self.fits = self.fits & np.less_equal(load, room[:, None])

    def rule_out(self, domain: int, groups: Ints) -> None:
        """These groups, or others of their kinds, do not pack in a domain, or another of its kind."""
        found = np.bincount(self.kind_of_group[groups], minlength=len(self.groups))
        self.ruled_out[int(self.kind_of_domain[domain])].append(found)


def _numbered(keys: list[object]) -> Ints:
    """A number for each key; equal keys have the same."""
    number: dict[object, int] = {}
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)


def _first_of_each(kind_of: Ints) -> Ints:
    """For each kind, the first that is of it."""
    found = np.zeros(int(kind_of.max(initial=-1)) + 1, dtype=np.int64)
    found[kind_of[::-1]] = np.arange(len(kind_of))[::-1]
    return found
