"""For tests of controllers and clients: pytest fixtures with a fresh API server, and builders of objects.

    def test_my_controller(muster_https):          # a server, an admin kubeconfig, a blocking client
        muster_https.client.create(PODS, a_pod("p"))

In asynchronous tests use `api_server()`. Nothing is imported before it is used, because the pytest plugin in this
package is loaded in every pytest run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.testing.builders import a_composite, a_gang, a_node, a_pod, a_pod_group
    from muster.testing.cluster import BlockingClient, Cluster, api_server

__all__ = [
    "BlockingClient",
    "Cluster",
    "a_composite",
    "a_gang",
    "a_node",
    "a_pod",
    "a_pod_group",
    "api_server",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from muster.testing import builders, cluster

    return getattr(builders if name.startswith("a_") else cluster, name)
