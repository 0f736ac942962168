"""A preemption from start to end: victims marked and seats nominated, victims deleted, waited for; or cancelled.

Eviction is delayed: nothing is marked unless the whole plan after it passed `validate`, nothing is deleted before
everything is marked and nominated (one cycle earlier), and the plan is checked again right before. While victims
leave, their room is nominated; no second preemption starts for an entity whose first one still suffices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.api import groups as api
from muster.api import kueue
from muster.api.gates import WORKLOAD_AWARE_PREEMPTION
from muster.scheduler.cycle.choose_victims import choose_victims, enough_is_leaving, is_valid, kind_word, still_holds
from muster.scheduler.cycle.connected_pods import has_terms
from muster.scheduler.cycle.evaluate import current_request
from muster.scheduler.groups.group import RUNNING, Group, may_preempt
from muster.scheduler.interface.decisions import Decision, Evict, Nominate, RecordEvent
from muster.scheduler.interface.keys import EntityKey, ObjectRef
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest, leaves, shapes_of
from muster.scheduler.placement.verdict import Assignment, Placed
from muster.scheduler.preemption.result import PreemptionPlan
from muster.scheduler.queue.entity import EntityState, QueuedEntity, RequeueHints
from muster.scheduler.runtime.profile import POD_GROUP_POST_FILTER, POST_FILTER
from muster.scheduler.state.nominations import Nomination
from muster.scheduler.state.preemptions import PreemptionInProgress
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.conditions import PREEMPTION_BY_SCHEDULER
from muster.scheduler.status.waiting import FOR_VICTIMS

CANCELLED = "PreemptionCalledOff"  # reason of DisruptionTarget False


def freed_placement(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> Placed | None:
    """The placement that victims were evicted for, once all of them are gone and if it still holds."""
    preemption = state.preemptions.get(entity.key)
    if preemption is None or preemption.victims:
        return None
    return preemption.placed if still_holds(state, entity, request, preemption.placed, ()) else None


def keep_waiting(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> list[Decision]:
    """Wait on while the preemption under way suffices; otherwise it is cancelled."""
    preemption = state.preemptions.get(entity.key)
    if preemption is not None and _suffices(state, entity, request, preemption):
        state.queue.set_preempting(entity)
        return []
    return cancel(state, entity)


def post_filter(state: SchedulerState, entity: QueuedEntity, request: GroupRequest, now: float) -> list[Decision]:
    """For an entity that does not fit: wait for room that is becoming free, or evict. Else its state stays as it is."""
    nominated = state.nominations.of(entity.key)
    decisions = keep_waiting(state, entity, request)
    if entity.state is not EntityState.PREEMPTING and entity_may_preempt(state, entity):
        found = enough_is_leaving(state, entity, request, nominated)
        found = found or choose_victims(state, entity, request, now)
        if found is not None:
            decisions += mark_victims(state, entity, found)
    return decisions


def entity_may_preempt(state: SchedulerState, entity: QueuedEntity) -> bool:
    """Whether the profile, the preemptionPolicy of the entity and Kueue allow evictions for it."""
    if left_to_kueue(entity):
        return False
    profile = state.config.profiles.get(state.scheduler_of(entity))
    preempting = profile.preempting if profile is not None else frozenset[str]()
    if entity.group is not None:
        on = state.gates.enabled(WORKLOAD_AWARE_PREEMPTION) and POD_GROUP_POST_FILTER in preempting
        return on and may_preempt(entity.group)
    assert entity.member is not None
    return POST_FILTER in preempting and entity.member.traits[2] != api.NEVER


def left_to_kueue(entity: QueuedEntity) -> bool:
    """Whether Kueue admits the pods of an entity, and so makes room for them, and nobody says otherwise."""
    groups = entity.group.leaves() if entity.group is not None else ()
    pods = [member.pod for leaf in groups for member in leaf.pending.values()]
    pods += [entity.member.pod] if entity.member is not None else []
    if not any(kueue.is_admitted(pod.metadata.labels) for pod in pods):
        return False
    top = entity.group.obj if entity.group is not None else None
    return top is None or not kueue.may_preempt(top.metadata.annotations)


def _suffices(
    state: SchedulerState, entity: QueuedEntity, request: GroupRequest, preemption: PreemptionInProgress
) -> bool:
    staying = state.preemptions.refused_pods - state.preemptions.leaving()  # the API would not delete them
    if not preemption.victims or not preemption.victims.isdisjoint(staying):
        return False
    if not still_holds(state, entity, request, preemption.placed, preemption.victims):
        return False
    # Others leave as well, and a term may need them.
    leaving = state.preemptions.leaving()
    alone = leaving <= preemption.victims or not any(map(has_terms, shapes_of(request).values()))
    return alone or still_holds(state, entity, request, preemption.placed, preemption.victims | leaving)


# --- start -----------------------------------------------------------------------------------------


def mark_victims(state: SchedulerState, entity: QueuedEntity, found: PreemptionPlan) -> Iterator[Decision]:
    """Mark victims, nominate seats. The deletions follow in a later cycle, if the plan still holds then."""
    chosen = {uid for victim in found.victims for uid in victim.uids}
    leaving = _awaited(state, entity, found.placed, chosen)
    yield from _mark(state, entity, found)
    yield from _nominate(state, entity, found.placed)
    state.preemptions.start(entity.key, found.placed, leaving | chosen, set(chosen))
    state.queue.set_preempting(entity)
    text = f"waiting for {len(leaving | chosen)} pods to leave"
    entity.set_outcome(FOR_VICTIMS, text)
    if entity.group is not None:
        for group in entity.group.subtree():
            condition = state.conditions.initially_scheduled(group, "False", FOR_VICTIMS, text)
            if condition is not None:
                yield condition


def _awaited(state: SchedulerState, entity: QueuedEntity, placed: Placed, chosen: set[str]) -> set[str]:
    """The pods leaving anyway that a placement waits for: those on its nodes, or all if a rule speaks of others."""
    nodes, leaving = {assignment.node for assignment in placed.assignments}, state.preemptions.leaving()
    near = {uid for uid in leaving if state.cluster.pods[uid].node in nodes}
    if len(near) == len(leaving):
        return near
    request = current_request(state, entity)
    return near if is_valid(state, entity, request, placed, near | chosen) else set(leaving)


def _mark(state: SchedulerState, entity: QueuedEntity, found: PreemptionPlan) -> Iterator[Decision]:
    preemptor = state.ref_of(entity)
    kind = kind_word(preemptor)
    text = f"{state.scheduler_of(entity)}: preempting to accommodate a higher priority {kind}"
    note = f"Preempted by {kind} {preemptor.namespace}/{preemptor.name} ({preemptor.uid})"
    pods = [state.forest.members[uid].ref for victim in found.victims for uid in victim.uids]
    for pod in pods:
        condition = state.conditions.set(pod, api.DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, text)
        if condition is not None:
            yield condition
    for group in _evicted_groups(state, found):
        condition = state.conditions.set(group.ref, api.DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, text)
        if condition is not None:
            yield condition
            yield RecordEvent(group.ref, "Normal", "Preempted", "Preempting", note, preemptor)
    for pod in pods:
        yield RecordEvent(pod, "Normal", "Preempted", "Preempting", note, preemptor)


def _evicted_groups(state: SchedulerState, found: PreemptionPlan) -> list[Group]:
    """Groups all of whose running pods are among the victims."""
    gone = {uid for victim in found.victims for uid in victim.uids}
    touched: dict[EntityKey, Group] = {}
    for uid in gone:
        group = state.forest.members[uid].group
        while group is not None:
            touched[group.key] = group
            group = group.parent if not group.cyclic else None
    whole = [g for g in touched.values() if g.exists and all(leaf.running.keys() <= gone for leaf in g.leaves())]
    return sorted(whole, key=lambda group: group.key)


def _nominate(state: SchedulerState, entity: QueuedEntity, placed: Placed) -> Iterator[Decision]:
    expected = [one for one in placed.assignments if one.uid not in state.forest.members]
    leaf_of = {one.uid: (leaf.key, one.shape) for leaf in _leaves(state, entity, expected) for one in leaf.members}
    for uid, node in ((one.uid, one.node) for one in expected):
        group, shape = leaf_of[uid]
        state.nominations.nominate(Nomination(uid, shape, node, entity.priority, entity.key, group))
    for assignment in placed.assignments:
        member = state.forest.members.get(assignment.uid)
        if member is not None:
            shape = state.shape_of(member)
            state.nominations.nominate(Nomination(assignment.uid, shape, assignment.node, entity.priority, entity.key))
            yield Nominate(member.ref, assignment.node)


def _leaves(state: SchedulerState, entity: QueuedEntity, expected: list[Assignment]) -> list[PodGroupRequest]:
    """The PodGroups of a request with members that do not exist yet; their shapes are known from it alone."""
    return list(leaves(current_request(state, entity))) if expected else []


# --- proceeding ------------------------------------------------------------------------------------


def proceed(state: SchedulerState, now: float) -> list[Decision]:
    """Request the deletion of victims that were marked in an earlier cycle, if the plan still holds."""
    decisions: list[Decision] = []
    for key in state.preemptions.entities():
        preemption, entity = state.preemptions.get(key), state.queue.entities.get(key)
        if preemption is None or not preemption.marked:
            continue
        if entity is None or entity.state is not EntityState.PREEMPTING:
            continue
        request = current_request(state, entity)
        if not _suffices(state, entity, request, preemption):
            decisions += cancel(state, entity)
            # A failure like any other: several in a row are followed by a backoff.
            hints = RequeueHints(("cancelled", key), stamp=state.signals.stamp, version=state.version)
            state.queue.add_unschedulable(entity, hints, now)
            state.queue.requeue(entity, now)
            continue
        preemptor = state.ref_of(entity)
        victims = (state.forest.members.get(uid) for uid in state.preemptions.delete_marked(key))
        decisions += [Evict(member.ref, preemptor) for member in victims if member and member.state == RUNNING]
    return decisions


def recheck(state: SchedulerState) -> None:
    """Something changed on nodes: entities whose plan for after the evictions holds no longer look again."""
    taken = state.preemptions.take_changes(state.signals.log)
    if not taken:
        return
    repelling = any(footprint.pod.spec.affinity is not None for footprint in state.signals.pods)
    for key in state.preemptions.entities():
        preemption, entity = state.preemptions.get(key), state.queue.entities.get(key)
        if preemption is None or entity is None or entity.state is not EntityState.PREEMPTING:
            continue
        elsewhere = repelling or entity.hints.has_terms  # pods on other nodes matter too
        if elsewhere or any(assignment.index in taken for assignment in preemption.placed.assignments):
            request = current_request(state, entity)
            if not _suffices(state, entity, request, preemption):
                state.queue.activate(entity)


# --- cancelling ------------------------------------------------------------------------------------


def cancel(state: SchedulerState, entity: QueuedEntity) -> list[Decision]:
    """The entity needs its victims no more: take the marks and the nominations back."""
    if state.preemptions.get(entity.key) is None and not state.nominations:
        return []
    decisions = unmark(state, state.preemptions.cancel(entity.key))
    members = map(state.forest.members.get, state.nominations.clear(entity.key))
    return decisions + [Nominate(member.ref, "") for member in members if member is not None]


def unmark(state: SchedulerState, uids: Iterable[str]) -> list[Decision]:
    """Take the marks of pods back, unless some entity still waits for them to go."""
    awaited = state.preemptions.victims() - state.preemptions.refused_pods
    decisions: list[Decision] = []
    for uid in sorted(set(uids) - awaited):
        member = state.forest.members.get(uid)
        if member is None or member.state != RUNNING:
            continue
        decisions += _no_longer_target(state, member.ref)
        group = member.group
        while group is not None:
            if state.conditions.is_disruption_target(group.ref.uid):
                decisions += _no_longer_target(state, group.ref)
            group = group.parent if not group.cyclic else None
    return decisions


def _no_longer_target(state: SchedulerState, about: ObjectRef) -> list[Decision]:
    text = "the room is no longer needed"
    condition = state.conditions.set(about, api.DISRUPTION_TARGET, "False", CANCELLED, text)
    return [condition] if condition is not None else []
