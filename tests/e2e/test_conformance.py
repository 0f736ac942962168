"""The conformance suite with Muster as the scheduler of a real API server: native, and with custom resources."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from e2e.kube.cluster import RealCluster

from tests.e2e.processes import scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

SHIM = Path(__file__).with_name("crd_conformance.py")


def scenarios(suite: Path, *folders: str) -> list[Path]:
    """The scenario files, without those that only ask what Muster's own server answers."""
    files = [file for file in sorted(suite.glob("scenarios/*/*.yaml")) if not folders or file.parent.name in folders]
    return [file for file in files if not (file.parent.name == "beyond" and "api-only" in labels(file))]


def labels(scenario: Path) -> list[str]:
    return yaml.safe_load(scenario.read_text()).get("labels") or []


def run(command: list[Path | str], cluster: RealCluster, files: list[Path]) -> None:
    done = subprocess.run(
        [sys.executable, *command, "--kubeconfig", cluster.kubeconfig, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(files)} passed, 0 failed" in done.stdout, done.stdout


def test_native_groups(native: RealCluster, conformance: Path, tmp_path: Path) -> None:
    with scheduler(native.kubeconfig, tmp_path / "muster.log") as muster:
        assert "PodGroup scheduling.k8s.io/v1beta1" in muster.said()
        run([conformance / "run_conformance.py"], native, scenarios(conformance))
        assert "failed unexpectedly" not in muster.said()


def test_groups_as_custom_resources(with_crds: RealCluster, conformance: Path, tmp_path: Path) -> None:
    files = scenarios(conformance, "gang", "composite", "topology", "preemption")
    with scheduler(with_crds.kubeconfig, tmp_path / "muster.log") as muster:
        assert "PodGroup scheduling.muster.dev/v1alpha3" in muster.said()
        run([SHIM, conformance / "run_conformance.py"], with_crds, files)
        assert "failed unexpectedly" not in muster.said()
