"""Groups as custom resources on a real server: what it refuses, what Muster fills in, protects and complains about."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.kube.cluster import RealCluster

from tests.e2e.objects import CRD, bound, gang_manifest, large_node, members, one_cpu_pod
from tests.e2e.processes import MUSTER, Kubectl, eventually, scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

GROUPS, COMPOSITES = "podgroups.scheduling.muster.dev", "compositepodgroups.scheduling.muster.dev"
Obj = dict[str, Any]


@pytest.fixture(scope="module")
def kubectl(kube: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """A stock cluster where `muster install --crds` was run, and a scheduler for it."""
    log = tmp_path_factory.mktemp("crds") / "muster.log"
    with RealCluster(kube, native=False) as cluster:
        install(cluster)
        kubectl = Kubectl(kube, cluster.kubeconfig)
        kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        kubectl.create(large_node("n0"), a_class("high", 1000), a_class("shy", 500, preemptionPolicy="Never"))
        with scheduler(cluster.kubeconfig, log) as muster:
            yield kubectl
            assert "failed unexpectedly" not in muster.said()


def install(cluster: RealCluster) -> str:
    command = [*MUSTER, "install", "--crds", "--kubeconfig", str(cluster.kubeconfig)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def a_class(name: str, value: int, **fields: Any) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **fields,
    }


def a_composite(name: str, **fields: Any) -> Obj:
    spec = {
        "workloadRef": {"workloadName": "w", "templateName": "t"},
        "schedulingPolicy": {"gang": {"minGroupCount": 1}},
        **fields,
    }
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": CRD, "kind": "CompositePodGroup", "metadata": meta, "spec": spec}


def read(kubectl: Kubectl, what: str, name: str) -> Obj:
    return json.loads(kubectl("get", what, name, "-o", "json"))


def refused(kubectl: Kubectl, obj: Obj) -> str:
    return kubectl("create", "-f", "-", input=json.dumps(obj), refused=True)


def test_installing_again_changes_nothing_and_says_what_it_applied(kube: Path, stock: RealCluster) -> None:
    assert "deployment muster applied" in install(stock)
    before = Kubectl(kube, stock.kubeconfig)("get", "deployment", "muster", "-n", "muster-system", "-o", "json")
    install(stock)
    after = Kubectl(kube, stock.kubeconfig)("get", "deployment", "muster", "-n", "muster-system", "-o", "json")
    assert json.loads(after)["metadata"]["generation"] == json.loads(before)["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"schedulingPolicy": {}}, "exactly one of: basic, gang"),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}, "exactly one of: basic, gang"),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "greater than or equal to 1"),
        ({"parentCompositePodGroupName": "p"}, "must be set when parentCompositePodGroupName is set"),
        ({"disruptionMode": {"single": {}, "all": {}}}, "exactly one of: single, all"),
        ({"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}, "must have at most 1 item"),
        ({"preemptionPolicy": "Sometimes"}, "Unsupported value"),
    ],
)
def test_a_group_that_makes_no_sense_is_refused(kubectl: Kubectl, spec: Obj, complaint: str) -> None:
    assert complaint in refused(kubectl, gang_manifest("wrong", 1, api=CRD, **spec))


def test_a_group_name_that_no_label_could_hold_is_refused(kubectl: Kubectl) -> None:
    assert "may not be" in refused(kubectl, gang_manifest("x" * 64, 1, api=CRD)) or "Too long" in refused(
        kubectl, gang_manifest("x" * 64, 1, api=CRD)
    )


def test_only_the_quorum_of_a_group_may_change(kubectl: Kubectl) -> None:
    kubectl.create(gang_manifest("fixed", 2, api=CRD, schedulingConstraints={"topology": [{"key": "rack"}]}))
    kubectl("patch", GROUPS, "fixed", "--type=merge", "-p", '{"spec":{"schedulingPolicy":{"gang":{"minCount":3}}}}')
    for change in (
        {"schedulingPolicy": {"gang": None, "basic": {}}},
        {"schedulingConstraints": {"topology": [{"key": "zone"}]}},
        {"schedulingConstraints": None},
        {"disruptionMode": {"single": None, "all": {}}},
        {"workloadRef": {"workloadName": "w", "templateName": "t"}},
    ):
        patch = json.dumps({"spec": change})
        said = kubectl("patch", GROUPS, "fixed", "--type=merge", "-p", patch, refused=True)
        assert "immutable" in said or "may not change" in said


def test_priority_and_policy_come_from_the_class(kubectl: Kubectl) -> None:
    kubectl.create(gang_manifest("urgent", 1, api=CRD, priorityClassName="shy"), a_composite("whole"))
    eventually(lambda: read(kubectl, GROUPS, "urgent")["spec"].get("priority") == 500, else_="the priority")
    assert read(kubectl, GROUPS, "urgent")["spec"]["preemptionPolicy"] == "Never"
    assert read(kubectl, GROUPS, "urgent")["spec"]["disruptionMode"] == {"single": {}}
    eventually(lambda: read(kubectl, COMPOSITES, "whole")["spec"].get("priority") == 0, else_="the default")
    said = kubectl("patch", GROUPS, "urgent", "--type=merge", "-p", '{"spec":{"priority":7}}', refused=True)
    assert "immutable once it is set" in said


def test_a_class_that_does_not_exist_is_complained_about_and_waited_for(kubectl: Kubectl) -> None:
    kubectl.create(gang_manifest("patient", 1, api=CRD, priorityClassName="later"))
    eventually(lambda: "PriorityClassNotFound" in kubectl("get", "events"), else_="the event")
    kubectl.create(a_class("later", 77))
    eventually(lambda: read(kubectl, GROUPS, "patient")["spec"].get("priority") == 77, else_="the priority")


def test_groups_go_from_the_leaves_to_the_root(kubectl: Kubectl) -> None:
    reference = {"workloadName": "w", "templateName": "t"}
    leaf = gang_manifest("leaf", 1, api=CRD, parentCompositePodGroupName="root", workloadRef=reference)
    kubectl.create(a_composite("root"), leaf, one_cpu_pod("leaf-0", "leaf", by_label=True))
    eventually(lambda: bound(kubectl, "leaf-"), else_="the member bound")
    for what, name in ((COMPOSITES, "root"), (GROUPS, "leaf")):
        eventually(lambda w=what, n=name: read(kubectl, w, n)["metadata"].get("finalizers"), else_="a finalizer")
        kubectl("delete", what, name, "--wait=false")
    assert read(kubectl, COMPOSITES, "root")["metadata"]["deletionTimestamp"]
    assert read(kubectl, GROUPS, "leaf")["metadata"]["deletionTimestamp"]
    kubectl("delete", "pod", "leaf-0")
    for what, name in ((GROUPS, "leaf"), (COMPOSITES, "root")):
        eventually(lambda w=what, n=name: not kubectl("get", w, n, "--ignore-not-found"), else_=f"{name} gone")


def test_a_label_that_changes_later_is_ignored_with_a_warning(kubectl: Kubectl) -> None:
    kubectl.create(gang_manifest("home", 2, api=CRD), one_cpu_pod("home-0", "home", by_label=True))
    eventually(lambda: "home-0" in kubectl("get", "pods"), else_="the pod")
    eventually(
        lambda: status(kubectl, "home").get("reason") == "WaitingForMembers" or status(kubectl, "home"),
        else_="a word on the group that waits",
    )
    kubectl("label", "pod", "home-0", "--overwrite", "scheduling.muster.dev/pod-group=away")
    eventually(lambda: "PodGroupLabelChanged" in kubectl("get", "events"), else_="the warning")
    kubectl.create(one_cpu_pod("home-1", "home", by_label=True))
    eventually(lambda: len(bound(kubectl, "home-")) == 2, else_="both members in their first group")


def status(kubectl: Kubectl, group: str) -> Obj:
    conditions = (read(kubectl, GROUPS, group).get("status") or {}).get("conditions") or [{}]
    return conditions[0]


def test_listings_show_what_matters(kubectl: Kubectl) -> None:
    kubectl.create(gang_manifest("shown", 2, api=CRD), *members("shown", 2, by_label=True))
    eventually(lambda: status(kubectl, "shown").get("status") == "True", else_="the gang scheduled")
    header, line = kubectl("get", "pg", "shown").splitlines()
    assert header.split() == ["NAME", "GANG", "PARENT", "WORKLOAD", "STATUS", "AGE"]
    assert line.split()[:2] == ["shown", "2"]
    assert "Scheduled" in line


def test_migrated_manifests_are_accepted(kubectl: Kubectl, tmp_path: Path) -> None:
    native = {**gang_manifest("moved", 1), "apiVersion": "scheduling.k8s.io/v1beta1"}
    file = tmp_path / "native.json"
    file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [native, one_cpu_pod("moved-0", "moved")]})
    )
    command = [*MUSTER, "migrate", "--to", "crd", "-f", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    kubectl("create", "-f", "-", input=done.stdout)
    eventually(lambda: bound(kubectl, "moved-"), else_="the migrated gang bound")
