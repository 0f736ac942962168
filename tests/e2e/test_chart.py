"""The Helm chart in a cluster: installed, upgraded, rolled back and uninstalled by the real helm."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.kube.cluster import RealCluster

from tests.build.helm import ROOT, helm
from tests.e2e.processes import Kubectl, up

__all__ = ["helm"]

pytestmark = pytest.mark.e2e
CHART = ROOT / "deploy" / "helm" / "muster"
NAMESPACE = "muster-system"

Helm = Callable[..., str]


@pytest.fixture(params=["embedded", "real"])
def kubeconfig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "embedded":
        with up(tmp_path / "up.log") as found:
            yield found
    else:
        kube: Path = request.getfixturevalue("kube")
        with RealCluster(kube, native=False) as cluster:
            yield Path(cluster.kubeconfig)


@pytest.fixture
def run(helm: Path, kubeconfig: Path) -> Helm:
    def call(*arguments: str | Path) -> str:
        command = [helm, "--kubeconfig", kubeconfig, "--namespace", NAMESPACE, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(run: Helm, kube: Path, kubeconfig: Path) -> None:
    kubectl = Kubectl(kube, kubeconfig)

    def deployments() -> dict[str, int]:
        listed = json.loads(kubectl("get", "deployments", "-n", NAMESPACE, "-o", "json"))["items"]
        return {item["metadata"]["name"]: item["spec"]["replicas"] for item in listed}

    assert "schedulerName: muster" in run("install", "gangs", CHART, "--create-namespace", "--set", "crds.enabled=true")
    assert deployments() == {"gangs-muster": 2}
    assert "podgroups" in kubectl("api-resources", "--api-group=scheduling.muster.dev")
    rights = json.loads(kubectl("get", "clusterrole", "gangs-muster", "-o", "json"))["rules"]
    assert not any("*" in [*rule["verbs"], *rule["resources"]] for rule in rights)

    values = ("crds.enabled=true", "replicas=3", "dashboard.enabled=true", "metrics.service.enabled=true")
    run("upgrade", "gangs", CHART, *(part for value in values for part in ("--set", value)))
    assert deployments() == {"gangs-muster": 3, "gangs-muster-dashboard": 1}

    run("rollback", "gangs", "1")
    assert deployments() == {"gangs-muster": 2}

    run("uninstall", "gangs")
    assert deployments() == {}
    assert kubectl("get", "clusterroles", "-l", "app.kubernetes.io/instance=gangs", "-o", "name") == ""
    assert "podgroups" in kubectl("api-resources", "--api-group=scheduling.muster.dev")


def test_two_releases_live_beside_each_other(run: Helm, kube: Path, kubeconfig: Path) -> None:
    kubectl = Kubectl(kube, kubeconfig)
    run("install", "one", CHART, "--create-namespace", "--set", "schedulerNames={one}")
    run("install", "two", CHART, "--set", "schedulerNames={two}")
    names = kubectl("get", "clusterroles", "-l", "app.kubernetes.io/name=muster", "-o", "name").split()
    assert sorted(name.rpartition("/")[2] for name in names) == ["one-muster", "two-muster"]
    run("uninstall", "one")
    assert (
        json.loads(kubectl("get", "deployment", "two-muster", "-n", NAMESPACE, "-o", "json"))["spec"]["replicas"] == 2
    )
