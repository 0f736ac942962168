"""What if these victims were gone: the cluster without them, and the plan that would then be possible.

Pods that leave anyway are gone in every trial; seats nominated for others are taken.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from muster.scheduler.framework.shape import Shape
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import GroupRequest, leaves
from muster.scheduler.placement.verdict import Placed, Verdict
from muster.scheduler.planning.plan import plan
from muster.scheduler.preemption.victim_table import Victim
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.trial import Trial


class EvictionTrial:
    """Plans on a cluster from which some victims are taken away."""

    def __init__(
        self, evaluator: Evaluator, nominated: Sequence[tuple[Shape, int]], leaving: Sequence[str], steps: int
    ) -> None:
        self.evaluator = evaluator
        self.cluster = evaluator.cluster
        self.nominated = nominated
        self.leaving = [uid for uid in leaving if uid in self.cluster.pods]
        self._steps = steps

    @contextmanager
    def without(self, victims: Sequence[Victim]) -> Generator[Trial]:
        """A trial in which these victims are gone."""
        with self.evaluator.trial() as trial:
            for shape, slot in self.nominated:
                trial.place(shape, slot)
            trial.evict_all(self.leaving)
            trial.evict_all(uid for victim in victims for uid in victim.uids)
            yield trial

    def plan(self, request: GroupRequest, victims: Sequence[Victim], *, extras: bool = False) -> Verdict:
        """The verdict on a request once these victims are gone."""
        with self.without(victims) as trial:
            return plan(request, trial, Budget(self._steps), extras=extras)

    def suffices(self, request: GroupRequest, victims: Sequence[Victim]) -> bool:
        return isinstance(self.plan(request, victims), Placed)

    def victims_after_reprieve(
        self, request: GroupRequest, victims: Sequence[Victim], order: Sequence[Victim]
    ) -> list[Victim] | None:
        """Plan without all victims, then reprieve, in this order, those that have room beside the placed pods.

        The others remain victims; None if not even evicting all of them helps.
        """
        verdict = self.plan(request, victims)
        if not isinstance(verdict, Placed):
            return None
        shapes = {member.uid: member.shape for leaf in leaves(request) for member in leaf.members}
        placed = {(one.index, shapes[one.uid].id): shapes[one.uid] for one in verdict.assignments}
        with self.without(victims) as trial:
            for assignment in verdict.assignments:
                trial.place(shapes[assignment.uid], assignment.index)
            reprieve = _Reprieve(trial, [(slot, shape) for (slot, _), shape in sorted(placed.items(), key=_by_slot)])
            return reprieve.victims(list(order))


def _by_slot(item: tuple[tuple[int, int], Shape]) -> tuple[int, int]:
    return item[0]


class _Reprieve:
    """Pods that are placed in a trial, and which victims can be restored without making a node infeasible for them."""

    def __init__(self, trial: Trial, placed: list[tuple[int, Shape]]) -> None:
        self.trial = trial
        self.placed = placed
        self.slots = {slot for slot, _ in placed}
        self.dependent = [pair for pair in placed if not trial.independent(pair[1])]

    def victims(self, order: list[Victim]) -> list[Victim]:
        """Those for which there is no room. Many are restored at once where that is possible."""
        if not order:
            return []
        mark = self.trial.mark()
        self.trial.restore_all(uid for victim in order for uid in victim.uids)
        if self._still_feasible(order):
            return []
        self.trial.undo(mark)
        if len(order) == 1:
            return order
        middle = len(order) // 2
        return self.victims(order[:middle]) + self.victims(order[middle:])

    def _still_feasible(self, restored: list[Victim]) -> bool:
        cluster = self.trial.cluster
        touched = {cluster.pods[uid].slot for victim in restored for uid in victim.uids} & self.slots
        for slot, shape in self.placed:
            if slot in touched:
                requested = shape.request_vector(cluster) > 0
                if (cluster.used[requested, slot] > cluster.alloc[requested, slot]).any():
                    return False
        return all(self._feasible(slot, shape) for slot, shape in self.dependent)

    def _feasible(self, slot: int, shape: Shape) -> bool:
        self.trial.unplace(shape, slot)
        feasible = bool(self.trial.feasible(shape)[slot])
        self.trial.place(shape, slot)
        return feasible
