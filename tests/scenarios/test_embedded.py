"""The scenarios on Muster's own server, in one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.api import gates
from muster.plane.options import Options
from muster.plane.plane import Plane
from tests.scenarios.runner import EMBEDDED, ScenarioRun, read, scenario_files, scenario_id

SCENARIOS = [pytest.param(read(file), id=scenario_id(file)) for file in scenario_files(EMBEDDED)]


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_scenario(scenario: dict[str, Any], tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(configuration(scenario.get("settings") or {})))
    chosen = gates.parse(scenario.get("gates", ""))[0]
    managers = tuple(scenario.get("managers") or ())
    options = Options(https=False, scheduler_config=config, gates=chosen, freeze=False, simulated_managers=managers)
    async with Plane(options) as plane:
        await ScenarioRun(plane.client, EMBEDDED, "scenario").run(scenario)


def configuration(settings: dict[str, Any]) -> dict[str, Any]:
    """The scheduler's configuration with the settings of a scenario."""
    profile = {"pluginConfig": [{"name": "Muster", "args": settings}]} if settings else {}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
