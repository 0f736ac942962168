"""Workloads of the real managers become gangs by themselves: whole or not at all, in their topology, nothing left."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from e2e.kube.cluster import DEFAULT_CONTROLLERS, RealCluster

from tests.e2e.conftest import StartManager
from tests.e2e.kubelets import Kubelets, racks
from tests.e2e.processes import Kubectl, eventually, scheduler, up
from tests.e2e.workload_objects import jobset, kueue_queue, leader_worker_set, queued, replicated_job, topology

pytestmark = [pytest.mark.e2e, pytest.mark.workloads, pytest.mark.timeout(1800)]

Obj = dict[str, Any]

RACK, BLOCK = "topology.muster.dev/rack", "topology.muster.dev/block"
TOPOLOGY = "scheduling.muster.dev/topology"
GROUPS = ("podgroups.scheduling.k8s.io", "compositepodgroups.scheduling.k8s.io", "workloads.scheduling.k8s.io")
SETTLED = 8.0


class Cluster:
    """What kubectl shows of the workloads of one server."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.kubectl = kubectl
        self.labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in self.items("nodes")}

    def items(self, kind: str, *arguments: str) -> list[Obj]:
        return json.loads(self.kubectl("get", kind, "-o", "json", *arguments))["items"]

    def pods(self, **labels: str) -> list[Obj]:
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return self.items("pods", "-l", selector)

    def of_jobset(self, name: str, **labels: str) -> list[Obj]:
        return self.pods(**{"jobset.sigs.k8s.io/jobset-name": name, **labels})

    def domains(self, pods: list[Obj], key: str) -> set[str]:
        return {self.labels[pod["spec"]["nodeName"]][key] for pod in pods}

    def leftovers(self) -> list[str]:
        found = [(kind, obj) for kind in ("pods", *GROUPS) for obj in self.items(kind)]
        return [f"{kind} {obj['metadata']['name']}" for kind, obj in found]


def running(pods: list[Obj]) -> list[Obj]:
    return [pod for pod in pods if pod["status"].get("phase") == "Running" and not going(pod)]


def bound(pods: list[Obj]) -> list[Obj]:
    return [pod for pod in pods if pod["spec"].get("nodeName") and not going(pod)]


def going(pod: Obj) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def workers(name: str, jobs: int, pods: int, cpu: str = "3", **pod: Any) -> Obj:
    """A JobSet of a driver and Jobs of workers, each Job in one rack, all in one block."""
    each = replicated_job("workers", jobs, pods, cpu, pod=pod)
    each["template"]["metadata"] = {"annotations": {TOPOLOGY: RACK}}
    driver = replicated_job("driver", 1, 1, "1", pod=pod)
    return jobset(name, driver, each, annotations={TOPOLOGY: BLOCK}, failurePolicy={"maxRestarts": 3})


SERVERS = ("muster up", "kube-apiserver")
CONTROLLERS = (*DEFAULT_CONTROLLERS, "job-controller", "statefulset-controller")


@pytest.fixture(params=SERVERS)
def cluster(request: pytest.FixtureRequest, kube: Path, tmp_path: Path) -> Iterator[tuple[Cluster, Path]]:
    """Two blocks of two racks of four nodes of four CPUs."""
    with ExitStack() as stack:
        if request.param == "muster up":
            flags = ("--nodes", "16", "--node-cpu", "4", "--nodes-per-rack", "4", "--racks-per-block", "2")
            kubeconfig = stack.enter_context(up(tmp_path / "muster.log", *flags))
            kubectl = Kubectl(kube, kubeconfig)
        else:
            real = stack.enter_context(RealCluster(kube, native=True))
            real.start_controller_manager(CONTROLLERS)
            kubeconfig, kubectl = real.kubeconfig, Kubectl(kube, real.kubeconfig)
            kubectl.create(*racks(16, 4, 2, "4"))
            stack.enter_context(Kubelets(kubectl))
            stack.enter_context(scheduler(kubeconfig, tmp_path / "scheduler.log"))
        eventually(lambda: len(json.loads(kubectl("get", "nodes", "-o", "json"))["items"]) == 16)
        yield Cluster(kubectl), kubeconfig


