"""Jobs of the real kube-controller-manager whose groups come from the Workload of their parent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from e2e.kube.cluster import RealCluster

from tests.e2e.objects import NATIVE, bound, large_node
from tests.e2e.processes import Kubectl, eventually, scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SIZE = 3


def parent_and_workload(kubectl: Kubectl) -> dict[str, Any]:
    """Some object that makes Jobs, and the Workload that it made for them: its reference."""
    kubectl("create", "configmap", "parent")
    uid = json.loads(kubectl("get", "configmap", "parent", "-o", "json"))["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": uid, "controller": True}
    template = {"name": "workers", "schedulingPolicy": {"gang": {"minCount": SIZE}}}
    reference = {"apiGroup": "", "kind": "ConfigMap", "name": "parent"}
    meta = {"name": "of-parent", "namespace": "default", "ownerReferences": [owner]}
    spec = {"controllerRef": reference, "podGroupTemplates": [template]}
    kubectl.create({"apiVersion": NATIVE, "kind": "Workload", "metadata": meta, "spec": spec})
    return owner


def delegated_job(owner: dict[str, Any]) -> dict[str, Any]:
    meta = {
        "name": "workers",
        "namespace": "default",
        "annotations": {"scheduling.k8s.io/group-template-name": "workers"},
        "ownerReferences": [owner],
    }
    requests = {"requests": {"cpu": "60"}}
    pod = {
        "schedulerName": "muster",
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": requests}],
    }
    spec = {"parallelism": SIZE, "completions": SIZE, "template": {"spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def test_a_job_whose_parent_delegates_is_a_gang_of_the_parents_workload(
    kube: Path, native: RealCluster, tmp_path: Path
) -> None:
    kubectl = Kubectl(kube, native.kubeconfig)
    kubectl.create(large_node("n0"), large_node("n1"))
    kubectl.create(delegated_job(parent_and_workload(kubectl)))
    with scheduler(native.kubeconfig, tmp_path / "muster.log", "--scheduler-name", "muster"):
        group = eventually(lambda: json.loads(kubectl("get", "podgroups", "-o", "json"))["items"])[0]
        assert group["spec"]["workloadRef"] == {"workloadName": "of-parent", "templateName": "workers"}
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": SIZE}}
        said = ("get", "podgroup", group["metadata"]["name"], "-o", "jsonpath={.status.conditions[0].reason}")
        eventually(lambda: kubectl(*said) == "Unschedulable", else_=lambda: kubectl("get", "podgroups,pods"))
        assert bound(kubectl, "workers-") == {}
        kubectl.create(large_node("n2"))
        eventually(lambda: len(bound(kubectl, "workers-")) == SIZE, else_=lambda: kubectl("get", "podgroups,pods"))
