"""Events in: how each fact changes the world. Nothing is decided here.

Every handler leaves the counters true and notes what the change could help. Updates that touch nothing
the scheduler reads (most of them are its own status writes coming back) cost one comparison.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import msgspec

from muster.api import groups as api
from muster.api import types
from muster.scheduler.cycle.preempt import IN_FLIGHT
from muster.scheduler.groups.group import (
    FAILED,
    LEAVING,
    PENDING,
    RUNNING,
    SUCCEEDED,
    Group,
    Member,
    entity_key,
    group_name,
    priority_of,
    state_of,
)
from muster.scheduler.interface import cluster_events, events
from muster.scheduler.interface.decisions import Nominate, RecordEvent
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import ACTIVE, BACKOFF, PARKED, PREEMPTING, WAITING, QueuedEntity
from muster.scheduler.state.nominations import Nomination
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.conditions import PREEMPTION_BY_SCHEDULER

PLACED, GONE = frozenset((cluster_events.POD_PLACED,)), frozenset((cluster_events.POD_GONE,))


REFUSED_SECONDS = 50.0  # a pod that could not be deleted is not chosen again for so long


LOST_TAINTS = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")


class EventHandlers:
    """Brings one world up to date."""

    def __init__(self, state: SchedulerState, gang_scheduling: bool = True) -> None:
        self.state = state
        self.gang_scheduling = gang_scheduling
        self._lost_nodes: set[str] = set()

    def handle(self, event: events.Event, now: float) -> None:
        match event:
            case events.ObjectUpdated(kind, obj):
                self._changed(kind, obj, now)
            case events.ObjectDeleted(kind, namespace, name, uid):
                self._removed(kind, namespace, name, uid, now)
            case events.BindSucceeded(uid, node):
                self._bind_succeeded(uid, node, now)
            case events.BindFailed(uid, _, reason):
                self._bind_failed(uid, reason, now)
            case events.EvictionFailed(uid, _):
                self._evict_failed(uid, now)
            case events.CacheSynced():
                self._synced()

    def _changed(self, kind: str, obj: Any, now: float) -> None:
        match kind:
            case "Pod":
                self._pod(obj, now)
            case "Node":
                self._node(obj, now)
            case "PodGroup" | "CompositePodGroup":
                self._group(obj, now)
            case "Workload":
                self.state.forest.workloads[obj.metadata.namespace, obj.metadata.name] = obj
                self._suspect_workload(obj.metadata.namespace, obj.metadata.name)
            case "PodDisruptionBudget":
                self.state.budgets[obj.metadata.namespace, obj.metadata.name] = obj
            case _:
                self.state.note(self.state.cluster.change(kind, obj))

    def _removed(self, kind: str, namespace: str, name: str, uid: str, now: float) -> None:
        state = self.state
        match kind:
            case "Pod":
                self._pod_gone(namespace, name, uid, now)
            case "Node":
                state.version += 1
                state.note(state.cluster.remove("Node", "", name))
                self._set_lost(name, True, now)
            case "PodGroup" | "CompositePodGroup":
                self._group_gone(EntityKey(kind, namespace, name), now)
            case "Workload":
                state.forest.workloads.pop((namespace, name), None)
                self._suspect_workload(namespace, name)
            case "PodDisruptionBudget":
                state.budgets.pop((namespace, name), None)
            case _:
                state.note(state.cluster.remove(kind, namespace, name))

    # --- pods --------------------------------------------------------------------------------------

    def _pod(self, pod: types.Pod, now: float) -> None:
        state = self.state
        known = state.forest.members.get(pod.metadata.uid)
        if known is None:
            if not pod.spec.node_name and pod.spec.scheduler_name not in state.config.profiles:
                return  # another scheduler's business until it is bound
        elif known.pod.spec.node_name and not pod.spec.node_name:
            return  # an older view: pods are never unbound
        elif _alike(known.pod, pod):
            known.pod = pod
            return
        state.version += 1
        self._settle_in_cluster(pod, known)
        before = entity_key(known) if known is not None else None
        member = state.forest.put_member(pod, self._group_of(pod))
        member.shape = None
        if member.state == PENDING and pod.spec.scheduler_name in state.config.profiles:
            state.shape_of(member)  # worked out on arrival, so that a cycle over thousands does not wait for it
        member.lost = member.lost and bool(pod.spec.node_name)
        self._follow(member, before, now)

    def _group_of(self, pod: types.Pod) -> EntityKey | None:
        profile = self.state.config.profiles.get(pod.spec.scheduler_name)
        together = self.gang_scheduling and (profile is None or "GangScheduling" in profile.enabled)
        name = group_name(pod) if together else None
        return EntityKey("PodGroup", pod.metadata.namespace, name) if name else None

    def _settle_in_cluster(self, pod: types.Pod, known: Member | None) -> None:
        """Let the columns follow: who sits where, who has left."""
        state, cluster = self.state, self.state.cluster
        pod_state = state_of(pod)
        if known is not None and known.assumed and pod_state not in (PENDING, RUNNING):
            self._unassume(known)
        if not pod.spec.node_name:
            return
        if pod_state in (SUCCEEDED, FAILED):
            if pod.metadata.uid in cluster.pods:
                self._leaves_node(pod)
        else:
            changed = cluster.change("Pod", pod)
            state.note(changed)
            if cluster_events.POD_GONE in changed and (slot := cluster.pods[pod.metadata.uid].slot) >= 0:
                state.dirty.add(slot)  # it may ask for less than before
            if known is None or not known.pod.spec.node_name:
                state.note(PLACED)  # an assumption that came true, or a pod first seen on its node

    def _leaves_node(self, pod: types.Pod) -> None:
        state = self.state
        entry = state.cluster.pods[pod.metadata.uid]
        if entry.slot >= 0:
            state.dirty.add(entry.slot)
        state.note(GONE)
        state.leaving.discard(pod.metadata.uid)
        state.cluster.remove("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)

    def _unassume(self, member: Member) -> None:
        state = self.state
        state.version += 1
        slot = state.cluster.index.get(member.assumed)
        if slot is not None:
            state.dirty.add(slot)
        state.cluster.forget(member.uid)
        state.forest.forget(member)
        state.note(GONE)

    def _follow(self, member: Member, before: EntityKey | None, now: float) -> None:
        """After a pod changed: its root's place in the queue, its group's status, its victims' preemptor."""
        state = self.state
        if member.state == LEAVING and member.uid in state.cluster.pods:
            state.leaving.add(member.uid)
        if member.state not in (PENDING, RUNNING):
            self._victim_left(member, gone=member.state in (SUCCEEDED, FAILED))
        if member.group is not None:
            state.reviewed.add(member.group.key)
            self.review(member.group.root(), now, cause=member.group)
        else:
            self._review_pod(member, now)
        if before is not None and before != entity_key(member):
            self._drop_root(before)

    def _pod_gone(self, namespace: str, name: str, uid: str, now: float) -> None:
        state = self.state
        member = state.forest.members.get(uid) if uid else self._find(namespace, name)
        if member is None:
            return
        state.version += 1
        if member.assumed:
            self._unassume(member)
        if member.uid in state.cluster.pods:
            self._leaves_node(member.pod)
        key = entity_key(member)
        state.forest.remove_member(member.uid)
        state.conditions.forget(member.uid)
        state.holds.pop(member.uid, None)
        state.refused.pop(member.uid, None)
        entity = state.queue.entities.get(key)
        if entity is not None:
            entity.in_flight.discard(member.uid)
        self._victim_left(member, gone=True)
        if member.group is not None:
            state.reviewed.add(member.group.key)
            self.review(member.group.root(), now, settled=True)
        elif entity is not None and entity.uid == member.uid:
            self._drop_root(key)

    def _find(self, namespace: str, name: str) -> Member | None:
        wanted = (m for m in self.state.forest.members.values() if (m.ref.namespace, m.ref.name) == (namespace, name))
        return next(wanted, None)

    def _review_pod(self, member: Member, now: float) -> None:
        state = self.state
        key = entity_key(member)
        entity = state.queue.entities.get(key)
        if entity is not None and entity.uid != member.uid:
            self._drop_root(key)
            entity = None
        if member.state != PENDING:
            if entity is not None:
                entity.in_flight.clear()
                self._drop_root(key)
            return
        if member.assumed:
            return
        if entity is None:
            meta = member.pod.metadata
            entity = QueuedEntity(key, member=member, created=meta.creation_timestamp or "", uid=member.uid)
            state.queue.add(entity, now)
        entity.member, entity.priority = member, member.traits[1]
        if member.gated:
            state.queue.set_aside(entity, WAITING)
        elif entity.state in (WAITING, ACTIVE):
            state.queue.activate(entity)
        elif entity.state != PREEMPTING:
            state.queue.requeue(entity, now)

    # --- victims -----------------------------------------------------------------------------------

    def _victim_left(self, member: Member, gone: bool) -> None:
        """A pod that someone waits for is leaving, or has left."""
        state = self.state
        for key, preempting in state.preempting.items():
            if member.uid in preempting.victims:
                preempting.marked.discard(member.uid)
                if gone:
                    preempting.victims.discard(member.uid)
                    entity = state.queue.entities.get(key)
                    if not preempting.victims and entity is not None and entity.state == PREEMPTING:
                        state.queue.activate(entity)

    def _evict_failed(self, uid: str, now: float) -> None:
        """A victim stays: whoever waits for it must plan anew, without it for a while."""
        state = self.state
        state.refused[uid] = now + REFUSED_SECONDS
        for key, preempting in state.preempting.items():
            entity = state.queue.entities.get(key)
            if uid in preempting.victims and entity is not None and entity.state == PREEMPTING:
                state.queue.activate(entity)

    # --- answers to binds --------------------------------------------------------------------------

    def _bind_succeeded(self, uid: str, node: str, now: float) -> None:
        state = self.state
        member = state.forest.members.get(uid)
        if member is None:
            return
        entity = state.queue.entities.get(entity_key(member))
        if entity is not None:
            entity.in_flight.discard(uid)
        name = f"{member.ref.namespace}/{member.ref.name}"
        note = f"Successfully assigned {name} to {node}"
        state.outbox.append(RecordEvent(member.ref, "Normal", "Scheduled", "Binding", note))
        if not member.pod.spec.node_name:
            spec = msgspec.structs.replace(member.pod.spec, node_name=node)
            self._pod(msgspec.structs.replace(member.pod, spec=spec), now)
        state.cures.add(IN_FLIGHT)
        if member.group is not None:
            self.review(member.group.root(), now, settled=True)

    def _bind_failed(self, uid: str, reason: str, now: float) -> None:
        state = self.state
        member = state.forest.members.get(uid)
        if member is None:
            return
        entity = state.queue.entities.get(entity_key(member))
        if entity is not None:
            entity.in_flight.discard(uid)
        if member.assumed:
            self._unassume(member)
            note = f"binding was refused: {reason}"[:1024]
            state.outbox.append(RecordEvent(member.ref, "Warning", "FailedScheduling", "Binding", note))
        if member.group is not None:
            state.reviewed.add(member.group.key)
            self.review(member.group.root(), now, settled=True)
        else:
            self._review_pod(member, now)
            if entity is not None and entity.key in state.queue.entities:
                state.queue.activate(entity)
        if (
            entity is not None
            and entity.state == ACTIVE
            and any(map(state.waits_for_volumes, state.members_of(entity)))
        ):
            state.queue.back_off(entity, now)

    # --- nodes -------------------------------------------------------------------------------------

    def _node(self, node: types.Node, now: float) -> None:
        state = self.state
        changed = state.cluster.change("Node", node)
        if not changed:
            return
        state.version += 1
        state.dirty.add(state.cluster.index[node.metadata.name])
        state.note(changed)
        taints = node.spec.taints or ()
        self._set_lost(node.metadata.name, any(t.key in LOST_TAINTS and t.effect == "NoExecute" for t in taints), now)

    def _set_lost(self, node: str, lost: bool, now: float) -> None:
        state = self.state
        was_lost = node in self._lost_nodes
        if lost == was_lost:
            return
        (self._lost_nodes.add if lost else self._lost_nodes.discard)(node)
        for member in list(state.forest.on_node.get(node, {}).values()):
            state.forest.set_lost(member, lost)
            if member.group is not None:
                state.reviewed.add(member.group.key)
                self.review(member.group.root(), now)
        for key, preempting in state.preempting.items():
            entity = state.queue.entities.get(key)
            if entity is not None and any(seat.node == node for seat in preempting.placed.assignments):
                state.queue.activate(entity)

    # --- groups ------------------------------------------------------------------------------------

    def _group(self, obj: api.PodGroup | api.CompositePodGroup, now: float) -> None:
        state = self.state
        group = state.forest.group(EntityKey(obj.kind, obj.metadata.namespace, obj.metadata.name))
        before = group.root().key
        old = group.obj
        state.conditions.observe(obj.metadata.uid, obj.status.conditions)
        if old is not None and old.spec == obj.spec and old.metadata.uid == obj.metadata.uid:
            group.obj = obj  # its own status came back
            return
        state.version += 1
        state.forest.put_group(obj)
        state.reviewed.add(group.key)
        top = group.root()
        state.suspects.add(top.key)
        if before != top.key:
            self._drop_root(before)
        self.review(top, now)

    def _group_gone(self, key: EntityKey, now: float) -> None:
        state = self.state
        group = state.forest.groups.get(key)
        if group is None or group.obj is None:
            return
        state.version += 1
        before = group.root()
        state.conditions.forget(group.obj.metadata.uid)
        state.forest.remove_group(key)
        for top in {before.key: before, key: group}.values():
            if top.key in state.forest.groups:
                state.suspects.add(top.root().key)
                self.review(top.root(), now)
            else:
                self._drop_root(top.key)
                state.faults.pop(top.key, None)

    def _suspect_workload(self, namespace: str, name: str) -> None:
        for group in self.state.forest.groups.values():
            ref = group.obj.spec.workload_ref if group.obj else None
            if ref is not None and group.key.namespace == namespace and ref.workload_name == name:
                self.state.suspects.add(group.root().key)

    def review(self, top: Group, now: float, settled: bool = False, cause: Group | None = None) -> None:
        """Put a tree's root where its present state says: waiting, in line, or out of the queue.

        A failed root is not tried again for a member of a group that is still incomplete: nothing could come of it.
        """
        state = self.state
        entity = state.queue.entities.get(top.key)
        if top.pending_below == 0:
            if entity is not None and not entity.in_flight:
                state.notices.stop(top.key)
                self._drop_root(top.key)
            return
        if entity is None:
            entity = state.queue.add(QueuedEntity(top.key, group=top), now)
        self._describe(entity, top)
        if entity.in_flight:
            return
        if not self._ready(top):
            self._stop_waiting_for_victims(top.key)
            state.queue.set_aside(entity, WAITING)
            state.notices.start(top.key, now)
        elif cause is None or cause.admitted or entity.state not in (PARKED, BACKOFF):
            state.notices.stop(top.key)
            self._line_up(entity, settled, now)

    def _ready(self, top: Group) -> bool:
        return top.exists and top.placeable and not top.gated and not top.cyclic and top.key not in self.state.faults

    def _line_up(self, entity: QueuedEntity, settled: bool, now: float) -> None:
        queue = self.state.queue
        if entity.state == PREEMPTING:
            return
        if entity.state in (WAITING, ACTIVE) or (settled and entity.state == "binding"):
            queue.activate(entity)
        else:
            queue.requeue(entity, now)

    @staticmethod
    def _describe(entity: QueuedEntity, top: Group) -> None:
        entity.group = top
        entity.priority = priority_of(top)
        entity.created = top.created
        entity.uid = top.obj.metadata.uid if top.obj is not None else ""
        leaves = list(top.leaves())
        partly = any(0 < leaf.bound < leaf.minimum for leaf in leaves)
        entity.partly_bound = partly or (not _holds(top) and any(leaf.bound for leaf in leaves))

    def _drop_root(self, key: EntityKey) -> None:
        self.state.queue.remove(key)
        self._stop_waiting_for_victims(key)

    def _stop_waiting_for_victims(self, key: EntityKey) -> None:
        """The root needs its seats no longer: marks and nominations are taken back by the next turn."""
        preempting = self.state.preempting.pop(key, None)
        if preempting is not None:
            self.state.orphans |= preempting.marked
        for uid in [uid for uid, hold in self.state.holds.items() if hold.entity == key]:
            member = self.state.forest.members.get(uid)
            if member is not None and member.nominated:
                self.state.outbox.append(Nominate(member.ref, ""))
        self.state.release(key)

    # --- start -------------------------------------------------------------------------------------

    def _synced(self) -> None:
        """The first picture is complete: find what an earlier run left half done."""
        state = self.state
        state.synced = True
        for member in state.forest.members.values():
            if member.state == RUNNING and marked_as_victim(member.pod, state.config.profiles):
                state.orphans.add(member.uid)
            if member.state in (PENDING, RUNNING) and member.node and member.node not in state.cluster.index:
                state.forest.set_lost(member, True)
        for group in state.forest.groups.values():
            state.reviewed.add(group.key)
            state.suspects.add(group.root().key)
        self._settle_nominations()

    def _settle_nominations(self) -> None:
        """Seats promised by an earlier run are kept until their root had its turn, if a victim is still there."""
        state = self.state
        nominated: dict[EntityKey, list[Member]] = {}
        for member in state.forest.members.values():
            ours = member.state == PENDING and member.traits[0] in state.config.profiles
            if ours and member.pod.status.nominated_node_name:
                nominated.setdefault(entity_key(member), []).append(member)
        left = {state.cluster.pods[uid].node for uid in state.orphans | state.leaving if uid in state.cluster.pods}
        for key, members in sorted(nominated.items()):
            entity = state.queue.entities.get(key)
            alive = any(member.pod.status.nominated_node_name in left for member in members)
            for member in sorted(members, key=lambda m: m.order):
                node = member.pod.status.nominated_node_name or ""
                if alive and entity is not None and entity.state == ACTIVE and node in state.cluster.index:
                    member.nominated = node
                    state.holds[member.uid] = Nomination(member.uid, state.shape_of(member), node, entity.priority, key)
                else:
                    state.outbox.append(Nominate(member.ref, ""))


def _holds(group: Group) -> bool:
    """Does the group have its minimum, binds in flight included?"""
    if group.is_leaf:
        return group.bound >= group.minimum
    return sum(_holds(child) for child in group.children.values() if not child.cyclic) >= group.minimum


def marked_as_victim(pod: types.Pod, schedulers: Container[str]) -> bool:
    """Does the pod carry the mark of an eviction by one of these schedulers?"""
    return any(
        c.type == api.DISRUPTION_TARGET
        and c.status == "True"
        and c.reason == PREEMPTION_BY_SCHEDULER
        and c.message.partition(":")[0] in schedulers
        for c in pod.status.conditions or ()
    )


def _alike(old: types.Pod, new: types.Pod) -> bool:
    """Do two forms of a pod differ in nothing that scheduling reads?"""
    return (
        old.status.phase == new.status.phase
        and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        and old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
    )
