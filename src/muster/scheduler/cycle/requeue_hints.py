"""Requeue hints: what an attempt that failed leaves behind, so that only a change that could help causes another.

Two entities whose hints have equal keys are interchangeable for the planner: equal shapes in equal numbers, equal
minimums, topology, priority and right to preempt.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cycle.connected_pods import has_terms
from muster.scheduler.cycle.evaluate import Evaluation
from muster.scheduler.cycle.fit_check import least_requests
from muster.scheduler.cycle.preempt import entity_may_preempt
from muster.scheduler.framework.shape import Shape
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest, shapes_of
from muster.scheduler.placement.verdict import Infeasible
from muster.scheduler.queue.entity import QueuedEntity, RequeueHints
from muster.scheduler.runtime.profile import profile_of
from muster.scheduler.state.requeue_signals import TERM_PLUGINS
from muster.scheduler.state.scheduler_state import SchedulerState


def failure_hints(state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation) -> RequeueHints:
    """After a verdict other than `Placed`, if preemption did not help either."""
    request, preempts = evaluation.request, entity_may_preempt(state, entity)
    rejected_by = frozenset(
        name for diagnosis in evaluation.diagnoses.values() for name in diagnosis.rejected_by if isinstance(name, str)
    )
    no_victims = state.preemptions.take_undecided(entity.key)
    undecided = not isinstance(evaluation.verdict, Infeasible)
    proven = not undecided and not no_victims
    proven = proven and all(map(state.evaluator.independent, shapes_of(request).values()))
    # Reservations are not for those that are bound in part, nor for those that are gone in time.
    reserved = (entity.partly_bound, state.longest_run(entity))
    # Nor do seats that are held for its own members keep an entity away.
    holder = entity.key if state.nominations.held(entity.key) else None
    key = (_asked(request), entity.priority, preempts, proven, undecided, reserved, holder)
    return _hints(
        state,
        request,
        key,
        entity.priority,
        holder=holder,
        preempts=preempts,
        proven=proven,
        undecided=undecided,
        rejected_by=rejected_by,
        version=evaluation.version,
    )


def searching_hints(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> RequeueHints:
    """While a search goes on for the entity, and for no other."""
    key = ("searching", entity.key)
    return _hints(state, request, key, entity.priority, preempts=entity_may_preempt(state, entity), proven=False)


def preempting_hints(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> RequeueHints:
    """While victims leave: room that is free without them."""
    key = ("preempting", entity.key)
    return _hints(state, request, key, entity.priority, holder=entity.key, preempts=False, proven=False)


def holding_hints(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> RequeueHints:
    """Seats are held for a part of what is expected, or pending pods found no place beside them."""
    key = ("holding", entity.key)
    return _hints(state, request, key, entity.priority, holder=entity.key, preempts=False, proven=False)


def fault_hints(state: SchedulerState, entity: QueuedEntity) -> RequeueHints:
    """Only the entity's own objects can end a fault."""
    return RequeueHints(("fault", entity.key), stamp=state.signals.stamp, version=state.version)


def _hints(
    state: SchedulerState,
    request: GroupRequest,
    key: Hashable,
    priority: int,
    *,
    holder: EntityKey | None = None,
    preempts: bool,
    proven: bool,
    undecided: bool = False,
    rejected_by: frozenset[str] = frozenset(),
    version: int | None = None,
) -> RequeueHints:
    shapes = shapes_of(request).values()
    terms = any(has_terms(shape) for shape in shapes)
    return RequeueHints(
        key,
        request,
        _requests(state, shapes),
        least_requests(request, state.cluster),
        priority,
        holder,
        preempts,
        proven,
        undecided,
        _plugins(shapes, terms),
        terms,
        rejected_by,
        state.signals.stamp,
        state.version if version is None else version,
    )


def _requests(state: SchedulerState, shapes: Iterable[Shape]) -> Ints:
    vectors = [shape.request_vector(state.cluster) for shape in shapes]
    return np.stack(vectors) if vectors else np.zeros((0, len(state.cluster.resources)), dtype=np.int64)


def _plugins(shapes: Iterable[Shape], terms: bool) -> frozenset[str]:
    """The filters whose rejection of these shapes can end by an event that is not about room on one node."""
    return frozenset(
        plugin.name
        for shape in shapes
        for plugin in profile_of(shape).filters
        if plugin.gains and plugin.concerns(shape) and (terms or plugin.name not in TERM_PLUGINS)
    )


def _asked(request: GroupRequest) -> Hashable:
    """What is asked for, without names and whatever the order of the children."""
    common = (request.need, request.satisfied, request.admissible, request.topology, request.pin)
    if isinstance(request, PodGroupRequest):
        return (*common, tuple(sorted((pods.shape.id, pods.count) for pods in request.identical)))
    return (*common, tuple(sorted((_asked(child) for child in request.children), key=repr)))
