"""Devices on real components: the real API server's answers, the real scheduler on Muster's server, kubectl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from e2e.kube.cluster import RealCluster

from tests.e2e.processes import Kubectl, eventually, up
from tests.e2e.record_device_answers import caller
from tests.e2e.test_interop import component
from tests.server.device_answers import answers, recorded

pytestmark = pytest.mark.e2e

TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: 2}}]
      constraints: [{matchAttribute: resource.kubernetes.io/pcieRoot}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  resourceClaims: [{name: gpus, resourceClaimTemplateName: two}]
  containers: [{name: c, image: worker, resources: {claims: [{name: gpus}]}}]
"""


def test_the_recorded_answers_are_those_of_this_server(kube: Path) -> None:
    with RealCluster(kube) as cluster:
        assert answers(caller(cluster)) == recorded()


def test_kube_scheduler_allocates_devices_on_our_server(kube: Path, tmp_path: Path) -> None:
    with up(tmp_path / "log", "--nodes", "2", "--devices", "gpu:2", "--no-scheduler") as kubeconfig:
        kubectl = Kubectl(kube, kubeconfig)
        kubectl("apply", "-f", "-", input=TEMPLATE)
        with component(kube, "kube-scheduler", kubeconfig, tmp_path):
            for name in ("one", "other"):
                kubectl("apply", "-f", "-", input=POD.replace("NAME", name))
            phases = ("get", "pods", "-o=jsonpath={.items[*].status.phase}")
            eventually(lambda: kubectl(*phases) == "Running Running", else_="the pods")
        claims = json.loads(kubectl("get", "resourceclaims", "-o=json"))["items"]
        used = [
            (result["pool"], result["device"])
            for claim in claims
            for result in claim["status"]["allocation"]["devices"]["results"]
        ]
        assert len(used) == len(set(used)) == 4, "two devices each, none of them twice"
        described = kubectl("describe", "resourceclaim", claims[0]["metadata"]["name"])
        assert "gpu.example.com" in described
        assert "Reserved For" in described
        kubectl("delete", "pod", "one", "other", "--wait=false")
        eventually(lambda: json.loads(kubectl("get", "resourceclaims", "-o=json"))["items"] == [], else_="claims")