def in_place(cluster: Cluster, name: str, jobs: int, pods: int) -> bool:
    """Whether all of a JobSet runs, in one block, and each Job in one rack."""
    found = running(cluster.of_jobset(name))
    if len(found) != 1 + jobs * pods:
        return False
    assert len(cluster.domains(found, BLOCK)) == 1
    for index in range(jobs):
        job = [
            pod
            for pod in found
            if pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == f"{name}-workers-{index}"
        ]
        assert (len(job), len(cluster.domains(job, RACK))) == (pods, 1)
    return True


def test_a_jobset_lies_in_a_block_and_each_job_in_a_rack(
    cluster: tuple[Cluster, Path], managers: StartManager, tmp_path: Path
) -> None:
    seen, kubeconfig = cluster
    with managers("jobset", kubeconfig, tmp_path) as manager:
        seen.kubectl.create(workers("train", 2, 4))
        eventually(lambda: in_place(seen, "train", 2, 4))
        assert len(seen.items(GROUPS[0])) == 3, "a group for each Job"
        assert len(seen.items(GROUPS[1])) == 2, "one for the set, one for the workers"

        seen.kubectl.create(workers("large", 3, 4))  # three racks, and a block has two
        eventually(lambda: len(seen.of_jobset("large")) == 13)
        eventually(lambda: len(seen.items(GROUPS[0])) == 7)
        with pytest.raises(AssertionError, match="not within"):
            eventually(lambda: bound(seen.of_jobset("large")), SETTLED)

        seen.kubectl("delete", "jobset", "--all")
        eventually(lambda: not seen.leftovers(), else_=lambda: f"still there: {seen.leftovers()}")
        assert manager.errors() == []


def test_a_jobset_that_restarts_is_placed_as_a_whole_again(
    cluster: tuple[Cluster, Path], managers: StartManager, tmp_path: Path
) -> None:
    seen, kubeconfig = cluster
    with managers("jobset", kubeconfig, tmp_path) as manager:
        seen.kubectl.create(workers("train", 2, 4))
        eventually(lambda: in_place(seen, "train", 2, 4))
        before = {group["metadata"]["name"] for group in seen.items(GROUPS[0])}
        lost = seen.of_jobset("train")[3]["metadata"]["name"]
        seen.kubectl("patch", "pod", lost, "--subresource=status", "-p", '{"status":{"phase":"Failed"}}')
        attempt = {"jobset.sigs.k8s.io/restart-attempt": "1"}
        eventually(lambda: len(running(seen.of_jobset("train", **attempt))) == 9)
        assert in_place(seen, "train", 2, 4)
        eventually(lambda: not before & {group["metadata"]["name"] for group in seen.items(GROUPS[0])})
        seen.kubectl("delete", "jobset", "train")
        eventually(lambda: not seen.leftovers(), else_=lambda: f"still there: {seen.leftovers()}")
        assert manager.errors() == []


def test_a_jobset_is_preempted_as_a_whole(
    cluster: tuple[Cluster, Path], managers: StartManager, tmp_path: Path
) -> None:
    seen, kubeconfig = cluster
    seen.kubectl.create(a_priority_class("low", 10), a_priority_class("high", 1000))
    with managers("jobset", kubeconfig, tmp_path) as manager:
        for name in ("first", "second"):  # each fills a block
            low = workers(name, 2, 4, priorityClassName="low")
            low["metadata"]["annotations"]["scheduling.muster.dev/disruption"] = "all"
            seen.kubectl.create(low)
            eventually(lambda name=name: in_place(seen, name, 2, 4))
        seen.kubectl.create(workers("urgent", 2, 4, priorityClassName="high"))
        eventually(lambda: in_place(seen, "urgent", 2, 4))
        left = [len(bound(seen.of_jobset(name))) for name in ("first", "second")]
        assert sorted(left) == [0, 9], "one of them is gone as a whole, the other is untouched"
        seen.kubectl("delete", "jobset", "--all")
        eventually(lambda: not seen.leftovers(), else_=lambda: f"still there: {seen.leftovers()}")
        assert manager.errors() == []


def a_priority_class(name: str, value: int) -> Obj:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


