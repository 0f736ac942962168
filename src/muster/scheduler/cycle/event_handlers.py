"""Event handlers: how each event changes the state. Nothing is decided here.

Every handler keeps the counters true and collects what the change could help. Updates that touch nothing the
scheduler reads (most of them are its own status writes coming back) cost one comparison.
"""

from __future__ import annotations

from typing import Any

from muster.api import groups as api
from muster.api import kueue, types
from muster.scheduler.cycle import device_events, enqueue, pod_events, pod_signals, recovery
from muster.scheduler.groups.expectation import expectation_of
from muster.scheduler.interface import cluster_events, events
from muster.scheduler.interface.decisions import MOST_NOTE, RecordEvent
from muster.scheduler.interface.keys import EntityKey, ObjectRef
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.held_seats import INVALID_EXPECTATION

LOST_TAINTS = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


def handle(state: SchedulerState, event: events.Event, now: float) -> None:
    """Take in one event."""
    match event:  # by class alone: fields in a pattern cost more than most events
        case events.ObjectUpdated():
            _object_updated(state, event.kind, event.object, now)
        case events.ObjectDeleted():
            _object_deleted(state, event.kind, event.namespace, event.name, event.uid, now)
        case events.BindSucceeded():
            pod_events.bind_succeeded(state, event.uid, event.node, now)
        case events.BindFailed():
            pod_events.bind_failed(state, event.uid, event.reason, event.cause, now)
        case events.EvictionFailed():
            pod_events.eviction_failed(state, event.uid, now)
        case events.CacheSynced():
            recovery.recover(state, now)


def _object_updated(state: SchedulerState, kind: str, obj: Any, now: float) -> None:
    match kind:
        case "Pod":
            pod_events.pod_updated(state, obj, now)
        case "Node":
            _node_updated(state, obj, now)
        case "PodGroup" | "CompositePodGroup":
            _group_updated(state, obj, now)
        case "Workload":
            state.forest.workloads[obj.metadata.namespace, obj.metadata.name] = obj
            _workload_changed(state, obj.metadata.namespace, obj.metadata.name)
        case "PodDisruptionBudget":
            state.budgets[obj.metadata.namespace, obj.metadata.name] = obj
        case _:
            _signal(state, state.cluster.change(kind, obj))
            _device_object_changed(state, kind, obj.metadata.namespace, obj.metadata.name, now)


def _object_deleted(state: SchedulerState, kind: str, namespace: str, name: str, uid: str, now: float) -> None:
    match kind:
        case "Pod":
            pod_events.pod_deleted(state, uid, now)
        case "Node":
            state.version += 1
            _node_deleted(state, name)
            _set_lost(state, name, True, now)
        case "PodGroup" | "CompositePodGroup":
            _group_deleted(state, EntityKey(kind, namespace, name), now)
        case "Workload":
            state.forest.workloads.pop((namespace, name), None)
            _workload_changed(state, namespace, name)
        case "PodDisruptionBudget":
            state.budgets.pop((namespace, name), None)
        case _:
            _signal(state, state.cluster.remove(kind, namespace, name))
            _device_object_changed(state, kind, namespace, name, now)


def _signal(state: SchedulerState, changed: cluster_events.ClusterEvents) -> None:
    state.version += bool(changed)
    state.signals.all_of(changed)


def _device_object_changed(state: SchedulerState, kind: str, namespace: str, name: str, now: float) -> None:
    if kind == "ResourceClaim":
        device_events.claim_changed(state, namespace, name, now)
    elif kind == "DeviceClass":
        device_events.class_changed(state, now)


# --- nodes -----------------------------------------------------------------------------------------


def _node_updated(state: SchedulerState, node: types.Node, now: float) -> None:
    changed = state.cluster.change("Node", node)
    if not changed:
        return
    state.version += 1
    slot = state.cluster.index[node.metadata.name]
    state.signals.capacity(slot)
    state.signals.all_of(changed)
    if not changed.isdisjoint((cluster_events.NODE_ADDED, cluster_events.NODE_LABELS)):
        pod_signals.pods_of_node_changed(state, slot)
        _review_trees_on(state, node.metadata.name, now)
    taints = node.spec.taints or ()
    lost = any(taint.key in LOST_TAINTS and taint.effect == "NoExecute" for taint in taints)
    _set_lost(state, node.metadata.name, lost, now)


