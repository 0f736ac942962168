"""The cheapest set of few units, proven: no cheaper set suffices.

Sets are looked at in order of price. One that fails is grown to the largest that still fails; everyone
outside of that is a list of which at least one must go, and whole families of sets need no look any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muster.scheduler.preemption.toll import Toll
from muster.scheduler.preemption.units import Unit

MOST_LOOKS = 500  # plans that a proof may cost where growing a failed set is not sound

Suffices = Callable[[list[Unit]], bool]


def cheapest(
    units: Sequence[Unit], toll: Toll, suffices: Suffices, *, below: Sequence[Unit] | None, monotone: bool
) -> list[Unit] | None:
    """The cheapest set that suffices, if it is cheaper than `below`; `monotone`: a larger set suffices as well."""
    everyone = (1 << len(units)) - 1
    limit = toll.cost(below) if below is not None else None
    priced = [(toll.cost(chosen), mask) for mask in range(everyone + 1) for chosen in [_chosen(units, mask)]]
    one_must_go: list[int] = []
    looks = 0
    for cost, mask in sorted(priced):
        if limit is not None and cost >= limit:
            return None
        if any(not mask & some for some in one_must_go):
            continue
        if suffices(_chosen(units, mask)):
            return _chosen(units, mask)
        looks += 1
        if monotone:
            one_must_go.append(everyone & ~_grown(units, mask, suffices))
        elif looks > MOST_LOOKS:
            return None
    return None


def _grown(units: Sequence[Unit], mask: int, suffices: Suffices) -> int:
    """The failed set with everyone added who does not help it."""
    for bit in range(len(units)):
        more = mask | 1 << bit
        if more != mask and not suffices(_chosen(units, more)):
            mask = more
    return mask


def _chosen(units: Sequence[Unit], mask: int) -> list[Unit]:
    return [unit for bit, unit in enumerate(units) if mask >> bit & 1]
