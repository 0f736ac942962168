"""The path of a request is parsed once, when the request is made."""

import pytest

from muster.server.paths import ResourcePath
from muster.server.request import Request


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/", None),
        ("/version", None),
        ("/api", None),
        ("/apis/apps", None),
        ("/api/v1", ResourcePath("", "v1")),
        ("/apis/apps/v1", ResourcePath("apps", "v1")),
        ("/api/v1/nodes", ResourcePath("", "v1", "nodes")),
        ("/api/v1/nodes/n/status", ResourcePath("", "v1", "nodes", name="n", subresource="status")),
        ("/apis/apps/v1/namespaces/a/deployments/d", ResourcePath("apps", "v1", "deployments", "a", "d")),
        ("/api/v1/namespaces/a", ResourcePath("", "v1", "namespaces", name="a")),
        ("/api/v1/namespaces/a/finalize", ResourcePath("", "v1", "namespaces", name="a", subresource="finalize")),
        ("/api/v1/namespaces/a/pods/p/proxy/x/y", ResourcePath("", "v1", "pods", "a", "p", "proxy/x/y")),
        ("/api/v1/watch", ResourcePath("", "v1", watch=True)),
        ("/api/v1/watch/namespaces/a/pods", ResourcePath("", "v1", "pods", "a", watch=True)),
        ("/api/v1/namespaces/watch/pods", ResourcePath("", "v1", "pods", "watch")),
    ],
)
def test_a_request_knows_its_target(path: str, target: ResourcePath | None) -> None:
    assert Request("GET", path).target == target
