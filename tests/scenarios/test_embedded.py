"""The scenarios on Muster's own server, in one process."""

from __future__ import annotations

from typing import Any

import pytest

from muster.testing import api_server
from tests.scenarios.runner import EMBEDDED, ScenarioRun, read, scenario_files, scenario_id

SCENARIOS = [pytest.param(read(file), id=scenario_id(file)) for file in scenario_files(EMBEDDED)]


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_scenario(scenario: dict[str, Any]) -> None:
    async with api_server(controllers=True, scheduler=True) as plane:
        await ScenarioRun(plane.client, EMBEDDED, "scenario").run(scenario)
