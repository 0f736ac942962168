"""What a client's user may do, asked of the server."""

from __future__ import annotations

from typing import Any, cast

from muster.api.errors import ApiError
from muster.api.resources import POD_GROUPS
from muster.client.access_review import CHANGE, missing_rights
from muster.client.protocol import Client


class Server:
    """Answers reviews: these verbs are allowed, or every question is answered with this code."""

    def __init__(self, *allowed: str, code: int = 0) -> None:
        self._allowed, self._code = allowed, code

    async def request(self, method: str, path: str, body: Any = None) -> Any:
        if self._code:
            raise ApiError(self._code, "No", "no")
        assert (method, path) == ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        asked = body["spec"]["resourceAttributes"]
        assert (asked["group"], asked["resource"]) == ("scheduling.k8s.io", "podgroups")
        return {"status": {"allowed": asked["verb"] in self._allowed}}


async def missing(server: Server) -> str:
    return await missing_rights(cast("Client", server), POD_GROUPS, CHANGE)


async def test_what_is_missing_is_named():
    assert await missing(Server("create", "patch", "delete")) == ""
    assert await missing(Server("patch")) == "create, delete podgroups in scheduling.k8s.io"


async def test_a_server_that_does_not_know_reviews_is_tried_and_one_that_refuses_them_is_not():
    assert await missing(Server(code=404)) == ""
    assert "create" in await missing(Server(code=403))
