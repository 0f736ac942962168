"""From a URL path to what is meant: a resource (and its version, namespace, name, subresource) or another page."""

from __future__ import annotations

from dataclasses import dataclass

# Under a namespace's own path these are its subresources; every other word there is a resource inside it.
_NAMESPACE_SUBRESOURCES = frozenset(("status", "finalize"))


@dataclass(slots=True)
class ResourcePath:
    """A path below one group-version. `plural` is empty for the group-version's own page."""

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False  # the old form .../watch/...


def parse(path: str) -> ResourcePath | None:
    """The resource path, or None for paths outside /api/V and /apis/G/V."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 2:
        found, rest = ResourcePath("", parts[1]), parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        found, rest = ResourcePath(parts[1], parts[2]), parts[3:]
    else:
        return None
    if rest and rest[0] == "watch":
        found.watch = True
        rest = rest[1:]
    if rest and rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in _NAMESPACE_SUBRESOURCES:
        found.namespace = rest[1]
        rest = rest[2:]
    if rest:
        found.plural = rest[0]
        found.name = rest[1] if len(rest) > 1 else ""
        found.subresource = "/".join(rest[2:])
    return found
