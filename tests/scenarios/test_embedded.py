"""The scenarios on Muster's own server, in one process."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api import gates
from muster.plane.options import Options
from muster.plane.plane import Plane
from tests.scenarios.runner import EMBEDDED, ScenarioRun, read, scenario_files, scenario_id

SCENARIOS = [pytest.param(read(file), id=scenario_id(file)) for file in scenario_files(EMBEDDED)]


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_scenario(scenario: dict[str, Any]) -> None:
    chosen = gates.parse(scenario.get("gates", ""))[0]
    async with Plane(Options(https=False, gates=chosen, freeze=False)) as plane:
        await ScenarioRun(plane.client, EMBEDDED, "scenario").run(scenario)
