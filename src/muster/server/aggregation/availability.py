"""Checks whether the servers behind APIServices answer, and writes it into their conditions.

A server is asked for the page of its group and version, whose resources go to the discovery pages: at once when an
APIService changes, then every `AVAILABLE_SECONDS`, or every `UNAVAILABLE_SECONDS` while one does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import msgspec

from muster.api.errors import ApiError
from muster.api.resources import Resource
from muster.client.clock import SystemClock
from muster.client.protocol import Client, Obj
from muster.client.reflector import Reflector, StoreFunctions
from muster.server import metadata
from muster.server.aggregation.identity import AGGREGATOR
from muster.server.aggregation.remote_discovery import RemoteDiscovery
from muster.server.aggregation.remote_services import RemoteService, RemoteServices
from muster.server.aggregation.service_proxy import ServiceProxy
from muster.server.request import JSON, Request
from muster.server.service_endpoints import NoEndpointError

log = logging.getLogger(__name__)

API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
AVAILABLE_SECONDS = 30.0
UNAVAILABLE_SECONDS = 2.0
CHECK_SECONDS = 5.0
_MOST_BYTES = 3 * 1024 * 1024
_LOCAL = ("True", "Local", "Local APIServices are always available")
_BUILT_IN = ("False", "NotServed", "this group and version is built in; requests to it are not passed on")

Finding = tuple[str, str, str]  # status, reason, message


class Availability:
    """Keeps the conditions of all APIServices, until cancelled."""

    def __init__(
        self,
        client: Client,
        services: RemoteServices,
        proxy: ServiceProxy,
        discovery: RemoteDiscovery,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._services = services
        self._proxy = proxy
        self._discovery = discovery
        self._clock = clock
        self._changed = asyncio.Event()
        self._listed: dict[str, Obj] = {}  # by name
        self.ready = asyncio.Event()

    async def run(self) -> None:
        store = StoreFunctions(self._replaced, self._seen, self._gone)
        listed = Reflector(self._client, API_SERVICES, store, SystemClock(), into=dict[str, Any])
        async with asyncio.TaskGroup() as group:
            group.create_task(listed.run())
            await self._changed.wait()
            self.ready.set()  # the servers behind them may take long to answer, or not answer at all
            while True:
                self._changed.clear()
                await self.check()
                await self._wait()

    def _replaced(self, objects: list[Obj]) -> None:
        self._listed = {each["metadata"]["name"]: each for each in objects}
        self._changed.set()

    def _seen(self, obj: Obj) -> None:
        """Conditions are written here: only another spec is a reason to look again."""
        before = self._listed.get(obj["metadata"]["name"])
        self._listed[obj["metadata"]["name"]] = obj
        if before is None or before.get("spec") != obj.get("spec"):
            self._changed.set()

    def _gone(self, obj: Obj) -> None:
        self._listed.pop(obj["metadata"]["name"], None)

    async def _wait(self) -> None:
        """Until an APIService changed, or it is time to look again at those of other servers."""
        services = self._services.all().values()
        if not services:
            await self._changed.wait()
            return
        available = all(each.available for each in services)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(AVAILABLE_SECONDS if available else UNAVAILABLE_SECONDS):
                await self._changed.wait()

    async def check(self) -> None:
        """Look at every APIService once."""
        await asyncio.gather(*(self._check_one(each) for each in list(self._listed.values())))

    async def _check_one(self, api_service: Obj) -> None:
        spec: Obj = api_service["spec"]
        if not spec.get("service"):
            await self._write(api_service, _LOCAL)
            return
        service = self._services.all().get((spec.get("group", ""), spec.get("version", "")))
        await self._write(api_service, _BUILT_IN if service is None else await self._finding(service))

    async def _finding(self, service: RemoteService) -> Finding:
        try:
            page = await self._page(service)
        except NoEndpointError as error:
            return ("False", error.reason, str(error))
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
            path = f"/apis/{service.group}/{service.version}"
            words = str(error) or ("timed out" if isinstance(error, TimeoutError) else type(error).__name__)
            return ("False", "FailedDiscoveryCheck", f"failing or missing response from {path}: {words}")
        self._discovery.learn(service, [each for each in page.get("resources") or () if isinstance(each, dict)])
        return ("True", "Passed", "all checks passed")

    async def _page(self, service: RemoteService) -> Obj:
        path = f"/apis/{service.group}/{service.version}"
        request = Request("GET", path, {}, {"Accept": JSON}, user=AGGREGATOR)
        async with asyncio.timeout(CHECK_SECONDS):
            answer = await self._proxy.send(request, service, CHECK_SECONDS)
            try:
                if not 200 <= answer.status < 300:
                    raise ValueError(f"bad status: {answer.status}")
                body = b""
                while len(body) <= _MOST_BYTES and (part := await answer.content.readany()):
                    body += part
            finally:
                answer.close()
        if len(body) > _MOST_BYTES:
            raise ValueError(f"the page is larger than {_MOST_BYTES} bytes")
        page: Any = msgspec.json.decode(body)  # its error is a ValueError
        if not isinstance(page, dict):
            raise ValueError("the page is not an object")
        return page

    async def _write(self, api_service: Obj, finding: Finding) -> None:
        known: list[Obj] = (api_service.get("status") or {}).get("conditions") or []
        before = next((each for each in known if each["type"] == "Available"), {})
        if (before.get("status"), before.get("reason"), before.get("message")) == finding:
            return
        status, reason, message = finding
        since = before["lastTransitionTime"] if before.get("status") == status else metadata.timestamp(self._clock())
        condition = {
            "type": "Available",
            "status": status,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
        conditions = [each for each in known if each["type"] != "Available"] + [condition]
        name = api_service["metadata"]["name"]
        try:
            await self._client.patch(API_SERVICES, name, {"status": {"conditions": conditions}}, subresource="status")
        except (ApiError, ConnectionError) as error:
            log.debug("condition of %s not written: %s", name, error)
