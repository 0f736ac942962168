"""The parts of aggregation over one store, as the core sees them (`RemoteApis` in `muster.server.backend`)."""

from __future__ import annotations

from collections.abc import Callable

from muster.certificates import Pair
from muster.client.protocol import Client
from muster.server.aggregation.availability import Availability
from muster.server.aggregation.remote_discovery import RemoteDiscovery, RemoteVersion
from muster.server.aggregation.remote_services import RemoteService, RemoteServices
from muster.server.aggregation.service_proxy import ServiceProxy, unavailable
from muster.server.registry import Registry
from muster.server.request import Request, Response, WatchStream
from muster.server.resources.kind import Reader
from muster.server.service_endpoints import ServiceEndpoints
from muster.server.store.base import Store


class Aggregation:
    """Answers for the groups and versions of other API servers."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        reader: Reader,
        endpoints: ServiceEndpoints,
        pair: Callable[[], Pair],
    ) -> None:
        self._services = RemoteServices(store, registry)
        self._proxy = ServiceProxy(endpoints, reader, pair)
        self._discovery = RemoteDiscovery(self._services)
        self.find = self._services.find

    @property
    def generation(self) -> int:
        return self._discovery.generation

    def versions(self) -> list[RemoteVersion]:
        return self._discovery.versions()

    async def answer(self, request: Request, service: RemoteService) -> Response | WatchStream:
        """Pass a request on; 503 where the other server is not known to answer."""
        if not service.available:
            raise unavailable(f"APIService {service.name} is not available: {service.why_not}")
        return await self._proxy.forward(request, service)

    def availability(self, client: Client, clock: Callable[[], float]) -> Availability:
        """The checks of these servers, to be run beside this."""
        return Availability(client, self._services, self._proxy, self._discovery, clock)

    async def close(self) -> None:
        await self._proxy.close()