@pytest.mark.parametrize("startup", ["LeaderCreated", "LeaderReady"])
def test_each_replica_of_a_leader_worker_set_lies_in_a_rack(
    cluster: tuple[Cluster, Path], managers: StartManager, tmp_path: Path, startup: str
) -> None:
    seen, kubeconfig = cluster
    with managers("lws", kubeconfig, tmp_path) as manager:
        serve = leader_worker_set("serve", 3, 4, "3", spec={"startupPolicy": startup})
        serve["metadata"]["annotations"] = {TOPOLOGY: RACK}
        seen.kubectl.create(serve)
        eventually(lambda: replicas_in_place(seen, "serve", 3, 4))
        seen.kubectl("scale", "lws", "serve", "--replicas=4")
        eventually(lambda: replicas_in_place(seen, "serve", 4, 4))
        seen.kubectl("delete", "lws", "serve")
        eventually(lambda: not seen.leftovers(), else_=lambda: f"still there: {seen.leftovers()}")
        assert manager.errors() == []


def replicas_in_place(cluster: Cluster, name: str, replicas: int, size: int) -> bool:
    key = "leaderworkerset.sigs.k8s.io/"
    found = running(cluster.pods(**{f"{key}name": name}))
    if len(found) != replicas * size:
        return False
    for index in range(replicas):
        replica = [pod for pod in found if pod["metadata"]["labels"][f"{key}group-index"] == str(index)]
        assert (len(replica), len(cluster.domains(replica, RACK))) == (size, 1)
    return True


@pytest.mark.parametrize("preemption", ["allowed", "never"])
def test_kueue_says_when_and_muster_says_where(
    cluster: tuple[Cluster, Path], managers: StartManager, tmp_path: Path, preemption: str
) -> None:
    seen, kubeconfig = cluster

    def waiting(name: str) -> Obj:
        made = queued(workers(name, 2, 4))
        made["metadata"]["annotations"]["scheduling.muster.dev/kueue-preemption"] = preemption
        return made

    with (
        managers("jobset", kubeconfig, tmp_path / "jobset") as sets,
        managers("kueue", kubeconfig, tmp_path / "kueue") as kueue,
    ):
        seen.kubectl.create(*kueue_queue("30"))  # one of them takes 25
        seen.kubectl.create(waiting("first"))
        eventually(lambda: in_place(seen, "first", 2, 4))
        seen.kubectl.create(waiting("second"))
        with pytest.raises(AssertionError, match="not within"):
            eventually(lambda: bound(seen.of_jobset("second")), SETTLED)
        seen.kubectl("delete", "jobset", "first")
        eventually(lambda: in_place(seen, "second", 2, 4))
        seen.kubectl("delete", "jobset", "second")
        eventually(lambda: not seen.leftovers(), else_=lambda: f"still there: {seen.leftovers()}")
        assert [*sets.errors(), *kueue.errors()] == []


def test_what_kueue_assigns_is_kept(cluster: tuple[Cluster, Path], managers: StartManager, tmp_path: Path) -> None:
    """Kueue chooses hosts of one rack for each Job, and Muster starts all of them there, together."""
    seen, kubeconfig = cluster
    with (
        managers("jobset", kubeconfig, tmp_path / "jobset") as sets,
        managers("kueue", kubeconfig, tmp_path / "kueue") as kueue,
    ):
        seen.kubectl.create(topology("racks", BLOCK, RACK, "kubernetes.io/hostname"))
        linux = {"kubernetes.io/os": "linux"}
        seen.kubectl.create(*kueue_queue("64", topologyName="racks", nodeLabels=linux))
        assigned = replicated_job("workers", 1, 4, "3")
        pod = assigned["template"]["spec"]["template"]
        pod["metadata"]["annotations"] = {
            **pod["metadata"]["annotations"],
            "kueue.x-k8s.io/podset-required-topology": RACK,
        }
        seen.kubectl.create(queued(jobset("train", assigned)))
        eventually(lambda: len(running(seen.of_jobset("train"))) == 4)
        found = running(seen.of_jobset("train"))
        assert len(seen.domains(found, RACK)) == 1
        hosts = {pod["spec"]["nodeName"]: pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] for pod in found}
        assert all(seen.labels[node]["kubernetes.io/hostname"] == host for node, host in hosts.items())
        seen.kubectl("delete", "jobset", "train")
        eventually(lambda: not seen.leftovers(), else_=lambda: f"still there: {seen.leftovers()}")
        assert [*sets.errors(), *kueue.errors()] == []
