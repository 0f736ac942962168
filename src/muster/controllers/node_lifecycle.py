"""Node lifecycle: a node whose lease expires gets Ready=Unknown and taints; pods are evicted after their toleration.

A node that never had a lease is left alone: it has no kubelet that would renew one. Readiness decides the taints, so a
kubelet that reports itself not ready is treated the same way.
"""

from __future__ import annotations

import asyncio
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import LEASES, NODES, PODS
from muster.api.selectors import tolerates
from muster.api.types import Taint
from muster.client.clock import seconds_of, timestamp
from muster.controllers.controller import Controller
from muster.controllers.objects import PodView, UnstructuredObject
from muster.controllers.status import JSON, condition, with_condition, write_status

LEASE_NAMESPACE = "kube-node-lease"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
_EFFECTS = ("NoSchedule", "NoExecute")
_DEFAULT_LEASE = 40.0


class NodeLifecycle(Controller):
    name = "node-lifecycle-controller"
    workers = 8

    def setup(self) -> None:
        self._nodes = self.watch(NODES)
        self._leases = self.watch(LEASES)
        self._pods = self.watch(PODS)
        self._by_node = self._pods.index("by-node", lambda pod: pod.spec.node_name or None)
        self._renewed: dict[str, tuple[str, float]] = {}  # node -> renewTime, when we first saw it
        self._nodes.on_change(lambda old, new: self.queue.add((new or old).metadata.name))
        self._leases.on_change(self._lease_changed)
        self._pods.on_change(self._pod_changed)

    def _lease_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        if new is None or new.metadata.namespace != LEASE_NAMESPACE:
            return
        renewed: str = new.spec.get("renewTime") or ""
        name = new.metadata.name
        first = name not in self._renewed
        if first or self._renewed[name][0] != renewed:
            self._renewed[name] = (renewed, self.clock.now())
        if first:
            self.queue.add(name)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        if new is not None and new.spec.node_name and (old is None or old.spec.node_name != new.spec.node_name):
            node: UnstructuredObject | None = self._nodes.get("", new.spec.node_name)
            if node is None or _no_execute(node):
                self.queue.add(new.spec.node_name)

    async def reconcile(self, key: str) -> float | None:
        if key not in self._renewed:
            return None
        node: UnstructuredObject | None = self._nodes.get("", key)
        if node is None:
            await self._delete_pods_of(key)
            return None
        left = self._lease_left(key)
        if left <= 0 and _ready(node) != "Unknown":
            await self._mark_unknown(node)
            return 0.0
        if await self._taint(node):
            return None
        again = await self._evict(node)
        times = [each for each in (again, left if left > 0 else None) if each is not None]
        return min(times, default=None)

    def _lease_left(self, name: str) -> float:
        """Seconds until the lease runs out, counted from when its last renewal was seen."""
        lease: UnstructuredObject | None = self._leases.get(LEASE_NAMESPACE, name)
        duration = float((lease.spec.get("leaseDurationSeconds") if lease is not None else None) or _DEFAULT_LEASE)
        return self._renewed[name][1] + duration - self.clock.now()

    async def _mark_unknown(self, node: UnstructuredObject) -> None:
        now = timestamp(self.clock.now())
        new = {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
            "lastTransitionTime": now,
        }
        conditions: list[JSON] = node.status.get("conditions") or []
        status = {**node.status, "conditions": with_condition(conditions, new)}
        await write_status(self.client, NODES, node, status)
        text = f"Node {node.metadata.name} status is now: NodeNotReady"
        await self.events.normal(NODES, node.metadata, "NodeNotReady", text)

    async def _taint(self, node: UnstructuredObject) -> bool:
        """Set the taints that follow from the node's readiness; whether anything changed."""
        state = _ready(node)
        key = {"True": "", "False": NOT_READY}.get(state, UNREACHABLE)
        taints: list[JSON] = node.spec.get("taints") or []
        kept = [each for each in taints if each.get("key") not in (NOT_READY, UNREACHABLE) or each.get("key") == key]
        missing = [
            effect
            for effect in _EFFECTS
            if key and not any(each.get("key") == key and each.get("effect") == effect for each in kept)
        ]
        now = timestamp(self.clock.now())
        wanted = [*kept, *({"key": key, "effect": effect, "timeAdded": now} for effect in missing)]
        if wanted == taints:
            return False
        patch = {"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": wanted or None}}
        await self.client.patch(NODES, node.metadata.name, patch)
        return True

    # Pods on lost nodes

    async def _evict(self, node: UnstructuredObject) -> float | None:
        """Delete pods that no longer tolerate the node's taints; seconds until the next one is due."""
        taints = _no_execute(node)
        if not taints:
            return None
        due: list[PodView] = []
        again: float | None = None
        for pod in self._by_node.get(node.metadata.name):
            if pod.going or pod.finished:
                continue
            left = self._time_left(pod, taints)
            if left is None:
                continue
            if left <= 0:
                due.append(pod)
            else:
                again = left if again is None else min(again, left)
        await asyncio.gather(*(self._evict_pod(pod) for pod in due))
        return again

    def _time_left(self, pod: PodView, taints: list[JSON]) -> float | None:
        """Seconds that a pod may stay; None for ever."""
        left: float | None = None
        for each in taints:
            taint = Taint(key=each["key"], effect=each["effect"], value=each.get("value") or "")
            accepted = [toleration for toleration in pod.spec.tolerations or () if tolerates(toleration, taint)]
            if not accepted:
                return 0.0
            limits = [toleration.toleration_seconds for toleration in accepted]
            bounded = [limit for limit in limits if limit is not None]
            if not bounded:
                continue
            since = seconds_of(each.get("timeAdded")) or self.clock.now()
            remaining = since + min(bounded) - self.clock.now()
            left = remaining if left is None else min(left, remaining)
        return left

    async def _evict_pod(self, pod: PodView) -> None:
        now = timestamp(self.clock.now())
        new = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": now,
        }
        name, namespace = pod.metadata.name, pod.metadata.namespace
        try:
            await self.client.patch(
                PODS, name, {"status": {"conditions": [new]}}, namespace, type="strategic", subresource="status"
            )
            await self.client.delete(PODS, name, namespace, uid=pod.metadata.uid)
            text = f"Marking for deletion Pod {namespace}/{name}"
            await self.events.normal(PODS, pod.metadata, "TaintManagerEviction", text)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    async def _delete_pods_of(self, name: str) -> None:
        """Delete the pods of a node that no longer exists, without grace: no kubelet is left to confirm it."""
        for pod in self._by_node.get(name):
            try:
                await self.client.delete(
                    PODS, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid, grace_period_seconds=0
                )
            except ApiError as error:
                if error.code not in (404, 409):
                    raise


def _ready(node: UnstructuredObject) -> str:
    found = condition(node.status.get("conditions") or [], "Ready")
    return str(found.get("status")) if found is not None else "Unknown"


def _no_execute(node: UnstructuredObject) -> list[JSON]:
    taints: Any = node.spec.get("taints") or []
    return [each for each in taints if each.get("effect") == "NoExecute"]
