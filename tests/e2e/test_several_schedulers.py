"""Two schedulers in two processes race for the same nodes, whose kubelets admit as kubelets do."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from muster.client import kubeconfig as files
from muster.client.http import HTTPClient
from tests.e2e.processes import Muster, scheduler, up
from tests.e2e.races import NODES, Tally, race
from tests.e2e.test_interop import component

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

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
    assert tally.whole == {"muster": ROUNDS, "second": ROUNDS}, "both make progress"


@pytest.mark.e2e
def test_muster_beside_kube_scheduler_starts_whole_gangs_and_both_make_progress(kube: Path, tmp_path: Path):
    flags = ("--no-scheduler", "--nodes", str(NODES), "--node-cpu", CPU)
    with (
        up(tmp_path / "up.log", *flags) as kubeconfig,
        component(kube, "kube-scheduler", kubeconfig, tmp_path),
        scheduler(kubeconfig, tmp_path / "muster.log", "--scheduler-name=muster"),
    ):
        tally = raced(kubeconfig, "muster", "default-scheduler")
    ours = [loss for loss in tally.losses if loss.pod.startswith("muster")]
    slowest = max(tally.round_trips)
    print(f"rounds {ROUNDS}, whole {dict(tally.whole)}, rejected {len(tally.rejected)}, of them Muster's {len(ours)}")
    print(f"seconds after the other's bind {[round(one.after, 3) for one in ours]}, slowest round trip {slowest:.3f}")

    # kube-scheduler takes no lease and does not look a second time: what it binds within a round trip before Muster's
    # binds, no look could have shown, and the kubelet decides. Nothing else may cost a gang a pod.
    assert [loss for loss in ours if loss.after > slowest] == [], "a second look could have prevented it"
    lost = {loss.pod.rpartition("-")[0] for loss in ours}
    assert {gang for gang in tally.half if gang.startswith("muster")} == lost, tally
    assert tally.whole["muster"] == ROUNDS - len(lost), tally
    assert tally.whole["default-scheduler"] > 0, "both make progress"
