"""The scenarios with Muster as the scheduler of a real API server: native groups, and custom resources."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from e2e.kube.cluster import RealCluster

from muster.client.http import HTTPClient
from muster.client.kubeconfig import load
from muster.engine.cluster_snapshot import take_snapshot
from tests.e2e.processes import scheduler
from tests.scenarios.runner import CRDS, NATIVE, ScenarioRun, read, scenario_files, scenario_id

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def run_all(kubeconfig: Path, place: str) -> None:
    """Every scenario of a place, one after the other; all that fail are named."""

    async def run() -> list[str]:
        failed: list[str] = []
        async with HTTPClient(load(kubeconfig, None)) as client:
            for number, file in enumerate(scenario_files(place)):
                try:
                    await ScenarioRun(client, place, f"scenario-{number}", "muster", 60.0).run(read(file))
                except AssertionError as error:
                    failed.append(f"{scenario_id(file)}: {error}")
        return failed

    assert asyncio.run(run()) == []


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
    with scheduler(native.kubeconfig, tmp_path / "muster.log", "--scheduler-name", "muster"):
        run_all(native.kubeconfig, NATIVE)


def test_with_custom_resources(with_crds: RealCluster, tmp_path: Path) -> None:
    with scheduler(with_crds.kubeconfig, tmp_path / "muster.log", "--scheduler-name", "muster"):
        run_all(with_crds.kubeconfig, CRDS)
