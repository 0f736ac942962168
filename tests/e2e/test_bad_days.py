"""What an operator sees when something is missing, refused, away or newer than we know."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.kube.cluster import RealCluster, free_ports

from muster.api.installation import NAME, NAMESPACE, installation
from tests.e2e.objects import CRD, bound, gang_manifest, large_node, members, one_cpu_pod
from tests.e2e.processes import Kubectl, eventually, scheduler
from tests.e2e.proxy import Proxy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FOR_MUSTER = ("--scheduler-name", "muster")


@pytest.fixture(scope="module")
def cluster(kube: Path) -> Iterator[RealCluster]:
    """A stock cluster, at first without the custom resources."""
    with RealCluster(kube, native=False) as cluster:
        Kubectl(kube, cluster.kubeconfig).create(large_node("n0"))
        yield cluster


def pages() -> tuple[str, list[str]]:
    (port,) = free_ports(1)
    return f"http://127.0.0.1:{port}", [f"--metrics-bind-address=127.0.0.1:{port}"]


def readyz(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{url}/readyz?verbose", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def is_ready(url: str) -> bool:
    return readyz(url)[0] == 200


def test_without_any_group_api_pods_are_scheduled_and_the_log_says_what_to_install(
    cluster: RealCluster, kube: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kube, cluster.kubeconfig)
    with scheduler(cluster.kubeconfig, tmp_path / "muster.log", *FOR_MUSTER) as muster:
        assert "no PodGroup API is served" in muster.said()
        assert "muster install --crds" in muster.said()
        kubectl.create(one_cpu_pod("alone", scheduler="muster"), one_cpu_pod("foreign", scheduler="someone-else"))
        eventually(lambda: "alone" in bound(kubectl), else_="the pod bound")
        assert "foreign" not in bound(kubectl)


def test_missing_rights_are_named_and_nothing_crashes(cluster: RealCluster, kube: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(kube, cluster.kubeconfig)
    rights = [each for each in installation("muster") if each["kind"] in ("Namespace", "ServiceAccount")]
    kubectl.create(*rights)
    account = cluster.as_service_account(NAMESPACE, NAME)
    url, flags = pages()
    with scheduler(account, tmp_path / "muster.log", *FOR_MUSTER, *flags, until='"Connected"') as muster:
        muster.wait_for("missing permission: list and watch on pods")
        code, text = readyz(url)
        assert code == 500
        assert "missing permission" in text
        kubectl.create(*(each for each in installation("muster") if each["kind"].startswith("ClusterRole")))
        kubectl.create(one_cpu_pod("allowed", scheduler="muster"))
        eventually(lambda: "allowed" in bound(kubectl), else_="the pod bound once the rights were given")
        assert muster.process.poll() is None


def test_a_server_that_is_away_at_the_start_is_waited_for(cluster: RealCluster, tmp_path: Path) -> None:
    url, flags = pages()
    with Proxy(cluster.server, open_=False) as proxy:
        through = proxy.kubeconfig(cluster.kubeconfig, tmp_path)
        with scheduler(through, tmp_path / "muster.log", *FOR_MUSTER, *flags, until="trying again") as muster:
            code, text = readyz(url)
            assert code == 500
            assert "the API server has not been reached yet" in text
            proxy.mend()
            muster.wait_for('"Scheduling"')
            eventually(lambda: is_ready(url), else_="readyz")


def test_a_server_that_goes_away_in_the_middle_is_waited_for(cluster: RealCluster, kube: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(kube, cluster.kubeconfig)
    url, flags = pages()
    with Proxy(cluster.server) as proxy:
        through = proxy.kubeconfig(cluster.kubeconfig, tmp_path)
        with scheduler(through, tmp_path / "muster.log", *FOR_MUSTER, *flags) as muster:
            eventually(lambda: is_ready(url), else_="readyz")
            proxy.cut()
            eventually(lambda: not is_ready(url), else_="readyz false while the server is away")
            kubectl.create(one_cpu_pod("meanwhile", scheduler="muster"))
            time.sleep(2)
            assert "meanwhile" not in bound(kubectl)
            proxy.mend()
            eventually(lambda: "meanwhile" in bound(kubectl), else_="the pod bound when the server is back")
            eventually(lambda: is_ready(url), else_="readyz again")
            assert muster.process.poll() is None


def test_fields_of_a_future_version_are_kept(
    cluster: RealCluster, kube: Path, tmp_path: Path, crd_manifests: str
) -> None:
    kubectl = Kubectl(kube, cluster.kubeconfig)
    kubectl("apply", "-f", "-", input=crd_manifests)
    kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    crd = json.loads(kubectl("get", "crd", "podgroups.scheduling.muster.dev", "-o", "json"))
    where = "/spec/versions/{}/schema/openAPIV3Schema/properties/spec/x-kubernetes-preserve-unknown-fields"
    places = [where.format(number) for number in range(len(crd["spec"]["versions"]))]
    patch = json.dumps([{"op": "add", "path": place, "value": True} for place in places])
    kubectl("patch", "crd", "podgroups.scheduling.muster.dev", "--type=json", "--patch", patch)
    future = gang_manifest("future", 2, api=CRD, fromTheFuture={"keep": ["me"]})
    eventually(lambda: kept(kubectl, future), else_="a server that keeps the field")
    with scheduler(cluster.kubeconfig, tmp_path / "muster.log", *FOR_MUSTER):
        kubectl.create(*members("future", 2, by_label=True, scheduler="muster"))
        eventually(lambda: len(bound(kubectl, "future-")) == 2, else_="the gang bound")
        eventually(lambda: spec_of(kubectl).get("priority") == 0, else_="its priority filled in")
        assert spec_of(kubectl)["fromTheFuture"] == {"keep": ["me"]}


def kept(kubectl: Kubectl, group: dict) -> bool:
    """Create the group anew until the server has taken the changed schema in."""
    kubectl("delete", "podgroups.scheduling.muster.dev", "future", "--ignore-not-found")
    kubectl("create", "--validate=false", "-f", "-", input=json.dumps(group))
    return "fromTheFuture" in spec_of(kubectl)


def spec_of(kubectl: Kubectl) -> dict:
    return json.loads(kubectl("get", "podgroups.scheduling.muster.dev", "future", "-o", "json"))["spec"]
