"""States of a filling from plain numbers."""

from __future__ import annotations

import numpy as np

from muster.scheduler.placement.budget import Budget
from muster.scheduler.planning.domain_rows import DomainRows
from muster.scheduler.planning.filling_rules import FillingRules, FillingState
from muster.scheduler.planning.group_sets import all_sets, together
from tests.build.domain_rows import rows_of


def a_filling_state(
    rooms: list[int], groups: list[int], unknown: tuple[int, ...] = ()
) -> tuple[DomainRows, FillingState]:
    """All domains open, all groups waiting; the sets of all kinds of domains are known but where there are too many."""
    rows = rows_of(rooms, groups)
    budget = Budget(1_000_000)
    spare = FillingRules(rows, budget).spare(rows.domains, rows.groups)
    kinds = [kind for kind in range(len(rows.domains)) if kind not in unknown]
    found = {kind: all_sets(rows, kind, rows.groups, spare, budget) for kind in kinds}
    sets = {kind: each for kind, each in found.items() if each is not None}
    known = np.array([kind in sets for kind in range(len(rows.domains))])
    return rows, FillingState(together(list(sets.values()), rows), known, rows.domains.copy(), rows.groups.copy())
