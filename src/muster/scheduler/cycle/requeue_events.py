"""What changes of pods, nodes and groups mean for entities that wait: which room is gained, and by whom."""

from __future__ import annotations

from typing import NamedTuple

from muster.scheduler.cache.cluster import PlacedPod
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
    return _as_counted(placed) if placed is not None and placed.slot >= 0 else None


def pod_updated(state: SchedulerState, member: Member, before: PodOnNode | None) -> None:
    """The cache has taken in a pod that is bound: it came, or what it takes or permits has changed."""
    placed, signals = state.cluster.pods.get(member.uid), state.signals
    if placed is None or placed.slot < 0:
        return
    now = _as_counted(placed)
    if before is None:
        signals.taken(now.slot)
        signals.pod(now.footprint)
        signals.event(cluster_events.POD_PLACED)
        return
    if before.assumed and not now.assumed:
        signals.evictable(now.slot, victim_priority(member))
    same = now.footprint is before.footprint and now.slot == before.slot
    if same and now.terminating == before.terminating:
        return
    signals.event(cluster_events.POD_CHANGED, cluster_events.POD_GONE)
    signals.pod(before.footprint)
    signals.pod(now.footprint)
    if not same:
        signals.capacity(before.slot)
        signals.taken(now.slot)
    elif now.terminating:
        signals.pod_leaving(now.slot, _highest_helped(state, member))


def pod_left(state: SchedulerState, member: Member) -> None:
    """A pod is about to count on its node no longer."""
    placed, signals = state.cluster.pods[member.uid], state.signals
    if placed.slot >= 0:
        signals.pod_gone(placed.slot, _highest_helped(state, member), awaited=placed.terminating)
        signals.pod(placed.footprint)
    signals.event(cluster_events.POD_GONE)
    if placed.footprint.claims:
        signals.event(cluster_events.STORAGE)  # a volume that was promised to its claim may be free again


def _highest_helped(state: SchedulerState, member: Member) -> int:
    """The highest priority of a preemptor that could not have evicted the pod: who could gains nothing by its end."""
    refused = member.uid in state.preemptions.refused_pods
    together = member.group is not None and disrupted_as_whole(member.group) is not None
    return HIGHEST if refused or together else victim_priority(member)


def _as_counted(placed: PlacedPod) -> PodOnNode:
    return PodOnNode(placed.slot, placed.footprint, placed.terminating, placed.assumed)


def evictable_again(state: SchedulerState, uid: str) -> None:
    """A pod that the API would not delete may be chosen again."""
    placed, member = state.cluster.pods.get(uid), state.forest.members.get(uid)
    if placed is not None and placed.slot >= 0 and member is not None:
        state.signals.evictable(placed.slot, victim_priority(member))


def group_changed(state: SchedulerState, group: Group) -> None:
    """The priority, the disruption mode or the place of a group in its tree may have changed, and so who may evict."""
    for leaf in group.leaves():
        for uid in leaf.running:
            placed = state.cluster.pods.get(uid)
            if placed is not None and placed.slot >= 0:
                state.signals.evictable(placed.slot, -HIGHEST)


def pods_of_node_changed(state: SchedulerState, slot: int) -> None:
    """The node of these pods is in another domain now, or gone: rules about them may give another result."""
    for placed in state.cluster.pods_on(slot):
        state.signals.pod(placed.footprint)
