"""Claims get their devices before the pods that use them are bound: all claims of a gang, or none.

A claim is written as kube-scheduler does it: the finalizer first, then, in one write of the status, the allocation and
those it is reserved for. An allocation that somebody else made is never touched. Binds wait until all claims of their
plan are written; if one cannot be, the others are given back and all binds fail together.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from muster.api.devices import CLAIM_FINALIZER
from muster.api.errors import ApiError
from muster.api.resources import RESOURCE_CLAIMS
from muster.client.backoff import Backoff, is_transient
from muster.client.clock import Clock, timestamp
from muster.client.error_text import error_text
from muster.client.objects import metadata, part
from muster.client.protocol import Client, Obj
from muster.engine.api_calls.call import BIND, ApiCall
from muster.logs import keys
from muster.scheduler.interface.decisions import AllocateClaim, Bind
from muster.scheduler.interface.events import LOST_RACE, REFUSED, BindFailed, Event
from muster.scheduler.interface.keys import ObjectRef

log = logging.getLogger(__name__)

TRIES = 12

_API_GROUPS = {"PodGroup": ("scheduling.k8s.io", "podgroups"), "Pod": ("", "pods")}


class _Refused(Exception):
    """The claim is not what the plan counted on."""


class ClaimCall(ApiCall):
    """A write to one claim that is tried again while the server is away or somebody else writes to it."""

    rank = BIND
    call_type = "claim_status"

    def __init__(self, claim: ObjectRef, client: Client, clock: Clock) -> None:
        super().__init__((claim.kind, claim.namespace, claim.name))
        self.claim = claim
        self.client = client
        self.clock = clock

    @abstractmethod
    async def write(self, claim: Obj) -> None:
        """Bring the claim, as it is now, to what it should be. Raises _Refused."""

    async def run(self) -> str:
        backoff = Backoff(self.clock, first=0.05, most=5.0)
        while True:
            try:
                await self.write(await self._read())
                return ""
            except _Refused as error:
                return str(error)
            except ApiError as error:
                if error.code != 409 and not is_transient(error):
                    return error_text(error, "update", "resourceclaims/status", RESOURCE_CLAIMS.group)
                reason: Exception = error
            except (ConnectionError, TimeoutError) as error:
                reason = error
            if backoff.tries >= TRIES:
                return error_text(reason, "update", "resourceclaims/status", RESOURCE_CLAIMS.group)
            await backoff.wait(reason)

    async def _read(self) -> Obj:
        try:
            found = await self.client.get(RESOURCE_CLAIMS, self.claim.name, self.claim.namespace)
        except ApiError as error:
            if error.code == 404:
                raise _Refused(f"the claim {self.claim.name} is gone") from None
            raise
        if metadata(found).get("uid") != self.claim.uid:
            raise _Refused(f"the claim {self.claim.name} is gone")
        return found


class AllocationCall(ClaimCall):
    """`AllocateClaim`, for one or more consumers."""

    def __init__(self, decision: AllocateClaim, client: Client, clock: Clock) -> None:
        super().__init__(decision.claim, client, clock)
        self.allocation = decision.allocation
        self.consumers = [decision.consumer]
        self.written = False  # something of it may be stored

    def merge(self, later: ApiCall) -> bool:
        if not isinstance(later, AllocationCall) or later.claim != self.claim:
            return False
        self.consumers += later.consumers
        self.allocation = self.allocation or later.allocation
        return True

    async def write(self, claim: Obj) -> None:
        name = f"{self.claim.namespace}/{self.claim.name}"
        meta, status = metadata(claim), part(claim, "status")
        if meta.get("deletionTimestamp"):
            raise _Refused(f"the claim {name} is being deleted")
        allocated: Obj | None = status.get("allocation")
        if self.allocation is None and allocated is None:
            raise _Refused(f"the claim {name} was deallocated in the meantime")
        if self.allocation is not None and allocated is not None and not _same_devices(self.allocation, allocated):
            raise _Refused(f"claim {name} got allocated elsewhere in the meantime")
        self.written = True
        finalizers: list[str] = meta.get("finalizers") or []
        if CLAIM_FINALIZER not in finalizers:
            meta["finalizers"] = [*finalizers, CLAIM_FINALIZER]
            claim = await self.client.update(RESOURCE_CLAIMS, claim)
        if allocated is None:
            allocated = {**(self.allocation or {}), "allocationTimestamp": timestamp(self.clock.now())}
        reserved: list[Obj] = part(claim, "status").get("reservedFor") or []
        known = {entry.get("uid") for entry in reserved}
        added = [_consumer(consumer) for consumer in self.consumers if consumer.uid not in known]
        status = {**part(claim, "status"), "allocation": allocated, "reservedFor": [*reserved, *added]}
        await self.client.update(RESOURCE_CLAIMS, {**claim, "status": status}, subresource="status")


class ReleaseCall(ClaimCall):
    """Takes a claim away from consumers, and its devices too where it then serves nobody.

    With an `allocation` only that one is taken back, not one that somebody else made.
    """

    def __init__(
        self, claim: ObjectRef, consumers: Iterable[str], client: Client, clock: Clock, allocation: Obj | None = None
    ) -> None:
        super().__init__(claim, client, clock)
        self._mine = frozenset(consumers)
        self._allocation = allocation

    async def write(self, claim: Obj) -> None:
        status = dict(part(claim, "status"))
        reserved: list[Obj] = status.get("reservedFor") or []
        left = [entry for entry in reserved if entry.get("uid") not in self._mine]
        allocated: Obj | None = status.get("allocation")
        ours = self._allocation is None or (allocated is not None and _same_devices(self._allocation, allocated))
        free = allocated is not None and ours and not left
        if len(left) == len(reserved) and not free:
            return
        status["reservedFor"] = left
        if free:
            for name in ("allocation", "reservedFor", "devices"):
                status.pop(name, None)
        claim = await self.client.update(RESOURCE_CLAIMS, {**claim, "status": status}, subresource="status")
        if free:
            meta = metadata(claim)
            finalizers: list[str] = meta.get("finalizers") or []
            meta["finalizers"] = [name for name in finalizers if name != CLAIM_FINALIZER]
            await self.client.update(RESOURCE_CLAIMS, claim)


class BindsAfterClaims(ApiCall):
    """Binds that wait, behind a barrier, for the claims of their plan. Writes nothing itself."""

    rank = BIND
    call_type = "claims_allocated"

    def __init__(
        self,
        binds: Sequence[Bind],
        claims: Sequence[AllocationCall],
        release: Callable[[], None],
        undo: Callable[[AllocationCall], None],
        report: Callable[[Event], None],
    ) -> None:
        first = binds[0].pod
        super().__init__(("Binds", first.namespace, first.name))
        self._binds = binds
        self._claims = claims
        self._release = release
        self._undo = undo
        self._report = report

    async def run(self) -> str:
        failed = [call for call in self._claims if call.error]
        if not failed:
            self._release()
            return ""
        for call in self._claims:
            if call.written:
                self._undo(call)
        error = failed[0].error
        where = keys(claim=f"{failed[0].claim.namespace}/{failed[0].claim.name}", err=error)
        log.warning("Claims not allocated", extra=where)
        for bind in self._binds:
            self._report(BindFailed(bind.pod.uid, bind.node, error, LOST_RACE if "meantime" in error else REFUSED))
        return ""


def _same_devices(ours: Obj, theirs: Obj) -> bool:
    def devices(allocation: Obj) -> list[Any]:
        results: list[Obj] = part(allocation, "devices").get("results") or []
        return [
            (found.get("driver"), found.get("pool"), found.get("device"), found.get("shareID")) for found in results
        ]

    return devices(ours) == devices(theirs)


def _consumer(ref: ObjectRef) -> Obj:
    group, resource = _API_GROUPS[ref.kind]
    entry = {"resource": resource, "name": ref.name, "uid": ref.uid}
    return {"apiGroup": group, **entry} if group else entry
