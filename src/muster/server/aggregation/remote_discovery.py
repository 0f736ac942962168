"""What other API servers say they serve, in the form that the discovery pages need.

A server that stopped answering keeps its resources on the pages, marked as stale, as in kube-aggregator: a client then
knows that they exist and cannot be had, instead of taking them for gone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from muster.server.aggregation.remote_services import RemoteService, RemoteServices
from muster.server.resources.kind import Obj


class RemoteVersion(NamedTuple):
    """A group and version of another server, as the pages show it."""

    group: str
    version: str
    resources: list[Obj]
    fresh: bool


class RemoteDiscovery:
    """The resources that each other server named last."""

    def __init__(self, services: RemoteServices) -> None:
        self._services = services
        self._listed: dict[str, list[Obj]] = {}  # by APIService
        self._changes = 0

    @property
    def generation(self) -> int:
        """Changes whenever the pages do."""
        return self._services.position + self._changes

    def learn(self, service: RemoteService, resources: list[Obj]) -> None:
        """Take over an APIResourceList's resources."""
        shown = _aggregated(service, resources)
        if self._listed.get(service.name) != shown:
            self._listed[service.name] = shown
            self._changes += 1

    def versions(self) -> list[RemoteVersion]:
        """All of them, groups of a higher priority first."""
        services = sorted(self._services.all().values(), key=lambda each: (-each.priority, each.group))
        return [
            RemoteVersion(
                each.group, each.version, self._listed.get(each.name, []), each.available and each.name in self._listed
            )
            for each in services
        ]


def _aggregated(service: RemoteService, resources: list[Obj]) -> list[Obj]:
    """The resources of an APIResourceList, with their subresources inside."""
    found: dict[str, Obj] = {}
    for each in resources:
        plural, _, subresource = str(each.get("name", "")).partition("/")
        kind = {
            "group": each.get("group") or service.group,
            "version": each.get("version") or service.version,
            "kind": each.get("kind", ""),
        }
        if subresource:
            entry: dict[str, Any] = {"subresource": subresource, "responseKind": kind, "verbs": each.get("verbs") or []}
            if plural in found:
                found[plural].setdefault("subresources", []).append(entry)
            continue
        found[plural] = {
            "resource": plural,
            "responseKind": kind,
            "scope": "Namespaced" if each.get("namespaced") else "Cluster",
            "singularResource": each.get("singularName") or "",
            "verbs": each.get("verbs") or [],
            **{field: each[field] for field in ("shortNames", "categories") if each.get(field)},
        }
    return list(found.values())
