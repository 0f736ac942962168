"""Simulated kubelets for `muster up --nodes N`: they register nodes, keep leases, and play pods through their lives.

One watch for nodes, one for pods, one agenda and one heartbeat serve all nodes. Nodes that were not created here (they
lack the label `muster.dev/simulated`) are never touched, nor are their pods.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import NODES, PODS
from muster.client.clock import Clock, SystemClock, seconds_of, timestamp
from muster.client.protocol import Client
from muster.client.reflector import Reflector, StoreFunctions
from muster.nodes import statuses
from muster.nodes.agenda import Agenda
from muster.nodes.heartbeat import Heartbeat
from muster.nodes.inventory import FAILED, SIMULATED, Inventory, host_address, pod_network, ready, silent
from muster.nodes.kubelets import Guest, Host, Stage, Timing, guest_of
from muster.nodes.views import KubeletNode, KubeletPod

logger = logging.getLogger(__name__)

_AT_ONCE = 64
_RETRY = 1.0


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
        self._agenda = Agenda(self._clock)
        self._hosts: dict[str, Host] = {}
        self._guests: dict[str, Guest] = {}  # by uid
        self._by_key: dict[tuple[str, str], str] = {}
        self._heartbeat = Heartbeat(client, self._clock, self._living)
        self._indexes = 0
        self.ready = asyncio.Event()

    # What others ask of it

    async def run(self) -> None:
        """Create the nodes that are missing, then play all kubelets."""
        await self.create()
        node_store = StoreFunctions(self._replace_nodes, self._node_seen, self._node_deleted)
        nodes = Reflector(self._client, NODES, node_store, self._clock, into=KubeletNode)
        pod_store = StoreFunctions(self._replace_pods, self._pod_seen, self._pod_deleted)
        pods = Reflector(self._client, PODS, pod_store, self._clock, into=KubeletPod)
        async with asyncio.TaskGroup() as group:
            group.create_task(nodes.run())
            # Pods only mean something once it is known which nodes are ours.
            await nodes.synced.wait()
            group.create_task(pods.run())
            group.create_task(self._agenda.run())
            group.create_task(self._heartbeat.run())

    async def create(self) -> None:
        """Register every node of the inventory that does not exist."""
        names = self._inventory.names()
        for start in range(0, len(names), _AT_ONCE):
            batch = range(start, min(start + _AT_ONCE, len(names)))
            await asyncio.gather(*(self._register(index) for index in batch))

    async def fail(self, name: str) -> None:
        """Cut a node's power."""
        await self._client.patch(NODES, name, {"metadata": {"annotations": {FAILED: "true"}}})

    async def recover(self, name: str) -> None:
        """Give a node its power back."""
        await self._client.patch(NODES, name, {"metadata": {"annotations": {FAILED: None}}})

    def log(self, namespace: str, name: str) -> str:
        """What a pod of ours has to say; empty for others."""
        guest = self._guests.get(self._by_key.get((namespace, name), ""))
        if guest is None:
            return ""
        return "".join(f"{timestamp(when)} {line}\n" for when, line in guest.lines)

    # Nodes

    async def _register(self, index: int) -> None:
        try:
            await self._client.create(NODES, self._inventory.node(index, self._clock.now()))
        except ApiError as error:
            if error.code != 409:
                raise

    def _living(self) -> list[tuple[str, str]]:
        return [(name, host.view.metadata.uid) for name, host in self._hosts.items() if host.powered]

    def _replace_nodes(self, views: list[KubeletNode]) -> None:
        names = {each.metadata.name for each in views}
        for gone in [name for name in self._hosts if name not in names]:
            self._node_gone(gone)
        for each in views:
            self._node_seen(each)

    def _node_deleted(self, view: KubeletNode) -> None:
        self._node_gone(view.metadata.name)

    def _node_gone(self, name: str) -> None:
        host = self._hosts.pop(name, None)
        for uid in list(host.guests) if host is not None else ():
            self._forget(uid)

    def _node_seen(self, view: KubeletNode) -> None:
        name = view.metadata.name
        if SIMULATED not in (view.metadata.labels or {}):
            return
        host = self._hosts.get(name)
        if host is None or host.view.metadata.uid != view.metadata.uid:
            if host is not None:
                self._node_gone(name)
            host = self._hosts[name] = Host(view, self._next_index(name))
        host.view = view
        powered = (view.metadata.annotations or {}).get(FAILED) != "true"
        revived = powered and not host.powered
        host.powered = powered
        if powered != view.ready:
            self._agenda.at(self._clock.now(), lambda: self._report_node(name))
        if revived:
            self._revive(host)

    def _next_index(self, name: str) -> int:
        number = name.rpartition("-")[2]
        if number.isdigit():
            return int(number)
        self._indexes += 1
        return self._inventory.count + self._indexes

    async def _report_node(self, name: str) -> None:
        """Say whether a node is ready; renew its lease first, so that nobody thinks otherwise."""
        host = self._hosts.get(name)
        if host is None or host.view.ready == host.powered:
            return
        now = self._clock.now()
        if host.powered:
            await self._heartbeat.now(name, host.view.metadata.uid)
        told = ready(now) if host.powered else silent(now)
        patch = {"metadata": {"uid": host.view.metadata.uid}, "status": {"conditions": [told]}}

        async def write() -> Any:
            return await self._client.patch(NODES, name, patch, type="strategic", subresource="status")

        await self._attempt(write, lambda: self._report_node(name))

    def _revive(self, host: Host) -> None:
        for uid in list(host.guests):
            guest = self._guests.get(uid)
            if guest is not None:
                self._plan(guest)

    # Pods

    def _replace_pods(self, pods: list[KubeletPod]) -> None:
        uids = {each.metadata.uid for each in pods}
        for gone in [uid for uid in self._guests if uid not in uids]:
            self._forget(gone)
        for each in sorted(pods, key=_running_first):
            self._pod_seen(each)
        self.ready.set()

    def _pod_deleted(self, pod: KubeletPod) -> None:
        self._forget(pod.metadata.uid)

    def _forget(self, uid: str) -> None:
        guest = self._guests.pop(uid, None)
        if guest is None:
            return
        if self._by_key.get(guest.pod.key) == uid:
            del self._by_key[guest.pod.key]
        host = self._hosts.get(guest.node)
        if host is not None:
            host.release(uid, guest.requests)

    def _pod_seen(self, pod: KubeletPod) -> None:
        host = self._hosts.get(pod.spec.node_name)
        if host is None:
            return
        uid = pod.metadata.uid
        guest = self._guests.get(uid)
        if guest is None:
            self._admit(host, guest_of(pod))
            return
        was_going = guest.pod.metadata.deletion_timestamp
        shorter = guest.pod.metadata.deletion_grace_period_seconds != pod.metadata.deletion_grace_period_seconds
        guest.pod = pod
        if pod.ended and guest.stage is not Stage.STOPPING:
            guest.stage = Stage.ENDED
            host.release(uid, guest.requests)
        if pod.metadata.deletion_timestamp is not None and (was_going is None or shorter):
            self._plan(guest)

    def _admit(self, host: Host, guest: Guest) -> None:
        uid = guest.pod.metadata.uid
        self._guests[uid] = guest
        self._by_key[guest.pod.key] = uid
        if host.powered and guest.stage is Stage.STARTING and guest.pod.metadata.deletion_timestamp is None:
            lacking = host.shortage(guest.requests)
            if lacking is not None:
                guest.stage = Stage.ENDED
                self._note(guest, lacking[1])
                self._do(0.0, guest, lambda: self._reject(guest, *lacking))
                return
        if guest.stage is not Stage.ENDED:
            host.take(uid, guest.requests)
        if guest.stage is Stage.RUNNING:
            guest.started_at = seconds_of(guest.pod.status.start_time) or self._clock.now()
        guest.address = host.next_address(pod_network(host.index))
        self._plan(guest)

    def _plan(self, guest: Guest) -> None:
        """Put the one thing that is next for a pod on the agenda."""
        pod = guest.pod
        if pod.metadata.deletion_timestamp is not None:
            guest.stage = Stage.STOPPING
            self._do(0.0 if pod.ended else self._timing.stop_delay(pod), guest, lambda: self._stop(guest))
        elif guest.stage is Stage.STARTING:
            self._do(self._timing.start_delay(pod), guest, lambda: self._start(guest))
        elif guest.stage is Stage.RUNNING:
            length = self._timing.run_length(pod)
            if length is not None:
                left = guest.started_at + length - self._clock.now()
                self._do(max(0.0, left), guest, lambda: self._end(guest))

    def _do(self, delay: float, guest: Guest, action: Callable[[], Awaitable[None]]) -> None:
        """Later, unless the pod is in another stage by then or its node has no power."""
        guest.turn += 1
        turn = guest.turn

        async def act() -> None:
            host = self._hosts.get(guest.node)
            stale = turn != guest.turn or self._guests.get(guest.pod.metadata.uid) is not guest
            if not stale and host is not None and host.powered:
                await self._attempt(action, lambda: self._again(guest, turn, action))

        self._agenda.at(self._clock.now() + delay, act)

    async def _again(self, guest: Guest, turn: int, action: Callable[[], Awaitable[None]]) -> None:
        if turn == guest.turn:
            self._do(0.0, guest, action)

    async def _attempt(self, action: Callable[[], Awaitable[Any]], retry: Callable[[], Awaitable[None]]) -> None:
        """Do it; what comes too late is dropped, what the server cannot do now comes again."""
        try:
            await action()
        except ApiError as error:
            if error.code in (404, 409, 422):
                logger.debug("a kubelet's write came too late: %s", error)
                return
            logger.warning("a kubelet's write failed: %s", error)
            self._agenda.at(self._clock.now() + _RETRY, retry)
        except (ConnectionError, TimeoutError):
            self._agenda.at(self._clock.now() + _RETRY, retry)

    # One pod's life

    async def _start(self, guest: Guest) -> None:
        now = self._clock.now()
        host = self._hosts[guest.node]
        patch = statuses.running(guest.pod, now, host_address(host.index), guest.address, guest.restarts)
        await self._write(guest, patch)
        guest.stage, guest.started_at = Stage.RUNNING, now
        self._note(guest, f"started on {guest.node}" + (f", restart {guest.restarts}" if guest.restarts else ""))
        self._plan(guest)

    async def _end(self, guest: Guest) -> None:
        now, code = self._clock.now(), guest.pod.exit_code
        self._note(guest, f"ended with exit code {code}")
        if code and guest.pod.spec.restart_policy == "OnFailure":
            guest.restarts += 1
            guest.stage = Stage.STARTING
            self._plan(guest)
            return
        await self._write(guest, statuses.ended(guest.pod, guest.started_at, now, code, guest.restarts))
        guest.stage = Stage.ENDED
        if guest.node in self._hosts:
            self._hosts[guest.node].release(guest.pod.metadata.uid, guest.requests)

    async def _reject(self, guest: Guest, reason: str, message: str) -> None:
        await self._write(guest, statuses.rejected(guest.pod, self._clock.now(), reason, message))

    async def _stop(self, guest: Guest) -> None:
        self._note(guest, "stopped")
        namespace, name = guest.pod.key
        await self._client.delete(PODS, name, namespace, uid=guest.pod.metadata.uid, grace_period_seconds=0)

    async def _write(self, guest: Guest, patch: dict[str, Any]) -> None:
        namespace, name = guest.pod.key
        await self._client.patch(PODS, name, patch, namespace, type="strategic", subresource="status")

    def _note(self, guest: Guest, line: str) -> None:
        guest.lines.append((self._clock.now(), line))


def _running_first(pod: KubeletPod) -> bool:
    """Pods that already run keep their seats; those that come later may find them taken."""
    return pod.status.phase != "Running"
