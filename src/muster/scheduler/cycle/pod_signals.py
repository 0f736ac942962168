"""What changes of pods on nodes mean for entities that wait: which room is gained, and by whom.

Everything found here goes to `state.requeue_signals`.
"""

from __future__ import annotations

from typing import NamedTuple

from muster.scheduler.cache.footprints import Footprint
from muster.scheduler.groups.group import Group, Member
from muster.scheduler.interface import cluster_events
from muster.scheduler.preemption.victims import disrupted_as_whole, victim_priority
from muster.scheduler.queue.gain import HIGHEST
from muster.scheduler.state.scheduler_state import SchedulerState


class PodOnNode(NamedTuple):
    """How a pod counted on its node before an event; the cache's own record changes with it."""

    slot: int
    footprint: Footprint
    terminating: bool
    assumed: bool


def before_event(state: SchedulerState, uid: str) -> PodOnNode | None:
    """The pod as it counts now, None if it counts nowhere."""
    placed = state.cluster.pods.get(uid)
    if placed is None or placed.slot < 0:
        return None
    return PodOnNode(placed.slot, placed.footprint, placed.terminating, placed.assumed)


def pod_updated(state: SchedulerState, member: Member, before: PodOnNode | None) -> None:
    """The cache has taken in a pod that is bound: it came, or what it takes or permits has changed."""
    placed, signals = state.cluster.pods.get(member.uid), state.signals
    if placed is None or placed.slot < 0:
        return
    if before is None:
        signals.taken(placed.slot)
        signals.pod(placed.footprint)
        signals.event(cluster_events.POD_PLACED)
        return
    if before.assumed and not placed.assumed:
        _evictable(state, member)
    same = placed.footprint is before.footprint and placed.slot == before.slot
    if same and placed.terminating == before.terminating:
        return
    signals.event(cluster_events.POD_CHANGED, cluster_events.POD_GONE)
    signals.pod(before.footprint)
    signals.pod(placed.footprint)
    if not same:
        signals.capacity(before.slot)
        signals.taken(placed.slot)
    elif placed.terminating:
        signals.pod_leaving(placed.slot, _highest_helped(state, member))
        _others_evictable(state, member)


def pod_left(state: SchedulerState, member: Member) -> None:
    """A pod is about to count on its node no longer."""
    placed, signals = state.cluster.pods[member.uid], state.signals
    if placed.slot >= 0:
        signals.pod_gone(placed.slot, _highest_helped(state, member), awaited=placed.terminating)
        signals.pod(placed.footprint)
    signals.event(cluster_events.POD_GONE)
    if placed.footprint.claims:
        signals.event(cluster_events.STORAGE)  # a volume that was promised to its claim may be free again
    _others_evictable(state, member)


def _highest_helped(state: SchedulerState, member: Member) -> int:
    """The highest priority of a preemptor that could not have evicted the pod: who could gains nothing by its end."""
    refused = member.uid in state.preemptions.refused_pods
    together = member.group is not None and disrupted_as_whole(member.group) is not None
    return HIGHEST if refused or together else victim_priority(member)


# --- who can be evicted ----------------------------------------------------------------------------


def evictable_again(state: SchedulerState, uid: str) -> None:
    """A pod that the API would not delete may be chosen again."""
    member = state.forest.members.get(uid)
    if member is not None:
        _evictable(state, member)


def _evictable(state: SchedulerState, member: Member) -> None:
    """A running pod can be evicted from now on, or does not keep those any longer that are only evicted with it."""
    group = member.group
    whole = disrupted_as_whole(group) if group is not None else None
    if group is None or whole is None:
        _signal_evictable(state, member, victim_priority(member))
    elif not group.unconfirmed and not any(leaf.unconfirmed for leaf in whole.leaves()):
        _group_evictable(state, whole, victim_priority(member))


def _others_evictable(state: SchedulerState, member: Member) -> None:
    """A pod is leaving: if it could not be evicted, those can be now that are only evicted with it."""
    if member.uid in state.preemptions.refused_pods:
        _evictable(state, member)


def group_changed(state: SchedulerState, group: Group) -> None:
    """The priority, the disruption mode or the place of a group in its tree may have changed, and so who may evict."""
    _group_evictable(state, group, -HIGHEST)


def _group_evictable(state: SchedulerState, group: Group, priority: int) -> None:
    for leaf in group.leaves():
        for member in leaf.running.values():
            _signal_evictable(state, member, priority)


def _signal_evictable(state: SchedulerState, member: Member, priority: int) -> None:
    placed = state.cluster.pods.get(member.uid)
    if placed is not None and placed.slot >= 0:
        state.signals.evictable(placed.slot, priority, placed.footprint)


def pods_of_node_changed(state: SchedulerState, slot: int) -> None:
    """The node of these pods is in another domain now, or gone: rules about them may give another result."""
    for placed in state.cluster.pods_on(slot):
        state.signals.pod(placed.footprint)
