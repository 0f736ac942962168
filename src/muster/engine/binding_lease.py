"""The lease that lets several Musters bind in one cluster: one of them at a time sends binds.

Without it two schedulers can bind gangs to the same nodes within one round trip, and the nodes refuse the pods of one.
A scheduler that holds the lease keeps it for as long as nobody else asks, so a scheduler on its own pays one write in
some seconds of work. Who waits writes its name into an annotation; the holder sees that in its watch, lets the binds
under way end, and writes the newest version of the pods it has seen when it gives the lease back. The next holder
starts once its own watch has come as far, so it sees every bind of the one before. A holder that does not answer loses
the lease when that expires, by the clock of the one who waits. Schedulers other than Muster do not take part.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Any, Protocol

from muster.api.errors import ApiError
from muster.api.resources import LEASES, PODS
from muster.client.backoff import Backoff, is_transient
from muster.client.clock import Clock, micro_timestamp
from muster.client.error_text import error_text
from muster.client.objects import metadata, part
from muster.client.protocol import Client, Obj
from muster.logs import V, keys
from muster.scheduler.interface.keys import ObjectRef

log = logging.getLogger(__name__)

NAMESPACE, NAME = "kube-system", "muster-binding"
WAITING = "scheduling.muster.dev/waiting"  # names of those who wait, separated by commas
PODS_SEEN = "scheduling.muster.dev/pods-seen"  # version of the pods that the last holder had seen at its end
DURATION = 6.0
TURN = 0.5  # seconds that a holder goes on binding while others wait
PRECEDENCE = 1.0  # seconds that a free lease is left to the first of those who wait
CATCH_UP = 2.0  # seconds at most that a watch is waited for
POLL = 0.005


class PodWatch(Protocol):
    """The pods as the watch shows them."""

    known: dict[tuple[str, str], Any]

    @property
    def version(self) -> int: ...


class BindingLease:
    """The right to send binds, shared with other Musters under the names of the schedulers that each of them serves."""

    def __init__(self, client: Client, names: Collection[str], clock: Clock) -> None:
        self.identity = "+".join(sorted(names))
        self.enabled = True
        self.partners: set[str] = set()  # names that others serve who took part so far
        self._client = client
        self._clock = clock
        self._pods: PodWatch | None = None
        self._lease: Obj | None = None  # as it was last seen
        self._seen_at = 0.0
        self._held_until = 0.0
        self._held_since = 0.0
        self._users = 0
        self._bound: list[ObjectRef] = []  # since the lease was acquired
        self._changed = asyncio.Event()
        self._unused = asyncio.Event()
        self._unused.set()
        self._writing = asyncio.Lock()

    def follow(self, pods: PodWatch) -> None:
        """Which watch shows the binds of all schedulers."""
        self._pods = pods

    # --- for those who bind ------------------------------------------------------------------------

    def enter(self) -> None:
        """Binds are coming: the lease is not given back before `leave`."""
        self._users += 1
        self._unused.clear()

    def leave(self, bound: ObjectRef | None = None) -> None:
        """The end of what `enter` began; `bound` is the pod that was bound."""
        if bound is not None:
            self._bound.append(bound)
        self._users -= 1
        if not self._users:
            self._unused.set()
            self._changed.set()

    def try_acquire(self) -> bool:
        """`enter`, if the lease is held and nobody waits for its turn."""
        if self.enabled and (not self._holds() or self._is_turn_over()):
            return False
        self.enter()
        return True

    async def acquire(self) -> None:
        """Wait for the lease, behind those who wait already if it was held long enough; then `enter`."""
        while not self.try_acquire():
            if self._holds():
                await self._unused.wait()
                await self._give_back()
            await self.ensure()

    def _is_turn_over(self) -> bool:
        return self._others_wait() and self._clock.now() - self._held_since >= TURN

    async def ensure(self) -> None:
        """Wait until the lease is held."""
        while self.enabled and not self._holds():
            async with self._writing:
                if self._holds():
                    return
                await self._try()

    async def run(self) -> None:
        """Follow the lease until cancelled, and give it back when others wait and nothing is being bound."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            while True:
                await self._changed.wait()
                self._changed.clear()
                if self._holds() and self._others_wait() and not self._users:
                    await self._give_back()

    async def release(self) -> None:
        """Give the lease back at the end of the process, when the watches have ended."""
        self._users = 0
        if self._holds():
            versions = await asyncio.gather(
                *(self._stored_version(pod) for pod in self._bound if not self._is_bound(pod))
            )
            self._bound = []
            await self._give_back(max(versions, default=0))

    # --- what is known -----------------------------------------------------------------------------

    def _holds(self) -> bool:
        return self._clock.now() < self._held_until

    def _holder(self) -> str:
        return str(part(self._lease or {}, "spec").get("holderIdentity") or "")

    def _waiting(self) -> list[str]:
        return [name for name in self._annotations().get(WAITING, "").split(",") if name]

    def _annotations(self) -> dict[str, str]:
        return metadata(self._lease or {}).get("annotations") or {}

    def _others_wait(self) -> bool:
        return any(name != self.identity for name in self._waiting())

    def _see(self, lease: Obj | None) -> None:
        known, new = (int(metadata(each or {}).get("resourceVersion") or 0) for each in (self._lease, lease))
        if lease is not None and new <= known:
            return
        self._lease, self._seen_at = lease, self._clock.now()
        for identity in (self._holder(), *self._waiting()):
            self.partners.update(identity.split("+") if identity and identity != self.identity else ())
        if self._holder() != self.identity:
            self._held_until = 0.0
        self._changed.set()

    # --- acquiring ---------------------------------------------------------------------------------

    async def _try(self) -> None:
        """One step towards the lease: take it, ask for it, or wait for a change."""
        try:
            if self._lease is None:
                await self._read()
            elif self._is_free():
                await self._take()
            elif self.identity not in self._waiting():
                await self._write(self._holder(), [*self._waiting(), self.identity], {})
            else:
                await self._wait_for_change()
        except ApiError as error:
            await self._refused(error)
        except (ConnectionError, TimeoutError):
            await self._clock.sleep(0.2)

    def _is_free(self) -> bool:
        holder, waiting, age = self._holder(), self._waiting(), self._clock.now() - self._seen_at
        if holder and holder != self.identity:
            return age >= DURATION
        first = waiting[0] if waiting else self.identity
        return first == self.identity or age >= PRECEDENCE

    async def _read(self) -> None:
        try:
            self._see(await self._client.get(LEASES, NAME, NAMESPACE))
        except ApiError as error:
            if error.code != 404:
                raise
            meta = {"name": NAME, "namespace": NAMESPACE}
            body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": meta, "spec": {}}
            self._see(await self._client.create(LEASES, body))

    async def _take(self) -> None:
        began = self._clock.now()
        fresh = self._holder() != self.identity
        seen = int(self._annotations().get(PODS_SEEN) or 0)
        await self._write(self.identity, [name for name in self._waiting() if name != self.identity], {})
        if fresh:
            self._held_since, self._bound = self._clock.now(), []
            await self._until(lambda: self._pods_version() >= seen)
        self._held_until = began + DURATION * 0.6  # well before others may think that it has expired
        log.log(V(4), "Binding lease", extra=keys(holder=self.identity))

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        try:
            async with asyncio.timeout(0.25):
                await self._changed.wait()
        except TimeoutError:
            self._see(await self._client.get(LEASES, NAME, NAMESPACE))

    async def _refused(self, error: ApiError) -> None:
        if error.code in (404, 409):
            self._lease = None  # another was faster
        elif is_transient(error):
            await self._clock.sleep(0.2)
        else:
            text = error_text(error, f"get, create, update and watch in namespace {NAMESPACE}", "leases", LEASES.group)
            log.warning("Binding without a lease", extra=keys(lease=f"{NAMESPACE}/{NAME}", err=text))
            self.enabled = False

    # --- giving back -------------------------------------------------------------------------------

    async def _stored_version(self, ref: ObjectRef) -> int:
        try:
            return int(metadata(await self._client.get(PODS, ref.name, ref.namespace)).get("resourceVersion") or 0)
        except (ApiError, ConnectionError, TimeoutError):
            return 0

    async def _give_back(self, version: int = 0) -> None:
        async with self._writing:
            if not self._holds() or self._users:
                return
            self._held_until = 0.0
            bound, self._bound = self._bound, []
            await self._until(lambda: all(self._is_bound(pod) for pod in bound))
            try:
                await self._write("", self._waiting(), {PODS_SEEN: str(max(version, self._pods_version()))})
            except ApiError:
                self._lease = None
                await self._write_back(version)
            except (ConnectionError, TimeoutError):
                self._lease = None  # it expires

    async def _write_back(self, version: int) -> None:
        """Once more with what is stored now: somebody began to wait meanwhile."""
        try:
            await self._read()
            if self._holder() == self.identity:
                await self._write("", self._waiting(), {PODS_SEEN: str(max(version, self._pods_version()))})
        except (ApiError, ConnectionError, TimeoutError) as error:
            log.log(V(2), "The binding lease expires", extra=keys(err=str(error)))

    def _pods_version(self) -> int:
        return self._pods.version if self._pods is not None else 0

    def _is_bound(self, ref: ObjectRef) -> bool:
        """Whether the watch shows a pod bound or gone."""
        pod = self._pods.known.get((ref.namespace, ref.name)) if self._pods is not None else None
        return pod is None or pod.metadata.uid != ref.uid or bool(pod.spec.node_name)

    async def _until(self, holds: Callable[[], bool]) -> None:
        end = self._clock.now() + CATCH_UP
        while not holds() and self._clock.now() < end:
            await self._clock.sleep(POLL)

    # --- the wire ----------------------------------------------------------------------------------

    async def _write(self, holder: str, waiting: list[str], more: dict[str, str]) -> None:
        lease = self._lease or {}
        meta = metadata(lease)
        annotations = {**self._annotations(), **more, WAITING: ",".join(waiting)}
        spec = {**part(lease, "spec"), "holderIdentity": holder, "leaseDurationSeconds": int(DURATION)}
        if holder == self.identity:
            spec["renewTime"] = micro_timestamp(self._clock.now())
        body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, **lease, "spec": spec}
        self._see(await self._client.update(LEASES, {**body, "metadata": {**meta, "annotations": annotations}}))

    async def _watch(self) -> None:
        backoff = Backoff(self._clock, first=0.2, most=30.0)
        while self.enabled:
            try:
                async for event in self._client.watch(LEASES, NAMESPACE, field_selector=f"metadata.name={NAME}"):
                    if event.type == "DELETED":
                        self._lease = None
                        self._held_until = 0.0
                    elif event.type != "BOOKMARK":
                        self._see(event.object)
                backoff.reset()
            except (ApiError, OSError) as error:
                log.log(V(2), "Cannot follow the binding lease", extra=keys(err=str(error)))
            await backoff.wait()
