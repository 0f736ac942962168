"""The sentences of an explanation: what is short, if it can ever fit, what preemption would do, what requeues it."""

from __future__ import annotations

import numpy as np

from muster.api import kueue
from muster.api.gates import WORKLOAD_AWARE_PREEMPTION
from muster.scheduler.cache.arrays import Ints
from muster.scheduler.cycle.evaluate import Evaluation
from muster.scheduler.cycle.preempt import left_to_kueue
from muster.scheduler.framework.shape import Shape
from muster.scheduler.groups.group import entity_key, may_preempt
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.budget import Budget
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest, leaves
from muster.scheduler.placement.verdict import ExhaustionProof, Infeasible, Shortage, Undecided, WeightProof
from muster.scheduler.preemption.result import NoCandidates, PreemptionPlan
from muster.scheduler.preemption.select import select_victims
from muster.scheduler.preemption.victims import possible_victims, quorums
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.runtime.profile import POD_GROUP_POST_FILTER, POST_FILTER
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.held_seats import expected_text
from muster.scheduler.status.kept_room import kept_text, start_text, where_text
from muster.scheduler.status.messages import amount_text, count_text, kind_word, short_key, shortage_text


def name_of(entity: QueuedEntity) -> str:
    return f"{kind_word(entity.key.kind)} {entity.key.name}"


def unschedulable_sentence(
    state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation, first: Shortage | None
) -> str:
    group = entity.group
    if isinstance(evaluation.verdict, Undecided):
        what = "was not placed within the search budget, a place may exist"
    elif group is not None and group.quorum_bound:
        what = f"runs with its minimum, {count_text(group.pending_below, 'more pod')} find no place"
    elif group is not None and group.scheduled_once:
        things = "members" if group.is_leaf else "child groups"
        what = (
            f"runs below its minimum ({group.confirmed} of {group.minimum} {things} are bound), the rest does not fit"
        )
    else:
        what = "does not fit"
    diagnosis = evaluation.diagnoses.get(state.shape_of(entity.member).id) if entity.member is not None else None
    if diagnosis is not None:
        return f"{name_of(entity)} {what}: {diagnosis.message_text().rstrip('.')}"
    if first is None:
        return f"{name_of(entity)} {what}"
    whose = f"{kind_word(first.group.kind)} {first.group.name}: " if first.group != entity.key else ""
    expected = expected_text(group) if group is not None else ""
    return f"{name_of(entity)} {what}: {whose}{shortage_text(first)}" + (f"; {expected}" if expected else "")


def why_never(state: SchedulerState, evaluation: Evaluation, first: Shortage) -> str:
    """Whether even empty nodes are too small, or only the combination is impossible."""
    seats = empty_seats(state, evaluation.request, first.group)
    if seats is not None and first.domain:
        sums = np.bincount(state.cluster.labels(first.topology), weights=seats)[1:]
        best = int(sums.max()) if len(sums) else 0
        if best < first.needed:
            what = f"the largest would have {count_text(best, 'seat')} if it were empty"
            return f"No {short_key(first.topology)} can hold it as the nodes are: {what}"
    elif seats is not None and not seats.any():
        return _larger_than_all_nodes(state, evaluation.request, first.group)
    proof = evaluation.verdict.proof if isinstance(evaluation.verdict, Infeasible) else None
    if isinstance(proof, ExhaustionProof) and proof.steps > 1:
        return f"Its pods do not fit together: all {proof.steps} ways that differ were tried"
    if isinstance(proof, WeightProof):
        return "Its pods compete for the same nodes and need more together than all of them can give"
    return ""


def _larger_than_all_nodes(state: SchedulerState, request: GroupRequest, key: EntityKey) -> str:
    """Which resource of a pod is larger than on every node it may use."""
    shape = _only_shape(request, key)
    assert shape is not None
    cluster = state.cluster
    usable = state.evaluator.feasibility(shape).node_ok[: cluster.size] & cluster.alive[: cluster.size]
    asks = shape.request_vector(cluster)
    for row in np.flatnonzero(asks):
        largest = int(cluster.alloc[row, : cluster.size][usable].max(initial=0))
        if usable.any() and largest < asks[row]:
            name = cluster.resources[row]
            asked, there = amount_text(name, int(asks[row])), amount_text(name, largest)
            return f"No node is large enough: a pod asks for {asked} {name}, the largest node it may use has {there}"
    return ""


