"""What users of the test fixtures rely on."""

import subprocess
import sys
import time

import pytest

from muster.api.errors import ApiError
from muster.api.resources import NAMESPACES, NODES, POD_GROUPS, PODS
from muster.client.http import HTTPClient
from muster.client.kubeconfig import load
from muster.testing import Cluster, a_composite, a_gang, a_node, a_pod, api_server


def test_the_fixture_gives_a_server_with_the_usual_namespaces(muster_api: Cluster) -> None:
    names = [obj["metadata"]["name"] for obj in muster_api.client.list(NAMESPACES)]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_the_blocking_client_reads_writes_and_watches(muster_api: Cluster) -> None:
    client = muster_api.client
    for obj in a_gang("g", 2, cpu="1"):
        client.create(POD_GROUPS if obj["kind"] == "PodGroup" else PODS, obj)
    client.create(NODES, a_node("n1", rack="r1"))
    client.bind("default", "g-0", client.get(PODS, "g-0", "default")["metadata"]["uid"], "n1")
    client.patch(PODS, "g-1", {"metadata": {"labels": {"seen": "yes"}}}, "default")
    client.delete(PODS, "g-1", "default")
    events = client.watch(PODS, "default", timeout_seconds=5)
    assert next(events).object["spec"]["nodeName"] == "n1"
    events.close()
    with pytest.raises(ApiError) as caught:
        client.get(PODS, "g-1", "default")
    assert caught.value.code == 404


def test_every_test_gets_a_server_of_its_own() -> None:
    with Cluster() as one, Cluster() as other:
        one.client.create(NODES, a_node("n1"))
        assert other.client.list(NODES) == []


def test_the_https_fixture_has_a_kubeconfig_that_works(muster_https: Cluster) -> None:
    config = load(muster_https.kubeconfig)
    assert config.server == muster_https.url
    assert muster_https.kubeconfig is not None
    assert muster_https.kubeconfig.stat().st_mode & 0o777 == 0o600


async def test_asynchronous_tests_use_it_in_their_own_loop() -> None:
    async with api_server(https=True) as plane:
        await plane.client.create(PODS, a_pod("p", gpu=2))
        async with HTTPClient(plane.api.credentials.client_config(plane.url)) as client:
            assert (await client.get(PODS, "p", "default"))["metadata"]["name"] == "p"


def test_a_fresh_server_is_there_in_a_third_of_a_second() -> None:
    with Cluster():
        pass
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        with Cluster() as cluster:
            cluster.client.list(NAMESPACES)
            taken.append(time.perf_counter() - start)
    assert min(taken) < 0.3


def test_builders_make_objects_that_the_server_takes(muster_api: Cluster) -> None:
    from muster.api.resources import COMPOSITE_POD_GROUPS

    made = muster_api.client.create(COMPOSITE_POD_GROUPS, a_composite("c", min_groups=2))
    assert made["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] == 2


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    code = (
        "import sys, muster.testing.plugin\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'aiohttp', 'numpy', 'cryptography', 'msgspec', 'yaml'}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
