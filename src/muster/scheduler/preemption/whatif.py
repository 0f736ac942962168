"""What if these units were gone: the cluster without them, and the plan that would then be possible.

Pods that leave anyway are gone in every what-if; seats that are held for others are taken.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from muster.scheduler.cluster import Cluster
from muster.scheduler.planning import plan
from muster.scheduler.planning.demand import Demand, leaves
from muster.scheduler.planning.verdict import Budget, Placed, Verdict
from muster.scheduler.preemption.units import Unit
from muster.scheduler.shapes import Shape
from muster.scheduler.trial import Trial


class WhatIf:
    """Plans on a cluster from which some units are taken away."""

    def __init__(self, cluster: Cluster, held: Sequence[tuple[Shape, int]], leaving: Sequence[str], steps: int) -> None:
        self.cluster = cluster
        self.held = held
        self.leaving = [uid for uid in leaving if uid in cluster.pods]
        self._steps = steps

    @contextmanager
    def emptied(self, victims: Sequence[Unit]) -> Generator[Trial]:
        with self.cluster.trial() as trial:
            for shape, slot in self.held:
                trial.place(shape, slot)
            trial.evict_all(self.leaving)
            trial.evict_all(uid for unit in victims for uid in unit.uids)
            yield trial

    def plan(self, demand: Demand, victims: Sequence[Unit], *, extras: bool = False) -> Verdict:
        with self.emptied(victims) as trial:
            return plan(demand, trial, Budget(self._steps), extras=extras)

    def suffices(self, demand: Demand, victims: Sequence[Unit]) -> bool:
        return isinstance(self.plan(demand, victims), Placed)

    # --- seats stay, units come back ---------------------------------------------------------------

    def reprieved(self, demand: Demand, pool: Sequence[Unit], order: Sequence[Unit]) -> list[Unit] | None:
        """Plan without the pool, then let back, in this order, whoever has room beside the seats; the rest must go."""
        verdict = self.plan(demand, pool)
        if not isinstance(verdict, Placed):
            return None
        shapes = {member.uid: member.shape for leaf in leaves(demand) for member in leaf.members}
        seats = sorted({(seat.index, shapes[seat.uid].id): shapes[seat.uid] for seat in verdict.seats}.items())
        with self.emptied(pool) as trial:
            for seat in verdict.seats:
                trial.place(shapes[seat.uid], seat.index)
            bench = _Bench(trial, [(slot, shape) for (slot, _), shape in seats])
            return bench.refused(list(order))


class _Bench:
    """Seats that are taken in a trial, and who can come back without disturbing them."""

    def __init__(self, trial: Trial, seats: list[tuple[int, Shape]]) -> None:
        self.trial = trial
        self.seats = seats
        self.slots = {slot for slot, _ in seats}
        self.alone = [pair for pair in seats if not pair[1].independent]  # judged seat by seat

    def refused(self, order: list[Unit]) -> list[Unit]:
        """Those for whom there is no room. Whole stretches come back at once where nobody is in the way."""
        if not order:
            return []
        mark = self.trial.mark()
        self.trial.restore_all(uid for unit in order for uid in unit.uids)
        if self._undisturbed(order):
            return []
        self.trial.undo(mark)
        if len(order) == 1:
            return order
        middle = len(order) // 2
        return self.refused(order[:middle]) + self.refused(order[middle:])

    def _undisturbed(self, back: list[Unit]) -> bool:
        cluster = self.trial.cluster
        touched = {cluster.pods[uid].slot for unit in back for uid in unit.uids} & self.slots
        for slot, shape in self.seats:
            if slot in touched:
                asked = shape.request_vector(cluster) > 0
                if (cluster.used[asked, slot] > cluster.alloc[asked, slot]).any():
                    return False
        return all(self._allowed(slot, shape) for slot, shape in self.alone)

    def _allowed(self, slot: int, shape: Shape) -> bool:
        self.trial.unplace(shape, slot)
        allowed = bool(self.trial.allows(shape)[slot])
        self.trial.place(shape, slot)
        return allowed
