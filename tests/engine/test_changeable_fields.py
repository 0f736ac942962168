"""Which minimums of groups can change depends on the server."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.client.local import LocalClient
from muster.engine.api_discovery import CRDS, NATIVE, NATIVE_OLD
from muster.engine.changeable_fields import changeable_fields
from muster.engine.cluster_snapshot import take_snapshot
from muster.server.core import ApiServer
from muster.server.served_kinds import build_registry
from muster.server.store.memory import MemoryStore


class Version:
    """A server that says nothing but its version."""

    def __init__(self, version: str | None) -> None:
        self.version = version

    async def request(self, method: str, path: str, body: Any = None, query: Any = None) -> dict[str, Any]:
        assert (method, path) == ("GET", "/version")
        if self.version is None:
            raise ApiError(403, "Forbidden", "no")
        return {"gitVersion": self.version}


@pytest.mark.parametrize(
    ("groups", "version", "fields"),
    [
        (NATIVE, "v1.37.2", ("minCount",)),
        (NATIVE, "v1.37.0+muster", ("minCount", "minGroupCount")),
        (NATIVE, None, ("minCount",)),
        (NATIVE_OLD, "v1.36.4", ()),
        (CRDS, "v1.31.0", ("minCount", "minGroupCount")),
    ],
)
async def test_the_minimums_that_a_server_lets_change(groups: str, version: str | None, fields: tuple[str, ...]):
    assert await changeable_fields(Version(version), groups) == fields  # type: ignore[arg-type]


async def test_a_snapshot_of_the_embedded_server_says_that_both_may_change():
    snapshot = await take_snapshot(LocalClient(ApiServer(MemoryStore(), build_registry())))
    assert snapshot.changeable == ("minCount", "minGroupCount")
