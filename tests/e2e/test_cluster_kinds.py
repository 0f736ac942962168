"""The kinds that every cluster has, with kubectl on `muster up`: made, rolled out, refused, deleted."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import Kubectl, eventually, up

pytestmark = pytest.mark.e2e

WORKLOADS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 2
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "web:1", ports: [{name: http, containerPort: 80}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, clusterIP: None, ports: [{port: 80, targetPort: http}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: agent}]}
"""


@pytest.fixture(scope="module")
def kubectl(kube: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    log = tmp_path_factory.mktemp("up") / "log"
    with up(log, "--nodes", "3") as kubeconfig:
        yield Kubectl(kube, kubeconfig)


def test_workloads_are_rolled_out_and_undone(kubectl: Kubectl):
    kubectl("apply", "-f", "-", input=WORKLOADS)
    kubectl("rollout", "status", "statefulset/web", "--timeout=60s")
    kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")
    ready = "-o=jsonpath={.status.numberReady}"
    assert kubectl("get", "daemonset/agent", ready) == "3"
    phases = kubectl("get", "pvc", "-o=jsonpath={.items[*].status.phase}")
    assert phases == "Bound Bound"

    kubectl("set", "image", "statefulset/web", "c=web:2")
    kubectl("rollout", "status", "statefulset/web", "--timeout=60s")
    kubectl("rollout", "undo", "statefulset/web")
    kubectl("rollout", "status", "statefulset/web", "--timeout=60s")
    image = "-o=jsonpath={.spec.containers[0].image}"
    assert [kubectl("get", f"pod/web-{number}", image) for number in (0, 1)] == ["web:1", "web:1"]

    addresses = "-o=jsonpath={.items[*].endpoints[*].addresses[0]}"
    slices = ("get", "endpointslices", "-l", "kubernetes.io/service-name=web", addresses)
    eventually(lambda: len(kubectl(*slices).split()) == 2, 30, lambda: kubectl(*slices))


def test_a_schedule_that_is_none_is_refused(kubectl: Kubectl):
    said = kubectl("create", "cronjob", "c", "--image=i", "--schedule=61 * * * *", refused=True)
    assert 'Invalid value: "61 * * * *": end of range (61) above maximum (59): 61' in said


def test_a_quota_and_a_level_of_pod_security_refuse(kubectl: Kubectl):
    kubectl("create", "namespace", "small")
    kubectl("-n", "small", "create", "quota", "q", "--hard=pods=1")
    status = ("-n", "small", "get", "quota", "q", "-o=jsonpath={.status.hard.pods}")
    eventually(lambda: kubectl(*status) == "1", 30, lambda: kubectl(*status))
    kubectl("-n", "small", "run", "p", "--image=i")
    assert "exceeded quota: q, requested: pods=1, used: pods=1" in kubectl(
        "-n", "small", "run", "q", "--image=i", refused=True
    )

    kubectl("label", "namespace", "small", "pod-security.kubernetes.io/enforce=restricted")
    said = kubectl("-n", "small", "run", "r", "--image=i", refused=True)
    assert 'violates PodSecurity "restricted:latest"' in said
    kubectl("delete", "namespace", "small", "--timeout=60s")


def test_a_certificate_is_approved_and_issued(kubectl: Kubectl, tmp_path: Path):
    request = tmp_path / "request"
    command = ["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", str(tmp_path / "key")]
    subprocess.run([*command, "-subj", "/CN=jane/O=dev", "-out", str(request)], check=True, capture_output=True)
    encoded = base64.b64encode(request.read_bytes()).decode()
    manifest = f"""
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {{name: jane}}
spec: {{request: {encoded}, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}}
"""
    kubectl("apply", "-f", "-", input=manifest)
    kubectl("certificate", "approve", "jane")
    eventually(lambda: "Approved,Issued" in kubectl("get", "csr", "jane"), 30, lambda: kubectl("get", "csr"))


def test_logs_say_what_would_run_and_top_what_is_missing(kubectl: Kubectl):
    kubectl("run", "talk", "--image=i", "--annotations=muster.dev/log=hello", "--command", "--", "sh", "-c", "true")
    kubectl("wait", "--for=condition=Ready", "pod/talk", "--timeout=60s")
    said = kubectl("logs", "talk")
    assert "simulated container talk: image i, sh -c true; runs until it is stopped" in said
    assert said.splitlines()[-1] == "hello"
    assert "Metrics API not available" in kubectl("top", "nodes", refused=True)


def test_older_clients_read_openapi_v2(kubectl: Kubectl):
    """kubectl reads it as protobuf."""
    assert "tolerationSeconds" in kubectl("explain", "pod.spec.tolerations", "--output=plaintext-openapiv2")
