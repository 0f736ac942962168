"""The conformance suite on `muster up`, and with Muster on a real API server: native groups, and custom resources."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from e2e.kube.cluster import RealCluster

from muster.api.installation import NAME, NAMESPACE, installation
from muster.api.manifests import CRD_GROUP
from tests.e2e.processes import Kubectl, scheduler, up

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

# Used in a conflict, for volumes, for events of controllers and for readers of the metrics.
ONLY_WHEN_NEEDED = {
    ("get", "", "pods"),
    *((verb, "", kind) for verb in ("get", "patch") for kind in ("persistentvolumes", "persistentvolumeclaims")),
    ("get", "scheduling.k8s.io", "podgroups"),
    ("get", "scheduling.k8s.io", "compositepodgroups"),
    ("create", "", "events"),
    ("patch", "", "events"),
    ("patch", "events.k8s.io", "events"),
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
}
SHIM = Path(__file__).with_name("crd_conformance.py")


def scenarios(suite: Path, *folders: str) -> list[Path]:
    """The scenario files, without those that only ask what Muster's own server answers."""
    files = [file for file in sorted(suite.glob("scenarios/*/*.yaml")) if not folders or file.parent.name in folders]
    return [file for file in files if not (file.parent.name == "beyond" and "api-only" in labels(file))]


def labels(scenario: Path) -> list[str]:
    return yaml.safe_load(scenario.read_text()).get("labels") or []


def run(command: list[Path | str], kubeconfig: Path, files: list[Path]) -> None:
    done = subprocess.run(
        [sys.executable, *command, "--retries", "1", "--kubeconfig", kubeconfig, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(files)} passed, 0 failed" in done.stdout, done.stdout


def test_everything_on_muster_up(conformance: Path, tmp_path: Path) -> None:
    with up(tmp_path / "up.log") as kubeconfig:
        run([conformance / "run_conformance.py"], kubeconfig, sorted(conformance.glob("scenarios/*/*.yaml")))


def test_native_groups_with_no_more_rights_than_installed(kube: Path, conformance: Path, tmp_path: Path) -> None:
    with RealCluster(kube, native=True, audit=True) as cluster:
        cluster.start_controller_manager()
        account = installed_account(kube, cluster)
        with scheduler(account, tmp_path / "muster.log", "--scheduler-name", "muster") as muster:
            assert "PodGroup scheduling.k8s.io/v1beta1" in muster.said()
            suite = [conformance / "run_conformance.py", "--scheduler-name", "muster"]
            run(suite, cluster.kubeconfig, scenarios(conformance))
            assert "failed unexpectedly" not in muster.said()
            assert "missing permission" not in muster.said()
        used = cluster.requests_of(f"system:serviceaccount:{NAMESPACE}:{NAME}")
    assert granted() - used - ONLY_WHEN_NEEDED == set()


def granted() -> set[tuple[str, str, str]]:
    """What the installed ClusterRole allows on a cluster with the native API."""
    rules = next(each["rules"] for each in installation("muster") if each["kind"] == "ClusterRole")
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if group != CRD_GROUP
    }


def installed_account(kube: Path, cluster: RealCluster) -> Path:
    """Apply all of the installation but the pods themselves, and be its account."""
    objects = [each for each in installation("muster") if each["kind"] not in ("Deployment", "PodDisruptionBudget")]
    Kubectl(kube, cluster.kubeconfig).create(*objects)
    return cluster.as_service_account(NAMESPACE, NAME)


def test_groups_as_custom_resources(with_crds: RealCluster, conformance: Path, tmp_path: Path) -> None:
    files = scenarios(conformance, "gang", "composite", "topology", "preemption")
    with scheduler(with_crds.kubeconfig, tmp_path / "muster.log") as muster:
        assert "PodGroup scheduling.muster.dev/v1alpha3" in muster.said()
        run([SHIM, conformance / "run_conformance.py"], with_crds.kubeconfig, files)
        assert "failed unexpectedly" not in muster.said()
