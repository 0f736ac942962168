"""The real Kubernetes binaries, built once and cached outside the checkout, and clusters made from them."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.kube.cluster import DEFAULT_CONTROLLERS, RealCluster
from e2e.workloads.managers import Manager, NoGo, build, manager

from muster.api.crds import crds
from tests.e2e.browser import CHROMIUM
from tests.e2e.processes import Kubectl

ROOT = Path(__file__).parents[2]
CONFORMANCE = ROOT.parent / "shared" / "conformance"


@pytest.fixture(scope="session")
def kube() -> Path:
    """The directory of kube-apiserver, kube-scheduler, kube-controller-manager, kubectl and etcd."""
    built = subprocess.run([ROOT / "e2e" / "kube" / "build.sh"], capture_output=True, text=True, check=False)
    if built.returncode == 3:
        pytest.skip(f"no Kubernetes binaries: {built.stderr.strip()}")
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip().splitlines()[-1])


StartManager = Callable[[str, Path, Path], AbstractContextManager[Manager]]


@pytest.fixture(scope="session")
def managers(kube: Path) -> StartManager:
    """`managers("jobset", kubeconfig, directory)` runs a real manager of workloads beside any server."""

    def start(name: str, kubeconfig: Path, directory: Path) -> AbstractContextManager[Manager]:
        try:
            build(name)
        except NoGo as error:
            pytest.skip(f"no manager {name}: {error}")
        return manager(name, kube / "kubectl", kubeconfig, directory)

    return start


@pytest.fixture(scope="module")
def native(kube: Path) -> Iterator[RealCluster]:
    """A cluster whose server has the group API, with the controllers that groups need and that of Jobs."""
    with RealCluster(kube, native=True, gates=("WorkloadWithJob",)) as cluster:
        cluster.start_controller_manager((*DEFAULT_CONTROLLERS, "job-controller", "resourceclaim-controller"))
        yield cluster


@pytest.fixture(scope="module")
def without_job_groups(kube: Path) -> Iterator[RealCluster]:
    """The same, where the Job controller makes no groups."""
    with RealCluster(kube, native=True) as cluster:
        cluster.start_controller_manager((*DEFAULT_CONTROLLERS, "job-controller", "resourceclaim-controller"))
        yield cluster


@pytest.fixture(scope="module")
def stock(kube: Path) -> Iterator[RealCluster]:
    """A cluster as most are: without the group API."""
    with RealCluster(kube, native=False) as cluster:
        cluster.start_controller_manager(
            ("garbage-collector-controller", "namespace-controller", "job-controller", "resourceclaim-controller")
        )
        yield cluster


@pytest.fixture(scope="session")
def crd_manifests() -> str:
    return yaml.safe_dump_all(crds())


@pytest.fixture(scope="module")
def with_crds(stock: RealCluster, kube: Path, crd_manifests: str) -> RealCluster:
    """The same with Muster's custom resources."""
    kubectl = Kubectl(kube, stock.kubeconfig)
    kubectl("apply", "-f", "-", input=crd_manifests)
    kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    return stock


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The conformance suite, where it is checked out beside the project."""
    if not CONFORMANCE.is_dir():
        pytest.skip(f"no conformance suite at {CONFORMANCE}")
    return CONFORMANCE


@pytest.fixture(scope="module")  # no longer: it holds an event loop, and other tests run their own
def browser() -> Iterator[Any]:
    """Chromium, where the machine has one."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        print(f"Chromium {chromium.version}")
        yield chromium
        chromium.close()
