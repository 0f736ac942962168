"""The real managers of workloads live on `muster up`: no errors in their logs, webhooks served, objects reconciled."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import StartManager
from tests.e2e.processes import Kubectl, eventually, up
from tests.e2e.workload_objects import jobset, replicated_job

pytestmark = [pytest.mark.e2e, pytest.mark.workloads, pytest.mark.timeout(1800)]

Obj = dict[str, Any]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    with up(tmp_path / "muster.log", "--nodes", "16", "--nodes-per-rack", "4") as kubeconfig:
        yield kubeconfig


def pods(kubectl: Kubectl, selector: str) -> list[Obj]:
    return json.loads(kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]


def running(kubectl: Kubectl, selector: str, count: int) -> bool:
    found = pods(kubectl, selector)
    return len(found) == count and all(pod["status"].get("phase") == "Running" for pod in found)


def test_jobset(server: Path, kube: Path, managers: StartManager, tmp_path: Path) -> None:
    kubectl = Kubectl(kube, server)
    with managers("jobset", server, tmp_path) as found:
        kubectl.create(jobset("train", replicated_job("driver", 1, 1), replicated_job("workers", 2, 3)))
        made = json.loads(kubectl("get", "jobset", "train", "-o", "json"))
        job = made["spec"]["replicatedJobs"][0]["template"]["spec"]
        assert job["completionMode"] == "Indexed", "its webhook fills in defaults"
        eventually(lambda: running(kubectl, "jobset.sigs.k8s.io/jobset-name=train", 7))
        long = yaml.safe_dump(jobset("x" * 63, replicated_job("workers", 1, 1)))
        said = kubectl("create", "-f", "-", input=long, refused=True)
        assert 'admission webhook "vjobset.kb.io" denied the request' in said
        kubectl("delete", "jobset", "train")
        eventually(lambda: not pods(kubectl, "jobset.sigs.k8s.io/jobset-name=train"))
        assert found.errors() == []
