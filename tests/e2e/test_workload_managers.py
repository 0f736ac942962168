"""The real managers of workloads live on `muster up`: no errors in their logs, webhooks served, objects reconciled."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import StartManager
from tests.e2e.processes import Kubectl, eventually, up
from tests.e2e.workload_objects import (
    job,
    jobset,
    kueue_queue,
    leader_worker_set,
    queued,
    ray_cluster,
    replicated_job,
)

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


def test_leader_worker_set(server: Path, kube: Path, managers: StartManager, tmp_path: Path) -> None:
    kubectl = Kubectl(kube, server)
    with managers("lws", server, tmp_path) as found:
        kubectl.create(leader_worker_set("serve", 2, 3))
        selector = "leaderworkerset.sigs.k8s.io/name=serve"
        eventually(lambda: running(kubectl, selector, 6))
        places = sorted(
            (pod["metadata"]["name"], pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/group-index"])
            for pod in pods(kubectl, selector)
        )
        groups = [(f"serve-{group}{worker}", str(group)) for group in (0, 1) for worker in ("", "-1", "-2")]
        assert places == groups, "its webhook gives pods their places"
        kubectl("scale", "lws", "serve", "--replicas=3")
        eventually(lambda: running(kubectl, selector, 9))
        wrong = yaml.safe_dump(leader_worker_set("wrong", 1, -1))
        assert "denied the request" in kubectl("create", "-f", "-", input=wrong, refused=True)
        kubectl("delete", "lws", "serve")
        eventually(lambda: not pods(kubectl, selector))
        assert found.errors() == []


def test_kueue(server: Path, kube: Path, managers: StartManager, tmp_path: Path) -> None:
    kubectl = Kubectl(kube, server)
    with managers("kueue", server, tmp_path) as found:
        kubectl.create(*kueue_queue("4"))
        kubectl.create(queued(job("first", 3)))
        eventually(lambda: running(kubectl, "batch.kubernetes.io/job-name=first", 3))
        kubectl.create(queued(job("second", 3)))
        assert json.loads(kubectl("get", "job", "second", "-o", "json"))["spec"]["suspend"], (
            "its webhook holds Jobs back"
        )
        admitted = json.loads(kubectl("get", "workloads.v1beta1.kueue.x-k8s.io", "-o", "json"))["items"]
        assert len(admitted) == 2, "both versions of its kinds are served"
        kubectl("delete", "job", "first")
        eventually(lambda: running(kubectl, "batch.kubernetes.io/job-name=second", 3))
        assert found.errors() == []


def test_kuberay(server: Path, kube: Path, managers: StartManager, tmp_path: Path) -> None:
    kubectl = Kubectl(kube, server)
    with managers("kuberay", server, tmp_path) as found:
        kubectl.create(ray_cluster("ray", 2))
        eventually(lambda: running(kubectl, "ray.io/cluster=ray", 3))
        groups = json.loads(kubectl("get", "podgroups", "-o", "json"))["items"]
        assert sorted(group["metadata"]["name"].rpartition("-")[0] for group in groups) == [
            "ray-headgroup",
            "ray-small",
        ]
        kubectl("delete", "raycluster", "ray")
        eventually(lambda: not pods(kubectl, "ray.io/cluster=ray"))
        assert found.errors() == []
