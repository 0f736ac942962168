"""`Gain`: a node where more fits than before, and for whom.

For an entity that may preempt, room counts as soon as it could be made free: a pod of lower priority that leaves gives
it nothing new. A gain therefore says for which priorities of preemptors it is one.
"""

from __future__ import annotations

from typing import NamedTuple

HIGHEST = 1 << 62  # above every priority


class Gain(NamedTuple):
    """A slot where more fits than before: for preemptors of some priorities, and for all others if `free`."""

    slot: int
    lowest: int
    highest: int
    free: bool

    def helps(self, priority: int, *, preempts: bool) -> bool:
        return self.lowest <= priority <= self.highest if preempts else self.free
