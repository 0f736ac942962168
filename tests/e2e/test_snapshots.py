"""Snapshots in the middle of conformance scenarios: offline they give the verdict that the live scheduler wrote."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from e2e.kube.cluster import RealCluster

from muster.cli.main import run
from muster.client.http import HTTPClient
from muster.client.kubeconfig import load
from muster.engine.cluster_snapshot import take_snapshot
from muster.scheduler.explain.explain import explain, find
from muster.scheduler.runtime.config import default_config
from muster.scheduler.simulation.snapshot import Snapshot, decode, encode, scheduler_of
from muster.testing.cluster import Cluster
from tests.e2e.objects import CRD, gang_manifest, large_node, members
from tests.e2e.processes import Kubectl, scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

FOLDERS = ("gang", "composite", "topology")
# What the live scheduler writes, and what an explanation calls it.
SAME = {"Unschedulable": {"Infeasible", "WaitingForChildren"}, "PlacementNotGuaranteed": {"Undecided", "Infeasible"}}
WAITS = ("WaitingForMembers", "WaitingForChildren", "WaitingForParent", "SchedulingGated", "Invalid", "SchedulerError")
FEWEST = 20
REF = {"workloadName": "w", "templateName": "t"}


def test_snapshots_of_conformance_scenarios_reproduce_the_verdict(conformance: Path) -> None:
    with Cluster(https=True, controllers=True, scheduler=True) as cluster:
        assert cluster.kubeconfig is not None
        files = [file for folder in FOLDERS for file in sorted((conformance / "scenarios" / folder).glob("*.yaml"))]
        command = [sys.executable, conformance / "run_conformance.py", "--kubeconfig", cluster.kubeconfig, *files]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as runner:
            snapshots = asyncio.run(_collect(cluster.kubeconfig, runner))
            assert runner.stdout is not None
            assert runner.wait() == 0, runner.stdout.read()
    every = [(said, verdict) for snapshot in snapshots for said, verdict in _verdicts(snapshot)]
    # A group that fits by now is in its backoff: what it says is older than what the snapshot shows.
    compared = [(said, verdict) for said, verdict in every if verdict != "Placed"]
    assert len(every) - len(compared) <= len(every) // 4
    wrong = [(said, verdict) for said, verdict in compared if verdict not in SAME.get(said, {said})]
    assert len(compared) >= FEWEST, "the scenarios should show groups that wait"
    assert not wrong


async def _collect(kubeconfig: Path, runner: subprocess.Popen[str]) -> list[Snapshot]:
    """Every state in which the cluster rested for a moment: the same objects twice in a row."""
    found: dict[bytes, Snapshot] = {}
    async with HTTPClient(load(kubeconfig, None)) as client:
        before = b""
        while runner.poll() is None:
            snapshot = await take_snapshot(client)
            now = encode(snapshot)
            if now == before:
                found[now] = decode(now)
            before = now
            await asyncio.sleep(0.25)
    return list(found.values())


def _verdicts(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """For each group that says it waits: what it says, and what is found out from the snapshot alone."""
    for kind in ("PodGroup", "CompositePodGroup"):
        for obj in snapshot.objects.get(kind, ()):
            conditions = obj.status.conditions or ()
            said = next((c for c in conditions if c.type.endswith("InitiallyScheduled") and c.status == "False"), None)
            if said is None or (said.reason not in SAME and said.reason not in WAITS):
                continue
            scheduler = scheduler_of(snapshot, default_config(*sorted({*snapshot.schedulers, "default-scheduler"})))
            target = find(scheduler, kind, obj.metadata.namespace, obj.metadata.name)
            if target is not None:
                yield said.reason, explain(scheduler, target, lambda sources: ()).verdict


def test_groups_that_are_custom_resources_are_explained(
    kube: Path, with_crds: RealCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    group = {
        "apiVersion": "scheduling.muster.dev/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "g-0", "namespace": "default", "labels": {"scheduling.muster.dev/pod-group": "g"}},
        "spec": {"schedulerName": "muster", "containers": [{"name": "c", "image": "i"}]},
    }
    kubectl = Kubectl(kube, with_crds.kubeconfig)
    kubectl("apply", "-f", "-", input=yaml.safe_dump_all([group, pod]))
    assert run(["explain", "pod/g-0", "--kubeconfig", str(with_crds.kubeconfig)]) == 0
    assert "podgroup g waits: 1 of 2 members exist" in capsys.readouterr().out


def test_the_gates_of_the_scheduler_are_known_to_those_who_ask(
    kube: Path, native: RealCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = gang_manifest("child", 2, workloadRef=REF, parentCompositePodGroupName="nowhere")
    Kubectl(kube, native.kubeconfig).create(group, *members("child", 2, scheduler="nobody"))
    asked = ["explain", "podgroup/child", "--kubeconfig", str(native.kubeconfig)]
    assert run(asked) == 0
    assert "parent nowhere does not exist" in capsys.readouterr().out
    flags = ("--leader-elect=true", "--feature-gates", "CompositePodGroup=false", "--scheduler-name", "muster")
    with scheduler(native.kubeconfig, tmp_path / "muster.log", *flags):
        assert run(asked) == 0
    assert "parent nowhere does not exist" not in capsys.readouterr().out
    with scheduler(native.kubeconfig, tmp_path / "muster.log", *flags[:1], *flags[3:]):
        assert run(asked) == 0
    assert "parent nowhere does not exist" in capsys.readouterr().out


def test_manifests_of_custom_resources_are_tried_on_their_cluster(
    kube: Path, with_crds: RealCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Kubectl(kube, with_crds.kubeconfig).create(large_node("room"))
    file = tmp_path / "gang.yaml"
    file.write_text(yaml.safe_dump_all([gang_manifest("tried", 2, api=CRD), *members("tried", 2, by_label=True)]))
    assert run(["simulate", "-f", str(file), "--kubeconfig", str(with_crds.kubeconfig)]) == 0
    assert "It fits: 2 of 2 pods would be bound" in capsys.readouterr().out
