"""What the handlers of all verbs share: the store, the served kinds, the clock, and the hooks of other packages."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from muster.server import codec
from muster.server.aggregation.remote_discovery import RemoteVersion
from muster.server.aggregation.remote_services import RemoteService
from muster.server.identifiers import Identifiers
from muster.server.registry import Registry
from muster.server.request import Request, Response, WatchStream
from muster.server.resources.kind import Obj, Reader, Write
from muster.server.store.base import Store

PodLog = Callable[[Obj, Request], Awaitable[Response | WatchStream]]
TokenIssuer = Callable[[str, str, Obj], Obj]  # (namespace, service account, TokenRequest) -> TokenRequest
EvictionGuard = Callable[[Obj, Write], Awaitable[None]]  # raises 429 when a disruption budget forbids it
GroupJoin = Callable[[Write, Obj], None]  # puts a new pod that names no group into the one of its workload
QuotaCharge = Callable[[Write, Obj, Obj | None], Awaitable[None]]  # raises 403 when a quota would be exceeded

WebhookCall = Callable[[Obj, Obj, float, Reader], Awaitable[Obj]]  # (clientConfig, body, seconds, reader) -> answer


class ConfiguredAdmission(Protocol):
    """Webhooks and policies, which are objects themselves."""

    def asked(self, write: Write) -> bool:
        """Whether anything is configured that could be asked about this write."""
        ...

    async def mutate(self, write: Write, new: Obj | None, old: Obj | None) -> Obj | None:
        """The object after mutating admission; the same one where nothing changed it."""
        ...

    async def validate(self, write: Write, new: Obj | None, old: Obj | None) -> None:
        """Raises ApiError where the write is refused."""
        ...


class RemoteApis(Protocol):
    """The groups and versions of other API servers."""

    @property
    def generation(self) -> int:
        """Changes whenever what discovery shows of them does."""
        ...

    def versions(self) -> list[RemoteVersion]: ...

    def find(self, request: Request) -> RemoteService | None:
        """Who answers a request; None where this server does."""
        ...

    async def answer(self, request: Request, service: RemoteService) -> Response | WatchStream:
        """Pass a request on. Raises 503 where nobody answers."""
        ...


@dataclass(slots=True)
class ServerHooks:
    """Functions that other packages provide. Each has a fallback, so that the server works without them."""

    pod_log: PodLog | None = None
    issue_token: TokenIssuer | None = None
    guard_eviction: EvictionGuard | None = None
    admission: ConfiguredAdmission | None = None
    charge_quota: QuotaCharge | None = None
    join_group: GroupJoin | None = None
    remote: RemoteApis | None = None
    ask_webhook: WebhookCall | None = None
    metrics: Callable[[], bytes] | None = None
    health: dict[str, Callable[[], str]] = field(default_factory=dict[str, Callable[[], str]])  # "" means healthy


class StoreReader:
    """The newest accepted objects, for admission and table cells. What it returns is not to be changed."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._decoded: dict[int, Obj] = {}
        self._lists: dict[str, tuple[int, list[Obj]]] = {}

    def get(self, plural: str, group: str, namespace: str, name: str) -> Obj | None:
        kind = self._registry.kind(group, plural)
        if kind is None:
            return None
        record = self._store.head(kind.table, (namespace, name))
        if record is None:
            return None
        # Admission asks for the same namespaces and priority classes again and again; a revision never changes.
        found = self._decoded.get(record.revision)
        if found is None:
            if len(self._decoded) >= 256:
                self._decoded.clear()
            found = self._decoded[record.revision] = codec.load(kind, record)
        return found

    def list(self, plural: str, group: str, namespace: str = "") -> list[Obj]:
        kind = self._registry.kind(group, plural)
        if kind is None:
            return []
        table = self._store.table(kind.table)
        settled = self._store.settled(kind.table)
        if settled and not table.records:
            return []  # every new pod asks for quotas and limit ranges, and most namespaces have none
        if kind.namespaced or not settled:
            return [codec.load(kind, record) for record in self._store.heads(kind.table, namespace)]
        # Every new pod asks for the priority classes: while nothing changes, the answer does not either.
        at, objects = self._lists.get(kind.table, (-1, []))
        if at != table.end:
            objects = [codec.load(kind, record) for record in table.scan()]
            self._lists[kind.table] = (table.end, objects)
        return objects


@dataclass(slots=True)
class Backend:
    """The server's parts, as the verbs see them."""

    store: Store
    registry: Registry
    reader: StoreReader
    clock: Callable[[], float]
    rng: random.Random
    identifiers: Identifiers
    hooks: ServerHooks
    closing: bool = False
