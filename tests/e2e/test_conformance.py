"""The conformance suite on `muster up`, and with Muster on a real API server: native groups, and custom resources."""

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from e2e.kube.cluster import RealCluster

from muster.api.installation import NAME, NAMESPACE, installation
from muster.api.manifests import CRD_GROUP
from tests.e2e.processes import Kubectl, scheduler, up

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

# Used in a conflict, for volumes and devices, for events of controllers and for readers of the metrics.
ONLY_WHEN_NEEDED = {
    ("get", "", "pods"),
    *((verb, "", kind) for verb in ("get", "patch") for kind in ("persistentvolumes", "persistentvolumeclaims")),
    *((verb, "resource.k8s.io", "devicetaintrules") for verb in ("list", "watch")),
    ("get", "resource.k8s.io", "resourceclaims"),
    *(("update", "resource.k8s.io", f"resourceclaims{part}") for part in ("", "/binding", "/status")),
    ("get", "scheduling.k8s.io", "podgroups"),
    ("get", "scheduling.k8s.io", "compositepodgroups"),
    ("create", "", "events"),
    ("patch", "", "events"),
    ("patch", "events.k8s.io", "events"),
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
}
SHIM = Path(__file__).with_name("crd_conformance.py")

# What a server of others does by itself, and why Muster cannot make it do otherwise.
NOT_NATIVE = {
    "beyond/08-class-fills-the-preemption-policy": "kube-apiserver 1.37 sets the default before it looks at the class",
    "beyond/09-mode-all-needs-children-of-mode-all": "kube-apiserver 1.37 stores such a Workload",
}
NOT_WITH_CRDS = {
    "api/09-workload-template-names-unique-in-tree": "a CEL rule cannot name a field by what stands elsewhere in the "
    "tree; the scheduler reports such a tree on its groups",
    "api/12-priority-of-groups": "a CEL rule cannot look up a class: a class that is missing is waited for, and pods "
    "whose priority is not that of their group keep the group from being scheduled",
    "api/13-pod-group-membership-is-fixed": "labels of pods may change; the first value counts and an event says so",
}


def scenarios(suite: Path, without: Collection[str] = ()) -> list[Path]:
    """The scenario files but for those named."""
    found = {f"{file.parent.name}/{file.stem}": file for file in sorted(suite.glob("scenarios/*/*.yaml"))}
    assert set(without) <= set(found), "the suite has other scenarios now"
    return [file for name, file in found.items() if name not in without]


def run(command: list[Path | str], kubeconfig: Path, files: list[Path]) -> None:
    done = report(command, kubeconfig, files)
    assert f"{len(files)} passed, 0 failed" in done, done


def report(command: list[Path | str], kubeconfig: Path, files: list[Path]) -> str:
    options = ["--retries", "1", "--kubeconfig", kubeconfig]
    done = subprocess.run([sys.executable, *command, *options, *files], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def run_without(command: list[Path | str], kubeconfig: Path, suite: Path, without: Collection[str]) -> None:
    """All of the suite passes but for those named, and those do fail: who mends one takes it off the list."""
    run(command, kubeconfig, scenarios(suite, without))
    others = [suite / "scenarios" / f"{name}.yaml" for name in without]
    said = report(command, kubeconfig, others)
    assert f"0 passed, {len(others)} failed" in said, said


def test_everything_on_muster_up(conformance: Path, tmp_path: Path) -> None:
    with up(tmp_path / "up.log") as kubeconfig:
        run([conformance / "run_conformance.py"], kubeconfig, scenarios(conformance))


def test_native_groups_with_no_more_rights_than_installed(kube: Path, conformance: Path, tmp_path: Path) -> None:
    with RealCluster(kube, native=True, audit=True) as cluster:
        cluster.start_controller_manager()
        account = installed_account(kube, cluster)
        with scheduler(account, tmp_path / "muster.log", "--scheduler-name", "muster") as muster:
            assert "PodGroup scheduling.k8s.io/v1beta1" in muster.said()
            suite = [conformance / "run_conformance.py", "--scheduler-name", "muster"]
            run_without(suite, cluster.kubeconfig, conformance, NOT_NATIVE)
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
    with scheduler(with_crds.kubeconfig, tmp_path / "muster.log") as muster:
        assert "PodGroup scheduling.muster.dev/v1alpha3" in muster.said()
        run_without([SHIM, conformance / "run_conformance.py"], with_crds.kubeconfig, conformance, NOT_WITH_CRDS)
        assert "failed unexpectedly" not in muster.said()
