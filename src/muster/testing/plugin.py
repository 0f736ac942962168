"""The pytest plugin: a fresh Kubernetes API for a test, in this process or over HTTPS.

Loaded in every pytest run where Muster is installed, so it imports nothing of Muster until a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from muster.testing.cluster import Cluster


@pytest.fixture
def muster_api() -> Iterator[Cluster]:
    """A fresh in-memory API server and a blocking client to it: `muster_api.client`."""
    from muster.testing.cluster import Cluster

    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def muster_https() -> Iterator[Cluster]:
    """The same behind HTTPS, with a kubeconfig for any client: `muster_https.kubeconfig`."""
    from muster.testing.cluster import Cluster

    with Cluster(https=True) as cluster:
        yield cluster


@pytest.fixture
def muster_cluster() -> Iterator[Cluster]:
    """HTTPS, controllers, scheduler and three simulated nodes: pods really start."""
    from muster.testing.cluster import Cluster

    with Cluster(https=True, controllers=True, scheduler=True, nodes=3) as cluster:
        yield cluster
