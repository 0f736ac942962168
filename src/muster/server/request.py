"""What the core takes and gives: a request, a response, or a stream of watch frames. No HTTP library here.

The HTTP adapter and the in-process client build the same `Request`, so both see the same server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import msgspec

from muster.server.paths import ResourcePath, parse

JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
YAML = "application/yaml"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class User(msgspec.Struct, frozen=True):
    """Who asks, as authentication found."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}


_NODE = "system:node:"


def node_name(user: User) -> str:
    """The node that a user is; empty for everybody else."""
    return user.name.removeprefix(_NODE) if user.name.startswith(_NODE) and "system:nodes" in user.groups else ""


ADMIN = User("muster:admin", ("system:masters", "system:authenticated"))
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(slots=True)
class Request:
    """One call. Header names are lower case; query values keep their order.

    `target` is the parsed path: what is authorized and what is answered cannot differ in how they read it.
    """

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    user: User = ADMIN
    target: ResourcePath | None = field(init=False)  # None for a path outside /api/V and /apis/G/V

    def __post_init__(self) -> None:
        self.target = parse(self.path)

    def arg(self, name: str, default: str = "") -> str:
        """The first value of a query parameter."""
        values = self.query.get(name)
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """A boolean query parameter; kubectl writes both `true` and `1`."""
        return self.arg(name).lower() in ("true", "1")


@dataclass(slots=True)
class Response:
    """A finished answer."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict[str, str])
    warnings: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class WatchStream:
    """An answer that goes on: chunks of one or more whole newline-ended frames, until the iterator ends.

    Of another API server: whatever it sends, with its status.
    """

    frames: AsyncIterator[bytes]
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict[str, str])
    status: int = 200
