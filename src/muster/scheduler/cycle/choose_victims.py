"""Which pods leave for an entity that does not fit: a preemption plan, checked by `validate`, or none.

Nothing is changed here except what is counted: the plan is carried out by `preempt`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from muster.scheduler.checking.validate import validate
from muster.scheduler.cycle.connected_pods import has_terms
from muster.scheduler.interface.keys import ObjectRef
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import GroupRequest, PendingPod, leaves
from muster.scheduler.placement.verdict import Assignment, Placed
from muster.scheduler.preemption.resolvability import worth_preempting_for
from muster.scheduler.preemption.result import (
    NO_VICTIMS,
    NOMINATED,
    REFUSED,
    UNDECIDED,
    NoCandidates,
    PreemptionAttempt,
    PreemptionPlan,
)
from muster.scheduler.preemption.select import select_victims
from muster.scheduler.preemption.what_if import EvictionTrial
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.runtime.trial import Trial
from muster.scheduler.state.scheduler_state import SchedulerState

NO_NODES: Mapping[str, str] = MappingProxyType({})


def is_valid(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, placed: Placed, evicted: Collection[str]
) -> bool:
    """Whether a new placement holds once these pods are gone, beside the seats nominated and reserved for others."""
    nominated = state.nominated_against(entity)
    return validate(placed, request, state.cluster, evicted=frozenset(evicted), nominated=nominated) is None


def still_holds(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, placed: Placed, evicted: Collection[str]
) -> bool:
    """The same for a placement whose seats are nominated."""
    nominated = state.nominated_against(entity, holds_seats=True)
    return validate(placed, request, state.cluster, evicted=frozenset(evicted), nominated=nominated) is None


def enough_is_leaving(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, nominated: Mapping[str, str] = NO_NODES
) -> PreemptionPlan | None:
    """A plan without victims, if pods that are leaving anyway free enough; on the nominated nodes if they do."""
    leaving = state.preemptions.leaving()
    if not leaving:
        return None
    what_if = EvictionTrial(
        state.evaluator, state.nominated_against(entity), sorted(leaving), state.config.budget_steps
    )
    with what_if.without(()) as trial:
        kept = nominated_placement(trial, request, nominated)
    if kept is not None and still_holds(state, entity, request, kept, leaving):
        return PreemptionPlan(kept, (), 0)
    verdict = what_if.plan(request, (), extras=True)
    if not isinstance(verdict, Placed) or not is_valid(state, entity, request, verdict, leaving):
        return None
    return PreemptionPlan(verdict, (), 0)


def nominated_placement(trial: Trial, request: GroupRequest, nodes: Mapping[str, str]) -> Placed | None:
    """The placement on the nodes that were nominated for the pods of an entity, if there are any."""
    index = trial.cluster.index
    members = [member for leaf in leaves(request) for member in leaf.members if nodes.get(member.uid) in index]
    if any(has_terms(member.shape) for member in members):
        members = _in_order(trial, members, nodes)
    assigned = tuple(Assignment(one.uid, nodes[one.uid], index[nodes[one.uid]]) for one in members)
    return Placed(assigned, frozenset({request.key})) if assigned else None


def _in_order(trial: Trial, members: list[PendingPod], nodes: Mapping[str, str]) -> list[PendingPod]:
    """The pods in an order in which each has its seat, as far as there is one: nominations do not keep their order."""
    mark, index = trial.mark(), trial.cluster.index
    waiting = sorted(members, key=lambda member: not has_terms(member.shape))
    ordered: list[PendingPod] = []
    while waiting:
        left: list[PendingPod] = []
        for member in waiting:
            slot = index[nodes[member.uid]]
            if trial.feasible(member.shape)[slot]:
                trial.place(member.shape, slot)
                ordered.append(member)
            else:
                left.append(member)
        if len(left) == len(waiting):
            break
        waiting = left
    trial.undo(mark)
    return ordered + waiting


def choose_victims(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, now: float
) -> PreemptionPlan | None:
    """The cheapest plan that was found and holds; what was attempted is measured."""
    preemptor = kind_word(state.ref_of(entity))
    if not worth_preempting_for(request, state.evaluator):  # not even an empty cluster would do
        state.measurements.add_preemption(PreemptionAttempt(preemptor, NO_VICTIMS))
        return None
    state.preemptions.expire_refusals(now)
    leaving = state.preemptions.leaving()
    candidates = state.victim_index.below(
        entity.priority,
        state.forest,
        state.cluster,
        state.version,
        marked=state.preemptions.unclaimed,
        excluded=leaving | state.preemptions.refused_pods,
    )
    found = select_victims(
        request,
        state.evaluator,
        victims=candidates.victims,
        quorums=candidates.quorums,
        budgets=list(state.budgets.values()),
        nominated=state.nominated_against(entity),
        leaving=leaving,
        budget=Budget(state.config.budget_steps),
    )
    if isinstance(found, NoCandidates):
        outcome = NO_VICTIMS if found.hopeless else UNDECIDED
        if not found.hopeless:
            state.preemptions.set_undecided(entity.key)
        state.measurements.add_preemption(PreemptionAttempt(preemptor, outcome))
        return None
    pods = {uid for victim in found.victims for uid in victim.uids}
    if not is_valid(state, entity, request, found.placed, pods | leaving):
        state.measurements.add_preemption(PreemptionAttempt(preemptor, REFUSED))
        state.preemptions.set_undecided(entity.key)
        return None
    state.measurements.add_preemption(
        PreemptionAttempt(preemptor, NOMINATED, len(pods), len(found.victims), found.budget_violations)
    )
    return found


def kind_word(ref: ObjectRef) -> str:
    """The kind of a preemptor as events and metrics name it."""
    return {"PodGroup": "podgroup", "CompositePodGroup": "compositepodgroup"}.get(ref.kind, "pod")
