"""Pods of workloads on a real API server: put into their groups by the policies or by the scheduler, with the installed
rights, and the policies give what the table gives.
"""

import json
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from e2e.kube.cluster import RealCluster

from muster.api.job_gangs import GANG_ANNOTATION
from muster.api.membership import (
    COMPLETION_INDEX_LABEL,
    COSCHEDULING_LABEL,
    JOB_NAME_LABEL,
    JOBSET,
    KUBEFLOW,
    KUEUE_GROUP_LABEL,
    LWS,
    OWN_GROUP_LABEL,
    POD_GROUP_LABEL,
    RAY,
    SUBGROUP_SIZE,
    facts_of,
    leaf_of,
)
from tests.e2e.objects import large_node
from tests.e2e.processes import MUSTER, Kubectl, eventually, scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

Obj = dict[str, Any]
FAMILIES = (
    [f"{JOBSET}jobset-name", f"{JOBSET}jobset-uid", f"{JOBSET}restart-attempt", JOB_NAME_LABEL],
    [f"{LWS}name", f"{LWS}group-index", f"{LWS}template-revision-hash", f"{LWS}worker-index", f"{LWS}subgroup-index"],
    [f"{RAY}cluster", f"{RAY}group"],
    [f"{KUBEFLOW}job-name", f"{KUBEFLOW}replica-type"],
    [COMPLETION_INDEX_LABEL],
    [KUEUE_GROUP_LABEL],
    [COSCHEDULING_LABEL],
)
RARE = [POD_GROUP_LABEL, OWN_GROUP_LABEL, GANG_ANNOTATION]
VALUES = ["0", "1", "a", "none", "all", "Upper", "x.y", "x_y", "0123456789ab", "a" * 63, ""]
OWNERS = [("batch/v1", "Job"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet"), ("ray.io/v1", "RayCluster")]
OWNERS += [("kubeflow.org/v1", "PyTorchJob"), ("v1", "ConfigMap")]


def install(cluster: RealCluster, *flags: str) -> None:
    command = [*MUSTER, "install", "--workloads", *flags, "--kubeconfig", str(cluster.kubeconfig)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def an_indexed_job(name: str, pods: int, **pod: Any) -> Obj:
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **pod}
    body = {"completionMode": "Indexed", "parallelism": pods, "completions": pods, "template": {"spec": spec}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": body}


def items(kubectl: Kubectl, kind: str, *flags: str) -> list[Obj]:
    return json.loads(kubectl("get", kind, "-o", "json", *flags))["items"]


def bound(kubectl: Kubectl, *flags: str) -> int:
    return sum("nodeName" in pod["spec"] for pod in items(kubectl, "pods", *flags))


@pytest.fixture(scope="module")
def managed(kube: Path, without_job_groups: RealCluster) -> Kubectl:
    """A server with the group API, the policies, and a managed namespace."""
    kubectl = Kubectl(kube, without_job_groups.kubeconfig)
    install(without_job_groups, "--policies")
    labels = {"scheduling.muster.dev/managed": "true"}
    kubectl.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "m", "labels": labels}})

    def is_in_force() -> bool:
        made = dry_run(kubectl, a_pod(random.Random(1), {POD_GROUP_LABEL: "g"}))
        return (made.get("schedulingGroup") or {}).get("podGroupName") == "g"

    eventually(is_in_force)
    return kubectl


