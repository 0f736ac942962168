"""Simulated kubelets for `muster up --nodes N`: they register nodes, renew leases, and start, end and stop pods.

One watch for nodes, one for pods, one delay queue and one heartbeat serve all nodes. Nodes that were not created here
(they lack the label `muster.dev/simulated`) are never touched, nor are their pods.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import DEVICE_CLASSES, NODES, PODS, RESOURCE_SLICES, Resource
from muster.client.clock import Clock, SystemClock, seconds_of, timestamp
from muster.client.protocol import Client
from muster.client.reflector import Reflector, StoreFunctions
from muster.nodes import statuses
from muster.nodes.delay_queue import DelayQueue
from muster.nodes.heartbeat import Heartbeat
from muster.nodes.inventory import FAILED, SIMULATED, Inventory, host_address, pod_network, ready, ready_unknown
from muster.nodes.kubelets import NodeState, PodStage, PodState, Timing, pod_state_of
from muster.nodes.views import KubeletNode, KubeletPod

logger = logging.getLogger(__name__)

_AT_ONCE = 64
_RETRY = 1.0
_LONGEST_LOG = 1000  # lines that are kept of a pod


class SimulatedNodes:
    """The nodes of an inventory and their kubelets. `run` works until it is cancelled."""

    def __init__(
        self,
        client: Client,
        inventory: Inventory | None = None,
        *,
        timing: Timing | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._inventory = inventory or Inventory()
        self._timing = timing or Timing()
        self._clock: Clock = clock or SystemClock()
        self._delayed = DelayQueue(self._clock)
        self._nodes: dict[str, NodeState] = {}
        self._pods: dict[str, PodState] = {}  # by uid
        self._by_key: dict[tuple[str, str], str] = {}
        self._heartbeat = Heartbeat(client, self._clock, self._powered_nodes)
        self._indexes = 0
        self.ready = asyncio.Event()

    # Public

    async def run(self) -> None:
        """Create the nodes that are missing, then simulate all kubelets until cancelled."""
        await self.create()
        node_store = StoreFunctions(self._replace_nodes, self._node_seen, self._node_deleted)
        nodes = Reflector(self._client, NODES, node_store, self._clock, into=KubeletNode)
        pod_store = StoreFunctions(self._replace_pods, self._pod_seen, self._pod_deleted)
        pods = Reflector(self._client, PODS, pod_store, self._clock, into=KubeletPod)
        async with asyncio.TaskGroup() as group:
            group.create_task(nodes.run())
            # A pod can only be admitted once it is known whether its node is simulated.
            await nodes.synced.wait()
            group.create_task(pods.run())
            group.create_task(self._delayed.run())
            group.create_task(self._heartbeat.run())

    async def create(self) -> None:
        """Register every node of the inventory that does not exist, and its devices."""
        names = self._inventory.names()
        for driver in self._inventory.drivers:
            await self._create(DEVICE_CLASSES, driver.device_class())
        for start in range(0, len(names), _AT_ONCE):
            batch = range(start, min(start + _AT_ONCE, len(names)))
            await asyncio.gather(*(self._register(index) for index in batch))

    async def fail(self, name: str) -> None:
        """Simulate a power failure of a node."""
        await self._client.patch(NODES, name, {"metadata": {"annotations": {FAILED: "true"}}})

    async def recover(self, name: str) -> None:
        """End a simulated power failure."""
        await self._client.patch(NODES, name, {"metadata": {"annotations": {FAILED: None}}})

    def log(self, namespace: str, name: str) -> str:
        """The log of a pod on a simulated node; empty for other pods."""
        state = self._pods.get(self._by_key.get((namespace, name), ""))
        if state is None:
            return ""
        return "".join(f"{timestamp(when)} {line}\n" for when, line in state.lines)

    # Nodes

    async def _register(self, index: int) -> None:
        node = self._inventory.node(index, self._clock.now())
        await self._create(NODES, node)
        for driver in self._inventory.drivers:
            for each in driver.slices(node["metadata"]["name"], node["metadata"]["labels"]):
                await self._create(RESOURCE_SLICES, each)

    async def _create(self, resource: Resource, obj: dict[str, Any]) -> None:
        try:
            await self._client.create(resource, obj)
        except ApiError as error:
            if error.code != 409:
                raise

    def _powered_nodes(self) -> list[tuple[str, str]]:
        return [(name, node.view.metadata.uid) for name, node in self._nodes.items() if node.powered]

    def _replace_nodes(self, views: list[KubeletNode]) -> None:
        names = {each.metadata.name for each in views}
        for gone in [name for name in self._nodes if name not in names]:
            self._node_gone(gone)
        for each in views:
            self._node_seen(each)

    def _node_deleted(self, view: KubeletNode) -> None:
        self._node_gone(view.metadata.name)

    def _node_gone(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        for uid in list(node.pods) if node is not None else ():
            self._forget(uid)

    def _node_seen(self, view: KubeletNode) -> None:
        name = view.metadata.name
        if SIMULATED not in (view.metadata.labels or {}):
            return
        node = self._nodes.get(name)
        if node is None or node.view.metadata.uid != view.metadata.uid:
            if node is not None:
                self._node_gone(name)
            node = self._nodes[name] = NodeState(view, self._next_index(name))
        node.view = view
        powered = (view.metadata.annotations or {}).get(FAILED) != "true"
        revived = powered and not node.powered
        node.powered = powered
        if powered != view.ready:
            self._delayed.at(self._clock.now(), lambda: self._report_node(name))
        if revived:
            self._resume(node)

    def _next_index(self, name: str) -> int:
        number = name.rpartition("-")[2]
        if number.isdigit():
            return int(number)
        self._indexes += 1
        return self._inventory.count + self._indexes

    async def _report_node(self, name: str) -> None:
        """Write the Ready condition of a node; renew its lease first, so that the node is not marked unknown again."""
        node = self._nodes.get(name)
        if node is None or node.view.ready == node.powered:
            return
        now = self._clock.now()
        if node.powered:
            await self._heartbeat.now(name, node.view.metadata.uid)
        condition = ready(now) if node.powered else ready_unknown(now)
        patch = {"metadata": {"uid": node.view.metadata.uid}, "status": {"conditions": [condition]}}

        async def write() -> Any:
            return await self._client.patch(NODES, name, patch, type="strategic", subresource="status")

        await self._attempt(write, lambda: self._report_node(name))

    def _resume(self, node: NodeState) -> None:
        for uid in list(node.pods):
            state = self._pods.get(uid)
            if state is not None:
                self._schedule_next(state)

    # Pods

    def _replace_pods(self, pods: list[KubeletPod]) -> None:
        uids = {each.metadata.uid for each in pods}
        for gone in [uid for uid in self._pods if uid not in uids]:
            self._forget(gone)
        for each in sorted(pods, key=_running_first):
            self._pod_seen(each)
        self.ready.set()

    def _pod_deleted(self, pod: KubeletPod) -> None:
        self._forget(pod.metadata.uid)

    def _forget(self, uid: str) -> None:
        state = self._pods.pop(uid, None)
        if state is None:
            return
        if self._by_key.get(state.pod.key) == uid:
            del self._by_key[state.pod.key]
        node = self._nodes.get(state.node)
        if node is not None:
            node.release(state)

    def _pod_seen(self, pod: KubeletPod) -> None:
        node = self._nodes.get(pod.spec.node_name)
        if node is None:
            return
        uid = pod.metadata.uid
        state = self._pods.get(uid)
        if state is None:
            self._admit(node, pod_state_of(pod))
            return
        was_going = state.pod.metadata.deletion_timestamp
        shorter = state.pod.metadata.deletion_grace_period_seconds != pod.metadata.deletion_grace_period_seconds
        limited = state.pod.spec.active_deadline_seconds != pod.spec.active_deadline_seconds
        state.pod = pod
        if pod.ended and state.stage is not PodStage.STOPPING:
            state.stage = PodStage.ENDED
            node.release(state)
        going = pod.metadata.deletion_timestamp is not None
        if (going and (was_going is None or shorter)) or (limited and state.stage is PodStage.RUNNING):
            self._schedule_next(state)

    def _admit(self, node: NodeState, state: PodState) -> None:
        uid = state.pod.metadata.uid
        self._pods[uid] = state
        self._by_key[state.pod.key] = uid
        if node.powered and state.stage is PodStage.STARTING and state.pod.metadata.deletion_timestamp is None:
            refused = node.refusal(state)
            if refused is not None:
                state.stage = PodStage.ENDED
                self._note(state, refused[1])
                self._do(0.0, state, lambda: self._reject(state, *refused))
                return
        if state.stage is not PodStage.ENDED:
            node.take(state)
        if state.stage is PodStage.RUNNING:
            state.started_at = seconds_of(state.pod.status.start_time) or self._clock.now()
            state.first_started_at = state.started_at
        state.address = node.next_address(pod_network(node.index))
        self._schedule_next(state)

    def _schedule_next(self, state: PodState) -> None:
        """Put the next action of a pod into the delay queue."""
        pod = state.pod
        if pod.metadata.deletion_timestamp is not None:
            state.stage = PodStage.STOPPING
            self._do(0.0 if pod.ended else self._timing.stop_delay(pod), state, lambda: self._stop(state))
        elif state.stage is PodStage.STARTING:
            self._do(self._timing.start_delay(pod), state, lambda: self._start(state))
        elif state.stage is PodStage.RUNNING:
            end, exceeded = self._timing.end_of(state)
            if end < math.inf:
                action = self._exceed_deadline if exceeded else self._end
                self._do(max(0.0, end - self._clock.now()), state, lambda: action(state))

    def _do(self, delay: float, state: PodState, action: Callable[[], Awaitable[None]]) -> None:
        """Do the action after a delay, unless the pod is in another stage by then or its node has no power."""
        state.turn += 1
        turn = state.turn

        async def act() -> None:
            node = self._nodes.get(state.node)
            stale = turn != state.turn or self._pods.get(state.pod.metadata.uid) is not state
            if not stale and node is not None and node.powered:
                await self._attempt(action, lambda: self._again(state, turn, action))

        self._delayed.at(self._clock.now() + delay, act)

    async def _again(self, state: PodState, turn: int, action: Callable[[], Awaitable[None]]) -> None:
        if turn == state.turn:
            self._do(0.0, state, action)

    async def _attempt(self, action: Callable[[], Awaitable[Any]], retry: Callable[[], Awaitable[None]]) -> None:
        """Do a write; one about what is gone or cannot be (404, 422) is dropped, any other failure is retried.

        A conflict is retried too: a server also answers it when others wrote at the same time. What is out of date by
        then is dropped by the retry.
        """
        try:
            await action()
        except ApiError as error:
            if error.code in (404, 422):
                logger.debug("a kubelet's write came too late: %s", error)
                return
            level = logging.DEBUG if error.code == 409 else logging.WARNING
            logger.log(level, "a kubelet's write failed: %s", error)
            self._delayed.at(self._clock.now() + _RETRY, retry)
        except (ConnectionError, TimeoutError):
            self._delayed.at(self._clock.now() + _RETRY, retry)

    # Actions of a pod

    async def _start(self, state: PodState) -> None:
        now = self._clock.now()
        node = self._nodes[state.node]
        patch = statuses.running(state.pod, now, host_address(node.index), state.address, state.restarts)
        await self._write(state, patch)
        state.stage, state.started_at = PodStage.RUNNING, now
        state.first_started_at = state.first_started_at or now
        self._note(state, f"started on {state.node}" + (f", restart {state.restarts}" if state.restarts else ""))
        for line in self._timing.said_of(state.pod):
            self._note(state, line)
        self._schedule_next(state)

    async def _end(self, state: PodState) -> None:
        now, code = self._clock.now(), state.pod.exit_code
        self._note(state, f"ended with exit code {code}")
        if code and state.pod.spec.restart_policy == "OnFailure":
            state.restarts += 1
            state.stage = PodStage.STARTING
            self._schedule_next(state)
            return
        await self._write(state, statuses.ended(state.pod, state.started_at, now, code, state.restarts))
        state.stage = PodStage.ENDED
        if state.node in self._nodes:
            self._nodes[state.node].release(state)

    async def _exceed_deadline(self, state: PodState) -> None:
        """As a kubelet does: the containers are stopped and the pod has failed, whatever its restart policy."""
        now = self._clock.now()
        self._note(state, f"stopped after {state.pod.spec.active_deadline_seconds} s: its deadline is exceeded")
        await self._write(state, statuses.deadline_exceeded(state.pod, state.started_at, now, state.restarts))
        state.stage = PodStage.ENDED
        if state.node in self._nodes:
            self._nodes[state.node].release(state)

    async def _reject(self, state: PodState, reason: str, message: str) -> None:
        await self._write(state, statuses.rejected(state.pod, self._clock.now(), reason, message))

    async def _stop(self, state: PodState) -> None:
        self._note(state, "stopped")
        namespace, name = state.pod.key
        await self._client.delete(PODS, name, namespace, uid=state.pod.metadata.uid, grace_period_seconds=0)

    async def _write(self, state: PodState, patch: dict[str, Any]) -> None:
        namespace, name = state.pod.key
        await self._client.patch(PODS, name, patch, namespace, type="strategic", subresource="status")

    def _note(self, state: PodState, line: str) -> None:
        state.lines.append((self._clock.now(), line))
        del state.lines[:-_LONGEST_LOG]


def _running_first(pod: KubeletPod) -> bool:
    """Pods that already run are admitted first; they keep the resources that they have."""
    return pod.status.phase != "Running"
