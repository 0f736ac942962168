"""Which groups and versions are served by other servers, read from the stored APIServices.

`find` compares one number before each request, like `custom_resources.definitions`. A group and version that is
built in stays this server's; its APIService says so in its condition (`availability`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from muster.server.registry import Registry
from muster.server.request import Request
from muster.server.store.base import Store

TABLE = "apiservices.apiregistration.k8s.io"
_OPENAPI = "/openapi/v3/apis/"
_decode: Callable[[bytes], Any] = msgspec.json.decode


class RemoteService(NamedTuple):
    """A group and version that another server serves."""

    name: str  # of the APIService
    group: str
    version: str
    namespace: str
    service: str
    port: int
    ca_bundle: str
    insecure: bool
    priority: int
    available: bool
    why_not: str  # the condition's message


class RemoteServices:
    """The APIServices of a store that name a Service."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._table = store.table(TABLE)
        self._registry = registry
        self._position = -1
        self._found: dict[tuple[str, str], RemoteService] = {}

    @property
    def position(self) -> int:
        """Grows with every change of an APIService."""
        return self._table.end

    def all(self) -> dict[tuple[str, str], RemoteService]:
        """By group and version."""
        if self._table.end != self._position:
            self._position = self._table.end
            listed = (_remote(_decode(record.body)) for record in self._table.scan())
            self._found = {(each.group, each.version): each for each in listed if each and not self.built_in(each)}
        return self._found

    def built_in(self, service: RemoteService) -> bool:
        return any(service.group == kind.group and service.version in kind.versions for kind in self._registry.built_in)

    def find(self, request: Request) -> RemoteService | None:
        """Who answers a request; None where this server does."""
        services = self.all()
        if not services:
            return None
        if request.target is not None:
            return services.get((request.target.group, request.target.version))
        if request.path.startswith(_OPENAPI):
            group, _, version = request.path.removeprefix(_OPENAPI).partition("/")
            return services.get((group, version))
        return None


def _remote(api_service: Any) -> RemoteService | None:
    spec = api_service["spec"]
    service = spec.get("service")
    if service is None:
        return None
    conditions = (api_service.get("status") or {}).get("conditions") or ()
    available = next((each for each in conditions if each["type"] == "Available"), {})
    return RemoteService(
        api_service["metadata"]["name"],
        spec.get("group", ""),
        spec["version"],
        service["namespace"],
        service["name"],
        service.get("port") or 443,
        spec.get("caBundle") or "",
        bool(spec.get("insecureSkipTLSVerify")),
        spec.get("groupPriorityMinimum") or 0,
        available.get("status") == "True",
        available.get("message") or "it was not checked yet",
    )