def preemption_sentence(state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation) -> str:
    if isinstance(evaluation.verdict, Undecided):
        return "not considered: nobody is evicted for a placement that may exist without it"
    if entity.group is not None and not state.gates.enabled(WORKLOAD_AWARE_PREEMPTION):
        return "not considered: preemption by groups is switched off (WorkloadAwarePreemption=false)"
    profile = state.config.profiles.get(state.scheduler_of(entity))
    point = POD_GROUP_POST_FILTER if entity.group is not None else POST_FILTER
    if profile is not None and point not in profile.preempting:
        return f"not considered: the profile disables DefaultPreemption at {point}"
    never = (
        not may_preempt(entity.group) if entity.group is not None else state.members_of(entity)[0].traits[2] == "Never"
    )
    if never:
        return "not considered: the preemption policy is Never"
    if left_to_kueue(entity):
        otherwise = f"{kueue.PREEMPTION}: {kueue.ALLOWED}"
        return f"not considered: Kueue admitted it and makes room ({otherwise} on the group says otherwise)"
    leaving = state.preemptions.leaving()
    victims = possible_victims(
        state.forest, state.cluster, entity.priority, marked=state.preemptions.unclaimed, excluded=leaving
    )
    if not victims:
        return f"not possible: nothing that runs has a priority below {entity.priority}"
    found = select_victims(
        evaluation.request,
        state.evaluator,
        victims=victims,
        quorums=quorums(victims),
        budgets=list(state.budgets.values()),
        nominated=state.nominated_against(entity),
        leaving=leaving,
        budget=Budget(state.config.budget_steps),
    )
    if isinstance(found, NoCandidates):
        pods = count_text(sum(len(victim.uids) for victim in victims), "pod")
        why = "and it would still not fit" if found.hopeless else found.reason
        return f"would not help: {pods} of lower priority could leave, {why}"
    pods = count_text(sum(len(victim.uids) for victim in found.victims), "pod")
    return f"makes room at its next try: {pods} of lower priority would leave ({_victims_by_entity(state, found)})"


def _victims_by_entity(state: SchedulerState, found: PreemptionPlan) -> str:
    """The entities whose pods would be evicted, and how many of each, the largest share first."""
    counts: dict[EntityKey, int] = {}
    for uid in (uid for victim in found.victims for uid in victim.uids):
        key = entity_key(state.forest.members[uid])
        counts[key] = counts.get(key, 0) + 1
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    of = {key: f" ({count})" if key.kind != "Pod" else "" for key, count in order}
    return few([f"{kind_word(key.kind)} {key.namespace}/{key.name}{of[key]}" for key, _ in order])


def requeue_sentence(request: GroupRequest) -> str:
    """When the entity is tried again."""
    if isinstance(request, PodGroupRequest) and request.need:
        where = f" in one {short_key(request.topology)}" if request.topology else ""
        return f"when a change leaves {count_text(request.need, 'seat')} for it{where}"
    return "when a change leaves a seat for one of its pods"


def few(names: list[str], most: int = 3) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def empty_seats(state: SchedulerState, request: GroupRequest, key: EntityKey) -> Ints | None:
    """Seats per node for the pods of one PodGroup if nothing else ran; None unless they have one countable shape."""
    shape = _only_shape(request, key)
    return state.evaluator.empty_capacity(shape) if shape is not None and state.evaluator.independent(shape) else None


def _only_shape(request: GroupRequest, key: EntityKey) -> Shape | None:
    leaf = next((leaf for leaf in leaves(request) if leaf.key == key), None)
    shapes = {member.shape.id: member.shape for member in leaf.members} if leaf is not None else {}
    return next(iter(shapes.values())) if len(shapes) == 1 else None


def reservation_sentence(state: SchedulerState, entity: QueuedEntity) -> str:
    """The room that is kept for an entity, or that it may not use because it is kept for others; empty without any."""
    own = state.reservations.get(entity.key)
    if own is not None:
        text = kept_text(own.domains, sorted(own.nodes), own.start)
        names = sorted(state.forest.members[uid].ref.name for uid in own.leaving if uid in state.forest.members)
        return f"{text}; {few(names)} must leave first" if names else text
    others = [each for each in state.reservations if each.priority >= entity.priority]
    return "; ".join(
        f"room {where_text(each.domains, sorted(each.nodes))} is kept for "
        f"{kind_word(each.entity.kind)} {each.entity.namespace}/{each.entity.name}, "
        f"expected start {start_text(each.start)}"
        for each in others
    )
