"""Parses the path of a request: a resource with its group, version, namespace, name and subresource, or another page.

`muster.server.request.Request` calls `parse` once; authorization, routing and discovery read `Request.target`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

# Under a namespace's own path these are its subresources; every other word there is a resource inside it.
_NAMESPACE_SUBRESOURCES = frozenset(("status", "finalize"))


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """A path below one group-version. `plural` is empty for the group-version's own discovery page."""

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False  # the old form .../watch/...


@lru_cache(maxsize=4096)
def parse(path: str) -> ResourcePath | None:
    """The resource path, or None for paths outside /api/V and /apis/G/V."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    watch = bool(rest) and rest[0] == "watch"
    if watch:
        rest = rest[1:]
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and rest[2] not in _NAMESPACE_SUBRESOURCES:
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return ResourcePath(group, version, namespace=namespace, watch=watch)
    name = rest[1] if len(rest) > 1 else ""
    return ResourcePath(group, version, rest[0], namespace, name, "/".join(rest[2:]), watch)
