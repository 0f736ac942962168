"""The scenarios with Muster as the scheduler of a real API server: native groups, and custom resources."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from e2e.kube.cluster import RealCluster

from muster.client.http import HTTPClient
from muster.client.kubeconfig import load
from muster.engine.cluster_snapshot import take_snapshot
from tests.e2e.processes import scheduler
from tests.scenarios.runner import CRDS, NATIVE, NATIVE_WITHOUT_JOBS, ScenarioRun, read, scenario_files, scenario_id

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def run_all(cluster: RealCluster, place: str, logs: Path) -> None:
    """Every scenario of a place, those with the same gates beside one scheduler; all that fail are named."""
    files = sorted(scenario_files(place), key=gates_of)
    failed: list[str] = []
    for gates, chosen in itertools.groupby(files, key=gates_of):
        flags = ("--scheduler-name", "muster", "--feature-gates", gates)
        with scheduler(cluster.kubeconfig, logs / "muster.log", *flags):
            failed += asyncio.run(run_some(cluster.kubeconfig, place, list(chosen)))
    assert failed == []


def gates_of(file: Path) -> str:
    return str(read(file).get("gates", ""))


async def run_some(kubeconfig: Path, place: str, files: list[Path]) -> list[str]:
    failed: list[str] = []
    async with HTTPClient(load(kubeconfig, None)) as client:
        for file in files:
            namespace = scenario_id(file).replace("/", "-")
            try:
                await ScenarioRun(client, place, namespace, "muster", 60.0).run(read(file))
            except AssertionError as error:
                failed.append(f"{scenario_id(file)}: {error}")
    return failed


def changeable(kubeconfig: Path) -> tuple[str, ...]:
    """The fields of groups that a snapshot of the cluster says may change."""

    async def ask() -> tuple[str, ...]:
        async with HTTPClient(load(kubeconfig, None)) as client:
            return (await take_snapshot(client)).changeable

    return asyncio.run(ask())


def test_what_a_server_lets_change_is_known(native: RealCluster, with_crds: RealCluster) -> None:
    assert changeable(native.kubeconfig) == ("minCount",)
    assert changeable(with_crds.kubeconfig) == ("minCount", "minGroupCount")


def test_on_a_server_with_native_groups(native: RealCluster, tmp_path: Path) -> None:
    run_all(native, NATIVE, tmp_path)


def test_where_the_job_controller_makes_no_groups(without_job_groups: RealCluster, tmp_path: Path) -> None:
    run_all(without_job_groups, NATIVE_WITHOUT_JOBS, tmp_path)


def test_with_custom_resources(with_crds: RealCluster, tmp_path: Path) -> None:
    run_all(with_crds, CRDS, tmp_path)