def a_pod(chance: random.Random, labels: dict[str, str]) -> Obj:
    meta: Obj = {"name": "p", "namespace": "m", "labels": labels}
    if chance.random() < 0.4:
        meta["annotations"] = {chance.choice([GANG_ANNOTATION, SUBGROUP_SIZE]): chance.choice(["all", "none", "2"])}
    if chance.random() < 0.6:
        version, kind = chance.choice(OWNERS)
        owner = {"apiVersion": version, "kind": kind, "name": chance.choice(["j", "a.b"]), "uid": "0123456789ab"}
        meta["ownerReferences"] = [{**owner, "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def random_labels(chance: random.Random) -> dict[str, str]:
    keys = list(chance.choice(FAMILIES)) + [key for key in RARE if chance.random() < 0.1]
    return {key: chance.choice(VALUES) for key in keys if chance.random() < 0.95}


def dry_run(kubectl: Kubectl, *pods: Obj) -> Obj:
    made = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(pods[0]))
    return json.loads(made)["spec"]


def documents(text: str) -> list[Obj]:
    """The objects that kubectl prints one after another."""
    found: list[Obj] = []
    while text := text.lstrip():
        obj, end = json.JSONDecoder().raw_decode(text)
        found.append(obj)
        text = text[end:]
    return found


def test_the_policies_of_a_real_server_give_what_the_table_gives(managed: Kubectl) -> None:
    chance = random.Random(7)
    pods = [a_pod(chance, random_labels(chance)) for _ in range(400)]
    for number, pod in enumerate(pods):
        pod["metadata"]["name"] = f"p-{number}"
    listed = {"apiVersion": "v1", "kind": "List", "items": pods}
    made = documents(managed("create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(listed)))

    groups = {
        pod["metadata"]["name"]: (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "") for pod in made
    }
    assert groups == {pod["metadata"]["name"]: leaf_of(facts_of(pod)) for pod in pods}
    assert len(set(groups.values())) > 20
    assert {pod["spec"]["schedulerName"] for pod in made} == {"muster"}


def test_a_job_that_does_not_mention_us_is_a_gang_in_a_managed_namespace(
    managed: Kubectl, without_job_groups: RealCluster, tmp_path: Path
) -> None:
    managed.create(large_node("n0"))
    account = without_job_groups.as_service_account("muster-system", "muster")
    with scheduler(account, tmp_path / "muster.log", "--scheduler-name", "muster") as muster:
        managed("create", "-n", "m", "-f", "-", input=json.dumps(an_indexed_job("train", 3)))
        eventually(lambda: bound(managed, "-n", "m") == 3, else_=muster.said)
        (group,) = items(managed, "podgroups", "-n", "m")
        assert group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 3
        assert group["metadata"]["labels"]["scheduling.muster.dev/owner-name"] == "train"

        managed("delete", "job", "train", "-n", "m", "--cascade=foreground", "--wait=false")
        managed("delete", "pods", "-n", "m", "--all", "--grace-period=0", "--force")
        eventually(lambda: not items(managed, "podgroups", "-n", "m"), else_=muster.said)


def test_with_custom_resources_nothing_is_written_on_pods(kube: Path, with_crds: RealCluster, tmp_path: Path) -> None:
    kubectl = Kubectl(kube, with_crds.kubeconfig)
    install(with_crds)
    kubectl.create(large_node("n0"))
    account = with_crds.as_service_account("muster-system", "muster")
    with scheduler(account, tmp_path / "muster.log", "--scheduler-name", "muster") as muster:
        kubectl.create(an_indexed_job("train", 3, schedulerName="muster"))
        eventually(lambda: bound(kubectl) == 3, else_=muster.said)
        (group,) = items(kubectl, "podgroups.scheduling.muster.dev")
        assert group["spec"]["schedulingPolicy"]["gang"]["minCount"] == 3
        for pod in items(kubectl, "pods"):
            assert "schedulingGroup" not in pod["spec"]
            assert POD_GROUP_LABEL not in pod["metadata"]["labels"]


def test_without_the_right_to_make_groups_pods_do_not_wait_for_them(
    kube: Path, stock: RealCluster, with_crds: RealCluster, tmp_path: Path
) -> None:
    kubectl = Kubectl(kube, with_crds.kubeconfig)
    kubectl("delete", "clusterrole,clusterrolebinding", "muster-workloads", "--ignore-not-found")
    kubectl("delete", "jobs", "--all", "--cascade=background")
    account = stock.as_service_account("muster-system", "muster")
    with scheduler(account, tmp_path / "muster.log", "--scheduler-name", "muster") as muster:
        muster.wait_for("No groups are made for workloads")
        kubectl.create(an_indexed_job("alone", 2, schedulerName="muster"))
        eventually(lambda: bound(kubectl, "-l", "job-name=alone") == 2, else_=muster.said)
