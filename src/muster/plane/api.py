"""The API server of the plane: store, core, security and, when asked, HTTPS; opened and closed in that order.

With a data directory everything in it continues where it was: objects, certificates, signing key. Without one, nothing
outlives the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from muster.api import gates as feature_gates
from muster.api.errors import ApiError, internal
from muster.api.gates import FeatureGates
from muster.api.resources import CONFIG_MAPS, ENDPOINT_SLICES, SERVICES, STORAGE_CLASSES, Resource
from muster.certificates import private_directory
from muster.client.local import LocalClient
from muster.client.protocol import Client, Obj
from muster.logs import keys
from muster.plane.credentials import FRONT_PROXY, Credentials
from muster.server.admission.bootstrap import bootstrap_objects, default_storage_class, local_api_services
from muster.server.admission.dynamic.chain import DynamicAdmission
from muster.server.admission.dynamic.webhook_client import WebhookClient, WebhookError
from muster.server.admission.eviction import BudgetGuard
from muster.server.aggregation import identity
from muster.server.aggregation.aggregation import Aggregation
from muster.server.auth.authentication import StaticTokens
from muster.server.auth.bootstrap import bootstrap_policy
from muster.server.auth.security import Security
from muster.server.backend import ServerHooks, StoreReader
from muster.server.core import ApiServer
from muster.server.http import HttpServer, Limits, server_tls
from muster.server.identifiers import Identifiers, RepeatableIdentifiers
from muster.server.resources.kind import Reader
from muster.server.resources.rules.policy_expressions import authorizer_library
from muster.server.served_kinds import build_registry
from muster.server.service_endpoints import ServiceEndpoints
from muster.server.store.base import Store
from muster.server.store.memory import MemoryStore

log = logging.getLogger(__name__)

MOST_OPEN_FILES = 65_536
_API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
FILES_OF_OUR_OWN = 100  # database, logs, pipes, and connections that are still shaking hands


class Api:
    """One API server over one store."""

    def __init__(
        self,
        store: Store,
        credentials: Credentials,
        gates: FeatureGates,
        tokens: StaticTokens,
        identifiers: Identifiers | None = None,
        clock: Callable[[], float] = time.time,
        webhook_endpoints: Mapping[str, str] | None = None,
    ) -> None:
        self.store = store
        self.credentials = credentials
        self.security = Security(store, credentials.signer, tokens)
        registry = self.security.guarded(build_registry(gates, answers=self.security.answers))
        self._webhooks = WebhookClient(webhook_endpoints)
        self.aggregation = Aggregation(
            store,
            registry,
            StoreReader(store, registry),
            ServiceEndpoints(webhook_endpoints),
            credentials.for_front_proxy,
        )
        library = authorizer_library(self.security.decide)
        self.admission = DynamicAdmission(store, self._webhooks, library, registry)
        self.hooks = ServerHooks(
            issue_token=self.security.accounts.issue,
            metrics=_metrics,
            admission=self.admission,
            ask_webhook=self._ask_webhook,
            remote=self.aggregation,
        )
        self.core = ApiServer(store, registry, hooks=self.hooks, identifiers=identifiers, clock=clock)
        self.client: Client = LocalClient(self.core)
        self.hooks.guard_eviction = BudgetGuard(self.client)
        self._gate = self.security.gate(self.core, registry)
        self._http: HttpServer | None = None

    async def _ask_webhook(self, client_config: Obj, body: Obj, seconds: float, reader: Reader) -> Obj:
        try:
            return await self._webhooks.post(client_config, body, seconds, reader)
        except WebhookError as error:
            raise internal(str(error)) from None

    @classmethod
    async def open(
        cls,
        data: Path | None = None,
        *,
        gates: FeatureGates = feature_gates.DEFAULT,
        token_file: Path | None = None,
        repeatable_names: bool = False,
        clock: Callable[[], float] = time.time,
        webhook_endpoints: Mapping[str, str] | None = None,
    ) -> Api:
        """Open the store and create the objects that every cluster starts with."""
        tokens = StaticTokens.read(token_file) if token_file is not None else StaticTokens()
        store = _open_store(data)
        try:
            identifiers = RepeatableIdentifiers(store) if repeatable_names else None
            api = cls(store, Credentials(data), gates, tokens, identifiers, clock, webhook_endpoints)
            for kind, obj in bootstrap_objects():
                await ensure(api.client, kind, obj)
            if not (await api.client.list(STORAGE_CLASSES)).items:
                await api.client.create(STORAGE_CLASSES, default_storage_class())
            await asyncio.gather(
                *(ensure(api.client, _API_SERVICES, each) for each in local_api_services(api.core.registry.groups()))
            )
            await bootstrap_policy(api.client)
            await publish_authority(api.client, api.credentials)
            for resource, count in sorted(api.core.unserved().items()):
                log.warning(
                    "Stored objects are kept and not served: their kind is not known here",
                    extra=keys(resource=resource, count=count),
                )
        except BaseException:
            await store.close()
            raise
        return api

    async def serve(self, host: str = "127.0.0.1", port: int = 0, limits: Limits | None = None) -> str:
        """Listen with TLS; gives the URL."""
        self._http = HttpServer(self._gate.admit, self._gate.answer, limits or Limits(connections=connection_limit()))
        tls = server_tls(self.credentials.for_server(host), self.credentials.authority.pem)
        await self._http.start(host, port, tls)
        # Who listens on all addresses is reached from here by the loopback address, which the certificate names.
        here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        await publish_service(self.client, here, self._http.port)
        shown = f"[{here}]" if ":" in here else here
        return f"https://{shown}:{self._http.port}"

    async def close(self) -> None:
        """End the watches, finish the answers, then close the store."""
        await self.core.close()
        if self._http is not None:
            await self._http.stop()
        await self.admission.close()
        await self.aggregation.close()
        await self.store.close()


def connection_limit() -> int:
    """Raise the limit of open files as far as the system lets us; how many connections that leaves room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    files = MOST_OPEN_FILES if files == resource.RLIM_INFINITY else min(files, MOST_OPEN_FILES)
    return max(16, files - FILES_OF_OUR_OWN)


