"""Recovery: what an earlier run of the scheduler left half done, found when the first lists are complete."""

from __future__ import annotations

from collections.abc import Container

from muster.api import groups as api
from muster.api import types
from muster.scheduler.cycle import enqueue
from muster.scheduler.groups.group import PENDING, RUNNING, Member, entity_key
from muster.scheduler.interface.decisions import Nominate
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import EntityState
from muster.scheduler.state.nominations import Nomination
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.conditions import PREEMPTION_BY_SCHEDULER


def recover(state: SchedulerState, now: float) -> None:
    """Adopt marks and nominations, find lost nodes, and have every group and tree checked."""
    state.synced = True
    if any(entity.group is not None for entity in state.queue.entities.values()):
        state.reservations.ask()
    for member in state.forest.members.values():
        if member.state == RUNNING and marked_as_victim(member.pod, state.config.profiles):
            state.preemptions.adopt_mark(member.uid)
        if member.state in (PENDING, RUNNING) and member.node and member.node not in state.cluster.index:
            state.lost_nodes.add(member.node)  # it may come back
            state.forest.set_lost(member, True)
            if member.group is not None:
                enqueue.review_tree(state, member.group.root(), now)
    for group in state.forest.groups.values():
        state.checks.members_changed(group.key)
        state.checks.tree_changed(group.root().key)
    _adopt_nominations(state)


def _adopt_nominations(state: SchedulerState) -> None:
    """Seats nominated by an earlier run are kept until their entity had its cycle, if any pod is still to leave.

    It need not be on one of their nodes: a rule can make a pod wait for one that leaves a node nearby.
    """
    nominated: dict[EntityKey, list[Member]] = {}
    for member in state.forest.members.values():
        ours = member.state == PENDING and member.traits[0] in state.config.profiles
        if ours and member.pod.status.nominated_node_name:
            nominated.setdefault(entity_key(member), []).append(member)
    alive = state.preemptions.is_any_leaving()
    for key, members in sorted(nominated.items()):
        entity = state.queue.entities.get(key)
        for member in sorted(members, key=lambda m: m.order):
            node = member.pod.status.nominated_node_name or ""
            in_line = entity is not None and entity.state is EntityState.ACTIVE
            if alive and entity is not None and in_line and node in state.cluster.index:
                shape = state.shape_of(member)
                state.nominations.nominate(Nomination(member.uid, shape, node, entity.priority, key))
            else:
                state.conditions.post(Nominate(member.ref, ""))


def marked_as_victim(pod: types.Pod, schedulers: Container[str]) -> bool:
    """Whether the pod carries the mark of an eviction by one of these schedulers."""
    return any(
        condition.type == api.DISRUPTION_TARGET
        and condition.status == "True"
        and condition.reason == PREEMPTION_BY_SCHEDULER
        and condition.message.partition(":")[0] in schedulers
        for condition in pod.status.conditions or ()
    )
