"""What if these units were gone: the cluster without them, and the plan that would then be possible.

Pods that leave anyway are gone in every what-if; seats that are held for others are taken.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.request import GroupRequest, leaves
from muster.scheduler.placement.verdict import Budget, Placed, Verdict
from muster.scheduler.planning.plan import plan
from muster.scheduler.preemption.victims import Victim
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.trial import Trial


class EvictionTrial:
    """Plans on a cluster from which some units are taken away."""

    def __init__(
        self, evaluator: Evaluator, held: Sequence[tuple[Shape, int]], leaving: Sequence[str], steps: int
    ) -> None:
        self.evaluator = evaluator
        self.cluster = evaluator.cluster
        self.held = held
        self.leaving = [uid for uid in leaving if uid in self.cluster.pods]
        self._steps = steps

    @contextmanager
    def emptied(self, victims: Sequence[Victim]) -> Generator[Trial]:
        with self.evaluator.trial() as trial:
            for shape, slot in self.held:
                trial.place(shape, slot)
            trial.evict_all(self.leaving)
            trial.evict_all(uid for unit in victims for uid in unit.uids)
            yield trial

    def plan(self, request: GroupRequest, victims: Sequence[Victim], *, extras: bool = False) -> Verdict:
        with self.emptied(victims) as trial:
            return plan(request, trial, Budget(self._steps), extras=extras)

    def suffices(self, request: GroupRequest, victims: Sequence[Victim]) -> bool:
        return isinstance(self.plan(request, victims), Placed)

    # --- seats stay, units come back ---------------------------------------------------------------

    def reprieved(self, request: GroupRequest, pool: Sequence[Victim], order: Sequence[Victim]) -> list[Victim] | None:
        """Plan without the pool, then let back, in this order, whoever has room beside the seats; the rest must go."""
        verdict = self.plan(request, pool)
        if not isinstance(verdict, Placed):
            return None
        shapes = {member.uid: member.shape for leaf in leaves(request) for member in leaf.members}
        seats = sorted({(seat.index, shapes[seat.uid].id): shapes[seat.uid] for seat in verdict.assignments}.items())
        with self.emptied(pool) as trial:
            for seat in verdict.assignments:
                trial.place(shapes[seat.uid], seat.index)
            bench = _Bench(trial, [(slot, shape) for (slot, _), shape in seats])
            return bench.refused(list(order))


class _Bench:
    """Seats that are taken in a trial, and who can come back without disturbing them."""

    def __init__(self, trial: Trial, seats: list[tuple[int, Shape]]) -> None:
        self.trial = trial
        self.seats = seats
        self.slots = {slot for slot, _ in seats}
        self.alone = [pair for pair in seats if not trial.independent(pair[1])]  # judged seat by seat

    def refused(self, order: list[Victim]) -> list[Victim]:
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

    def _undisturbed(self, back: list[Victim]) -> bool:
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
        allowed = bool(self.trial.feasible(shape)[slot])
        self.trial.place(shape, slot)
        return allowed
