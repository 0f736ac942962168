"""Two schedulers in two processes race for the same nodes, whose kubelets admit as kubelets do."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from muster.client import kubeconfig as files
from muster.client.http import HTTPClient
from tests.e2e.processes import Muster, scheduler
from tests.e2e.races import NODES, Tally, race

pytestmark = pytest.mark.slow

ROUNDS = 50
CPU = "8"


def raced(kubeconfig: Path, *names: str, rounds: int = ROUNDS) -> Tally:
    async def run() -> Tally:
        async with HTTPClient(files.load(kubeconfig)) as client:
            return await race(client, (names[0], names[1]), rounds, CPU)

    return asyncio.run(run())


def test_two_musters_start_one_gang_a_round_and_no_kubelet_rejects_a_pod(tmp_path: Path):
    log = tmp_path / "up.log"
    flags = ("--nodes", str(NODES), "--node-cpu", CPU)
    running = Muster(log, "up", "--port", "0", "--memory", *flags)
    try:
        running.wait_for("export KUBECONFIG=")
        found = re.search(r"export KUBECONFIG=(\S+)", running.said())
        assert found is not None
        kubeconfig = Path(found[1])
        with scheduler(kubeconfig, tmp_path / "second.log", "--scheduler-name=second"):
            tally = raced(kubeconfig, "muster", "second")
    finally:
        running.stop()

    assert tally.half == []
    assert tally.rejected == []
    assert sum(tally.whole.values()) == ROUNDS
    assert set(tally.whole) == {"muster", "second"}, "both make progress"
