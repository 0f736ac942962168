"""An entity that does not fit, and the planner to try changes with.

A try counts search steps like every plan, and all tries together have a limit, so that an explanation ends on any
cluster. Where a change makes room for all, the entities ahead in the queue are placed first, as they will be.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence, Set
from contextlib import contextmanager

import msgspec

from muster.api import types
from muster.scheduler.cycle.evaluate import Evaluation, current_request
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.groups.validity import find_fault
from muster.scheduler.interface.events import ObjectDeleted, ObjectUpdated
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import GroupRequest, leaves
from muster.scheduler.placement.verdict import Placed, Shortage
from muster.scheduler.planning.plan import plan
from muster.scheduler.queue.entity import EntityState, QueuedEntity
from muster.scheduler.runtime.trial import Trial
from muster.scheduler.status.messages import shortages_of

MOST_AHEAD = 64  # entities that are placed first
MOST_TRIES = 120
CHANGEABLE = frozenset({"minCount"})  # fields of groups that every server of 1.37 lets change
STEPS_FACTOR = 8  # all tries together may spend so many budgets


class ChangeTrial:
    """Tries changes with which one entity would fit."""

    def __init__(
        self,
        scheduler: Scheduler,
        entity: QueuedEntity,
        evaluation: Evaluation,
        changeable: Set[str] = CHANGEABLE,
    ) -> None:
        assert not isinstance(evaluation.verdict, Placed)
        self.scheduler = scheduler
        self.state = scheduler.state
        self.entity = entity
        self.changeable = changeable  # the fields of groups that the server lets change
        self.request = evaluation.request
        self.shortages: tuple[Shortage, ...] = shortages_of(evaluation.verdict)
        self._steps = self.state.config.budget_steps * STEPS_FACTOR
        self._tries = MOST_TRIES
        self._ahead: list[QueuedEntity] | None = None

    @property
    def spent(self) -> bool:
        """No more tries are left; what is not verified by now is not suggested."""
        return self._tries <= 0 or self._steps <= 0

    def fits(
        self, request: GroupRequest | None = None, evicted: Sequence[str] = (), *, without: EntityKey | None = None
    ) -> bool:
        """Whether the entity would be placed with this request, or without these pods."""
        if self.spent:
            return False
        self._tries -= 1
        request = request or self.request
        shared = request is self.request  # room for all, not a smaller request
        with self.state.evaluator.trial() as trial:
            for shape, slot in self.state.nominated_against(self.entity):
                trial.place(shape, slot)
            trial.evict_all(evicted)
            # The cheaper check first: alone it must fit in any case.
            if not isinstance(self._plan(request, trial), Placed):
                return False
            if not shared or not self.ahead():
                return True
            self._place_ahead(trial, without)
            return isinstance(self._plan(request, trial), Placed)

    def _plan(self, request: GroupRequest, trial: Trial) -> object:
        budget = Budget(max(1, min(self.state.config.budget_steps, self._steps)))
        verdict = plan(request, trial, budget, extras=False)
        self._steps -= budget.spent
        return verdict

    def ahead(self) -> list[QueuedEntity]:
        """The entities that are tried before this one when capacity appears."""
        if self._ahead is None:
            entities = self.state.queue.entities.values()
            own = self.entity.sort_key
            ready = [
                e for e in entities if e.sort_key < own and e.state is not EntityState.PREEMPTING and self._is_ready(e)
            ]
            self._ahead = sorted(ready, key=lambda entity: entity.sort_key)[:MOST_AHEAD]
        return self._ahead

    def _is_ready(self, entity: QueuedEntity) -> bool:
        group = entity.group
        if group is None:
            return entity.member is not None and not entity.member.gated
        ready = group.exists and group.admissible and not group.gated
        return ready and find_fault(group, self.state.forest) is None

    def _place_ahead(self, trial: Trial, without: EntityKey | None) -> None:
        state = self.state
        for entity in self.ahead():
            if entity.key == without:
                continue
            request = current_request(state, entity)
            budget = Budget(max(1, min(state.config.budget_steps, self._steps)))
            verdict = plan(request, trial, budget)
            self._steps -= budget.spent
            if isinstance(verdict, Placed):
                shapes = {member.uid: member.shape for leaf in leaves(request) for member in leaf.members}
                for assignment in verdict.assignments:
                    trial.place(shapes[assignment.uid], assignment.index)

    # --- nodes -------------------------------------------------------------------------------------

    @contextmanager
    def with_nodes(self, nodes: Iterable[types.Node]) -> Generator[None]:
        """While the block runs, these nodes exist in this form. They are added and removed by events."""
        before = self.state.cluster.node_objects
        changed = [(node, before.get(node.metadata.name)) for node in nodes]
        for node, _ in changed:
            self.scheduler.handle(ObjectUpdated("Node", node), 0.0)
        try:
            yield
        finally:
            for node, old in changed:
                name = node.metadata.name
                self.scheduler.handle(
                    ObjectUpdated("Node", old) if old is not None else ObjectDeleted("Node", "", name, name), 0.0
                )

    def fewest(self, most: int, nodes: Callable[[int], list[types.Node]]) -> int | None:
        """The smallest number of such nodes with which the entity fits; None if not even the largest does."""
        if most < 1 or not self._fits_with(nodes(most)):
            return None
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            if self._fits_with(nodes(middle)):
                high = middle
            else:
                low = middle + 1
        return low if self._fits_with(nodes(low)) else None

    def _fits_with(self, nodes: list[types.Node]) -> bool:
        with self.with_nodes(nodes):
            return self.fits()

    def largest(self, low: int, high: int, request: Callable[[int], GroupRequest]) -> int | None:
        """The largest number in a range with which the request still fits; None if not even the smallest does."""
        if low > high or not self.fits(request(low)):
            return None
        while low < high:
            middle = (low + high + 1) // 2
            if self.fits(request(middle)):
                low = middle
            else:
                high = middle - 1
        return low


def copy_of(node: types.Node, name: str) -> types.Node:
    """A new node like one that exists."""
    labels = (node.metadata.labels or {}) | {"kubernetes.io/hostname": name}
    meta = msgspec.structs.replace(node.metadata, name=name, uid=name, labels=labels)
    return msgspec.structs.replace(node, metadata=meta)