def _node_deleted(state: SchedulerState, name: str) -> None:
    slot = state.cluster.index.get(name)
    if slot is not None:
        pod_signals.pods_of_node_changed(state, slot)
        state.signals.taken(slot)
    state.signals.all_of(state.cluster.remove("Node", "", name))


def _review_trees_on(state: SchedulerState, node: str, now: float) -> None:
    """The domain that bound members are in binds the pending ones of their tree to it."""
    for top in {
        id(m.group.root()): m.group.root() for m in state.forest.on_node.get(node, {}).values() if m.group
    }.values():
        if top.pending_below or top.counts.expecting:
            enqueue.review_tree(state, top, now)


def _set_lost(state: SchedulerState, node: str, lost: bool, now: float) -> None:
    """Members on a node that is gone or unreachable do not count until it is back."""
    if lost == (node in state.lost_nodes):
        return
    (state.lost_nodes.add if lost else state.lost_nodes.discard)(node)
    for member in list(state.forest.on_node.get(node, {}).values()):
        state.forest.set_lost(member, lost)
        if member.group is not None:
            state.checks.members_changed(member.group.key)
            enqueue.review_tree(state, member.group.root(), now)
    enqueue.activate_preempting(state, state.preemptions.on_node(node))


# --- groups ----------------------------------------------------------------------------------------


def _group_updated(state: SchedulerState, obj: api.PodGroup | api.CompositePodGroup, now: float) -> None:
    group = state.forest.group(EntityKey(obj.kind, obj.metadata.namespace, obj.metadata.name))
    before = group.root().key
    old = group.obj
    state.conditions.observe(obj.metadata.uid, obj.status.conditions)
    same = old is not None and old.spec == obj.spec and old.metadata.uid == obj.metadata.uid
    if same and expectation_of(obj) == group.expectation and _may_preempt(old) == _may_preempt(obj):
        if state.forest.put_status(obj):  # mostly its own status that comes back
            state.checks.members_changed(group.key)
            enqueue.review_tree(state, group.root(), now)
        return
    if expectation_of(obj).fault and (not same or expectation_of(obj) != group.expectation):
        _report_malformed(state, obj)
    state.version += 1
    state.forest.put_group(obj)
    pod_signals.group_changed(state, group)
    if group.topology is not None:
        state.cluster.label_column(group.topology)  # on arrival, so that no cycle waits for it
    state.checks.members_changed(group.key)
    top = group.root()
    state.checks.tree_changed(top.key)
    if before != top.key:
        enqueue.root_changed(state, before, now)
    enqueue.review_tree(state, top, now)


def _may_preempt(obj: api.PodGroup | api.CompositePodGroup | None) -> bool:
    """Whether a group may evict others although Kueue admitted it."""
    return obj is not None and kueue.may_preempt(obj.metadata.annotations)


def _report_malformed(state: SchedulerState, obj: api.PodGroup | api.CompositePodGroup) -> None:
    """An annotation that cannot be read expects nobody, which its group is told."""
    ref = ObjectRef(obj.kind, obj.metadata.namespace, obj.metadata.name, obj.metadata.uid)
    note = f"nobody is expected: {expectation_of(obj).fault}"[:MOST_NOTE]
    state.conditions.post(RecordEvent(ref, "Warning", INVALID_EXPECTATION, "Scheduling", note))


def _group_deleted(state: SchedulerState, key: EntityKey, now: float) -> None:
    group = state.forest.groups.get(key)
    if group is None or group.obj is None:
        return
    state.version += 1
    before = group.root()
    if group.parent is not None:
        state.checks.members_changed(group.parent.key)  # it has a child less
    state.conditions.forget(group.obj.metadata.uid)
    state.checks.forget_group(group.obj.metadata.uid)
    pod_signals.group_changed(state, group)
    state.forest.remove_group(key)
    for top in {before.key: before, key: group}.values():
        if top.key not in state.forest.groups or top.root() is not top:  # gone, or below the deleted end of a cycle
            enqueue.remove(state, top.key)
            state.nominations.forget(top.key)
            state.checks.clear_fault(top.key)
        if top.key in state.forest.groups:
            state.checks.tree_changed(top.root().key)
            enqueue.review_tree(state, top.root(), now)


def _workload_changed(state: SchedulerState, namespace: str, name: str) -> None:
    """Trees that refer to a Workload are validated against its templates."""
    for group in state.forest.groups_of_workload(namespace, name):
        state.checks.tree_changed(group.root().key)
