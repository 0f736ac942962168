"""Leader election by Lease, and the fence that makes it safe.

A leader renews its lease. A candidate that sees a lease unchanged for its whole duration, measured on its own clock,
may take it; clocks of different machines are never compared. A leader that could not renew in time writes nothing more:
after its deadline no write starts, and those in flight are cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import LEASES
from muster.client.clock import Clock, micro_timestamp
from muster.client.error_text import error_text
from muster.client.objects import metadata, part
from muster.client.protocol import Client, Obj
from muster.logs import V, keys

log = logging.getLogger(__name__)


class LeadershipLost(Exception):
    """Another process leads, or may: nothing more must be written."""


@dataclass(frozen=True, slots=True)
class Election:
    """How to elect: durations in seconds, and the lease's name."""

    identity: str
    namespace: str = "kube-system"
    name: str = "muster"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])  # what the lease says about its holder

    def fault(self) -> str | None:
        """What is wrong with these numbers, if anything."""
        if self.lease_duration <= self.renew_deadline:
            return "leaseDuration must be greater than renewDeadline"
        if self.renew_deadline <= self.retry_period * 1.2:
            return "renewDeadline must be greater than retryPeriod*1.2"
        return "leaseDuration must be at least 1s" if self.lease_duration < 1 else None


class Elector:
    """Acquires the lease, renews it, releases it."""

    def __init__(self, client: Client, election: Election, clock: Clock) -> None:
        self.election = election
        self.leading = asyncio.Event()
        self.lost = asyncio.Event()
        self.deadline = 0.0  # no write starts after this
        self.holder = ""
        self._client = client
        self._clock = clock
        self._observed: Obj = {}
        self._observed_at = 0.0

    def may_write(self) -> bool:
        """Whether the lease is surely ours at this moment."""
        return self.leading.is_set() and not self.lost.is_set() and self._clock.now() < self.deadline

    def guard(self) -> None:
        """Called before every write. Reads are always allowed: they show what became of a write."""
        if not self.may_write():
            raise LeadershipLost("no write may start: the lease is not surely ours")

    async def run(self, expired: Callable[[], None]) -> None:
        """Acquire the lease, then renew it until it is lost; `expired` is called at the deadline."""
        while not await self._try_acquire_or_renew():
            await self._clock.sleep(self._jittered())
        log.info("Became leader", extra=keys(lease=self._name(), identity=self.election.identity))
        self.leading.set()
        timer = self._arm(expired)
        try:
            while not self.lost.is_set():
                await self._clock.sleep(self.election.retry_period)
                # Past the deadline the lease may be anyone's, and calls in flight were cancelled: no way back.
                if self._clock.now() >= self.deadline:
                    break
                if await self._try_acquire_or_renew():
                    timer.cancel()
                    timer = self._arm(expired)
                elif self.holder not in ("", self.election.identity):
                    break
        finally:
            timer.cancel()
        if not self.lost.is_set():
            self._expire(expired)
        raise LeadershipLost(f"lost the lease {self._name()} (held by {self.holder or 'nobody'})")

    async def release(self) -> None:
        """Give the lease back, so that the next one need not wait for it to expire."""
        if not self.may_write():
            return
        self.lost.set()
        spec = {**part(self._observed, "spec"), "holderIdentity": "", "leaseDurationSeconds": 1}
        spec["renewTime"] = micro_timestamp(self._clock.now())
        try:
            async with asyncio.timeout(5.0):
                await self._client.update(LEASES, {**self._observed, "spec": spec})
            log.info("Released the lease", extra=keys(lease=self._name()))
        except (ApiError, ConnectionError, TimeoutError) as error:
            log.warning("The lease was not released", extra=keys(lease=self._name(), err=str(error)))

    # --- one attempt -------------------------------------------------------------------------------

    async def _try_acquire_or_renew(self) -> bool:
        """Try once to take or renew the lease, within what is left of the deadline."""
        election = self.election
        began = self._clock.now()
        left = self.deadline - began if self.leading.is_set() else election.renew_deadline
        try:
            async with asyncio.timeout(max(left, 0.01)):
                ours = await self._acquire_or_renew(began)
        except ApiError as error:
            text = error_text(
                error, f"get, create and update in namespace {election.namespace}", "leases", LEASES.group
            )
            log.warning("Cannot renew the lease", extra=keys(lease=self._name(), err=text))
            return False
        except (ConnectionError, TimeoutError) as error:
            log.warning("Cannot renew the lease", extra=keys(lease=self._name(), err=str(error) or "no answer in time"))
            return False
        if ours:
            self.deadline = began + election.renew_deadline
        return ours

    async def _acquire_or_renew(self, now: float) -> bool:
        election = self.election
        try:
            lease = await self._client.get(LEASES, election.name, election.namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            meta = {"name": election.name, "namespace": election.namespace, "annotations": {**election.annotations}}
            return await self._write(self._client.create, {"metadata": meta, "spec": self._spec({}, True)})
        spec = part(lease, "spec")
        if spec != part(self._observed, "spec"):
            self._observed, self._observed_at = lease, now
        self.holder = str(spec.get("holderIdentity") or "")
        mine = self.holder == election.identity
        # The holder's own duration counts, and only our own clock measures it.
        lasts = float(spec.get("leaseDurationSeconds") or election.lease_duration)
        if self.holder and not mine and now < self._observed_at + lasts:
            log.log(V(4), "The lease is held", extra=keys(lease=self._name(), holder=self.holder))
            return False
        meta = metadata(lease)
        annotations: dict[str, str] = meta.get("annotations") or {}
        meta = {**meta, "annotations": {**annotations, **election.annotations}}
        return await self._write(self._client.update, {**lease, "metadata": meta, "spec": self._spec(spec, not mine)})

    async def _write(self, send: Callable[..., Any], lease: Obj) -> bool:
        body = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, **lease}
        try:
            self._observed = await send(LEASES, body)
        except ApiError as error:
            if error.code == 409:  # another candidate was faster
                return False
            raise
        self._observed_at = self._clock.now()
        self.holder = self.election.identity
        return True

    def _spec(self, before: Obj, taken: bool) -> Obj:
        now = micro_timestamp(self._clock.now())
        spec = {
            **before,
            "holderIdentity": self.election.identity,
            "leaseDurationSeconds": int(self.election.lease_duration),
            "renewTime": now,
        }
        if taken:
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(before.get("leaseTransitions") or 0) + (1 if before else 0)
        return spec

    def _arm(self, expired: Callable[[], None]) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        return loop.call_later(max(0.0, self.deadline - self._clock.now()), self._expire, expired)

    def _expire(self, expired: Callable[[], None]) -> None:
        self.lost.set()
        expired()

    def _jittered(self) -> float:
        return self.election.retry_period * (1.0 + 0.2 * self._clock.jitter())

    def _name(self) -> str:
        return f"{self.election.namespace}/{self.election.name}"


async def active_kube_scheduler(client: Client, clock: Clock) -> str:
    """Who renews kube-scheduler's lease, empty if nobody does. Takes up to that lease's duration to be sure."""
    before: Obj | None = None
    until = 0.0
    while True:
        try:
            lease = await client.get(LEASES, "kube-scheduler", "kube-system")
        except ApiError as error:
            if error.code in (403, 404):
                return ""
            raise
        spec = part(lease, "spec")
        holder = str(spec.get("holderIdentity") or "")
        if not holder:
            return ""
        if before is None:
            before = spec
            until = clock.now() + float(spec.get("leaseDurationSeconds") or 15)
        elif spec != before:
            return holder
        elif clock.now() >= until:
            return ""
        await clock.sleep(1.0)
