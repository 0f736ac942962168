"""Discovery: aggregated discovery in the version that the client asks for, and the unaggregated pages."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from muster.api.errors import no_such_path
from muster.server import media
from muster.server.aggregation.remote_discovery import RemoteVersion
from muster.server.backend import RemoteApis
from muster.server.media import encode
from muster.server.paths import ResourcePath
from muster.server.registry import Registry, preference
from muster.server.request import JSON, Request, Response
from muster.server.resources.kind import Kind

_AGGREGATED_VERSIONS = ("v2", "v2beta1")
_READ_WRITE = ("get", "patch", "update")
_SUBRESOURCE_VERBS = {
    "binding": ("create",),
    "eviction": ("create",),
    "token": ("create",),
    "log": ("get",),
    "exec": ("create", "get"),
    "attach": ("create", "get"),
    "portforward": ("create", "get"),
    "finalize": ("update",),
}
_SUBRESOURCE_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "exec": ("", "v1", "PodExecOptions"),
    "attach": ("", "v1", "PodAttachOptions"),
    "portforward": ("", "v1", "PodPortForwardOptions"),
}
_ROOT_PATHS = ("/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


class Discovery:
    """The discovery pages, made once and made again when the served kinds change."""

    def __init__(self, registry: Registry, remote: RemoteApis | None = None) -> None:
        self._registry = registry
        self._remote = remote
        self._generation = (0, 0)
        self._elsewhere: dict[tuple[str, str], RemoteVersion] = {}  # of other servers
        self._groups: dict[str, tuple[str, ...]] = {}
        self._pages: dict[tuple[str, str], Response] = {}

    def answer(self, request: Request) -> Response | None:
        """The page at a path, or None when it is not a discovery page."""
        if request.method not in ("GET", "HEAD"):
            return None
        current = (self._registry.generation, self._remote.generation if self._remote is not None else 0)
        if self._generation != current:
            self._generation = current
            self._read_groups()
            self._pages.clear()
        if request.target is not None:
            return self._resources(request.target)
        path = request.path.strip("/")
        if path in ("api", "apis"):
            return self._groups_page(path, request)
        if path.startswith("apis/"):
            return self._group(path.removeprefix("apis/"))
        if not path:
            return Response(200, encode({"paths": self._paths()}))
        return None

    def _read_groups(self) -> None:
        self._groups = self._registry.groups()
        remote = self._remote.versions() if self._remote is not None else []
        self._elsewhere = {(each.group, each.version): each for each in remote}
        for group, version in self._elsewhere:
            known = self._groups.get(group, ())
            self._groups[group] = tuple(sorted({*known, version}, key=preference))

    def _paths(self) -> list[str]:
        found = ["/api", "/apis"]
        for group, versions in self._groups.items():
            if group:
                found.append(f"/apis/{group}")
            found += [f"/apis/{group}/{version}" if group else f"/api/{version}" for version in versions]
        return sorted([*found, *_ROOT_PATHS])

    # Aggregated

    def _groups_page(self, path: str, request: Request) -> Response:
        wanted = _aggregated_version(request.headers.get("accept", ""))
        page = self._pages.get((path, wanted))
        if page is None:
            page = self._aggregated(path, wanted) if wanted else self._legacy(path)
            self._pages[path, wanted] = page
        if wanted and request.headers.get("if-none-match") == page.headers["ETag"]:
            return Response(304, b"", page.content_type, {**page.headers})
        return Response(200, page.body, page.content_type, {**page.headers})

    def _aggregated(self, path: str, version: str) -> Response:
        items = [
            self._aggregated_group(group, versions)
            for group, versions in self._groups.items()
            if (path == "api") == (group == "")
        ]
        body = encode(
            {
                "kind": "APIGroupDiscoveryList",
                "apiVersion": f"apidiscovery.k8s.io/{version}",
                "metadata": {},
                "items": items,
            }
        )
        etag = '"' + hashlib.sha256(body).hexdigest().upper() + '"'
        content_type = f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return Response(200, body, content_type, {"ETag": etag, "Vary": "Accept", "Cache-Control": "public"})

    def _aggregated_group(self, group: str, versions: tuple[str, ...]) -> dict[str, Any]:
        listed = [self._aggregated_version(group, version) for version in versions]
        metadata: dict[str, Any] = {"creationTimestamp": None}
        if group:
            metadata["name"] = group
        return {"metadata": metadata, "versions": listed}

    def _aggregated_version(self, group: str, version: str) -> dict[str, Any]:
        remote = self._elsewhere.get((group, version))
        if remote is not None:
            freshness = "Current" if remote.fresh else "Stale"
            return {"version": version, "resources": remote.resources, "freshness": freshness}
        kinds = self._registry.in_version(group, version)
        resources = [_aggregated_resource(kind, version) for kind in kinds]
        return {"version": version, "resources": resources, "freshness": "Current"}

    # Legacy

    def _legacy(self, path: str) -> Response:
        if path == "api":
            addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]
            versions = list(self._groups.get("", ()))
            body = {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": addresses}
        else:
            groups = [_group_entry(group, versions) for group, versions in self._groups.items() if group]
            body = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        return Response(200, encode(body), JSON, {"Vary": "Accept"})

    def _group(self, group: str) -> Response:
        versions = self._groups.get(group)
        if not versions or not group:
            raise no_such_path()
        return Response(200, encode({"kind": "APIGroup", "apiVersion": "v1", **_group_entry(group, versions)}))

    def _resources(self, where: ResourcePath) -> Response | None:
        kinds = self._registry.in_version(where.group, where.version)
        if not kinds:
            return None
        resources: list[dict[str, Any]] = []
        for kind in kinds:
            resources += _legacy_resources(kind, where.version)
        resources.sort(key=lambda entry: entry["name"])
        group_version = f"{where.group}/{where.version}" if where.group else where.version
        body: dict[str, Any] = {"kind": "APIResourceList", "groupVersion": group_version, "resources": resources}
        if where.group:
            body["apiVersion"] = "v1"
        return Response(200, encode(body))


def _aggregated_version(accept: str) -> str:
    """The aggregated version to answer in, as the client prefers; empty for the older pages."""
    for wanted in media.accepted(accept):
        params = wanted.params
        if params.get("as") == "APIGroupDiscoveryList" and params.get("g") == "apidiscovery.k8s.io":
            if params.get("v") in _AGGREGATED_VERSIONS:
                return params["v"]
        elif wanted.media in (JSON, "*/*", "application/*") and "as" not in params:
            return ""
    media.negotiate(accept, False)
    return ""


def _group_entry(group: str, versions: tuple[str, ...]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _subresource(kind: Kind, version: str, name: str) -> tuple[tuple[str, str, str], tuple[str, ...]]:
    shown = _SUBRESOURCE_KINDS.get(name, (kind.group, version, kind.kind))
    return shown, kind.serving.get(name) or _SUBRESOURCE_VERBS.get(name, _READ_WRITE)


def _aggregated_resource(kind: Kind, version: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular or kind.kind.lower(),
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [_aggregated_subresource(kind, version, name) for name in sorted(kind.subresources)]
    return entry


def _aggregated_subresource(kind: Kind, version: str, name: str) -> dict[str, Any]:
    (group, its_version, its_kind), verbs = _subresource(kind, version, name)
    response = {"group": group, "version": its_version, "kind": its_kind}
    return {"subresource": name, "responseKind": response, "verbs": list(verbs)}


def _legacy_resources(kind: Kind, version: str) -> list[dict[str, Any]]:
    main: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular or kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    if "list" in kind.verbs:
        main["storageVersionHash"] = kind.storage_hash or storage_hash(kind)
    return [main, *[_legacy_subresource(kind, version, name) for name in kind.subresources]]


def _legacy_subresource(kind: Kind, version: str, name: str) -> dict[str, Any]:
    (group, its_version, its_kind), verbs = _subresource(kind, version, name)
    entry: dict[str, Any] = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": its_kind,
        "verbs": list(verbs),
    }
    if (group, its_version) != (kind.group, version):
        entry["group"], entry["version"] = group, its_version
    return entry


def storage_hash(kind: Kind) -> str:
    """What clients compare to see whether a kind is stored differently than before."""
    stored = f"{kind.group}/{kind.stored_as}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()
