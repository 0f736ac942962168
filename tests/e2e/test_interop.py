"""Muster's own server under the real components of Kubernetes, and objects of older clients on it."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e.kube.cluster import NATIVE_GATES, Daemon, free_ports

from tests.e2e.objects import NATIVE, bound, condition, gang_manifest, members, one_cpu_pod
from tests.e2e.processes import Kubectl, eventually, up

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

STARTUP = "The manifest file is empty"  # said of its own flags, whatever server it talks to
PROTECTION = "scheduling.k8s.io/podgroup-protection"


@contextmanager
def component(kube: Path, name: str, kubeconfig: Path, directory: Path, *flags: str) -> Iterator[Daemon]:
    """A component of Kubernetes with a kubeconfig for everything."""
    (port,) = free_ports(1)
    log = directory / f"{name}.log"
    command = [
        kube / name,
        *(f"--{what}kubeconfig={kubeconfig}" for what in ("", "authentication-", "authorization-")),
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={directory}",
        "--leader-elect=false",
        f"--feature-gates={','.join(f'{gate}=true' for gate in NATIVE_GATES)}",
        *flags,
    ]
    with log.open("wb") as output:
        daemon = Daemon(name, subprocess.Popen(command, stdout=output, stderr=output), log, f"https://127.0.0.1:{port}")
    try:
        daemon.wait_for("/healthz")
        yield daemon
    finally:
        daemon.stop()


def test_kube_scheduler_schedules_gangs_on_our_server(kube: Path, tmp_path: Path) -> None:
    with up(tmp_path / "up.log", "--no-scheduler", "--nodes", "4", "--node-cpu", "4") as kubeconfig:
        kubectl = Kubectl(kube, kubeconfig)
        with component(kube, "kube-scheduler", kubeconfig, tmp_path):
            kubectl.create(gang_manifest("fits", 12), *members("fits", 12))
            eventually(lambda: len(bound(kubectl, "fits-")) == 12, else_="the gang that fits")
            kubectl.create(gang_manifest("huge", 12), *members("huge", 12))
            eventually(lambda: condition(kubectl, "fits") == "True", else_="its condition")
            eventually(lambda: condition(kubectl, "huge") == "False", else_="the refusal of the other")
            assert bound(kubectl, "huge-") == {}


def test_kube_controller_manager_cares_for_our_server(kube: Path, tmp_path: Path) -> None:
    # Without a scheduler nobody else writes to groups, so that a conflict would be a fault and no coincidence.
    with up(tmp_path / "up.log", "--no-controllers", "--no-scheduler", "--nodes", "1") as kubeconfig:
        kubectl = Kubectl(kube, kubeconfig)
        controllers = "--controllers=podgroup-protection-controller,garbage-collector-controller"
        with component(kube, "kube-controller-manager", kubeconfig, tmp_path, controllers) as manager:
            began = time.monotonic()
            protected_until_its_pods_are_gone(kubectl)
            deleted_with_its_owner(kubectl)
            while time.monotonic() - began < 60:
                time.sleep(1)
            errors = re.findall(r"^[EF]\d{4} .*", manager.log.read_text(), re.MULTILINE)
            assert [error for error in errors if STARTUP not in error] == []


def protected_until_its_pods_are_gone(kubectl: Kubectl) -> None:
    node = kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    kubectl.create(gang_manifest("g", 1), one_cpu_pod("g-0", "g", nodeName=node))
    eventually(lambda: PROTECTION in finalizers(kubectl, "g"), else_="the finalizer")
    kubectl("delete", "podgroup", "g", "--wait=false")
    time.sleep(3)
    assert PROTECTION in finalizers(kubectl, "g")
    kubectl("delete", "pod", "g-0")
    eventually(lambda: "g" not in names(kubectl), else_="the group gone")


def deleted_with_its_owner(kubectl: Kubectl) -> None:
    template = {"name": "t", "schedulingPolicy": {"basic": {}}}
    kubectl.create(
        {
            "apiVersion": NATIVE,
            "kind": "Workload",
            "metadata": {"name": "owner", "namespace": "default"},
            "spec": {"podGroupTemplates": [template]},
        }
    )
    uid = json.loads(kubectl("get", "workload", "owner", "-o", "json"))["metadata"]["uid"]
    owned = gang_manifest("owned", 1)
    owned["metadata"]["ownerReferences"] = [{"apiVersion": NATIVE, "kind": "Workload", "name": "owner", "uid": uid}]
    kubectl.create(owned)
    kubectl("delete", "workload", "owner")
    eventually(lambda: "owned" not in names(kubectl), else_="what it owned gone too")


def finalizers(kubectl: Kubectl, group: str) -> list[str]:
    return json.loads(kubectl("get", "podgroup", group, "-o", "json"))["metadata"].get("finalizers") or []


def names(kubectl: Kubectl) -> list[str]:
    listed = json.loads(kubectl("get", "podgroups", "-o", "json"))["items"]
    return [each["metadata"]["name"] for each in listed]


def test_groups_of_older_clients_stay_schedulable(kube: Path, tmp_path: Path) -> None:
    with up(tmp_path / "up.log", "--nodes", "2", "--node-cpu", "4") as kubeconfig:
        kubectl = Kubectl(kube, kubeconfig)
        old = gang_manifest("old", 3, api="scheduling.k8s.io/v1alpha2")
        old["spec"]["podGroupTemplateRef"] = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
        kubectl.create(old, *members("old", 3))
        eventually(lambda: len(bound(kubectl, "old-")) == 3, else_="the gang of the older client")
        eventually(
            lambda: condition(kubectl, "old", "PodGroupScheduled", "v1alpha2.scheduling.k8s.io") == "True",
            else_="its condition by its older name",
        )