def _open_store(data: Path | None) -> Store:
    if data is None:
        return MemoryStore()
    from muster.server.store.sqlite import SqliteStore

    return SqliteStore.open(private_directory(data))


async def ensure(client: Client, resource: Resource, obj: Obj) -> None:
    """Create an object unless it is there already."""
    meta = obj["metadata"]
    try:
        await client.get(resource, meta["name"], meta.get("namespace"))
        return
    except ApiError as error:
        if error.code != 404:
            raise
    try:
        await client.create(resource, obj)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


async def publish_authority(client: Client, credentials: Credentials) -> None:
    """Write the ConfigMap from which extension API servers read which client certificates and headers to trust."""
    meta = {"name": "extension-apiserver-authentication", "namespace": "kube-system"}
    data = {
        "client-ca-file": credentials.authority.pem.decode(),
        "requestheader-client-ca-file": credentials.front_proxy.pem.decode(),
        "requestheader-allowed-names": f'["{FRONT_PROXY}"]',
        "requestheader-username-headers": f'["{identity.USER}"]',
        "requestheader-uid-headers": f'["{identity.UID}"]',
        "requestheader-group-headers": f'["{identity.GROUP}"]',
        "requestheader-extra-headers-prefix": f'["{identity.EXTRA}"]',
    }
    await ensure(client, CONFIG_MAPS, {"metadata": meta})
    await client.patch(CONFIG_MAPS, meta["name"], {"data": data}, meta["namespace"])


async def publish_service(client: Client, address: str, port: int) -> None:
    """Write the Service `kubernetes` and its EndpointSlice, by which programs in a cluster find the API server."""
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
    spec = {"clusterIP": "10.96.0.1", "ports": ports, "sessionAffinity": "None", "type": "ClusterIP"}
    meta = {"name": "kubernetes", "namespace": "default", "labels": labels}
    await ensure(client, SERVICES, {"metadata": meta, "spec": spec})
    await client.patch(SERVICES, "kubernetes", {"spec": {"ports": ports}}, "default")
    endpoints = {
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    slice_meta = {"name": "kubernetes", "namespace": "default", "labels": {"kubernetes.io/service-name": "kubernetes"}}
    await ensure(client, ENDPOINT_SLICES, {"metadata": slice_meta, **endpoints})
    changing = {name: value for name, value in endpoints.items() if name != "addressType"}
    await client.patch(ENDPOINT_SLICES, "kubernetes", changing, "default")


def _metrics() -> bytes:
    from prometheus_client import generate_latest

    return generate_latest()
