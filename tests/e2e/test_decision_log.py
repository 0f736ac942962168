"""A recording survives what happens to the process: `kill -9` costs at most its last second."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from pathlib import Path

import pytest

from muster.api.resources import PODS
from muster.cli import exits
from muster.cli.main import run
from muster.client import kubeconfig as files
from muster.client.http import HTTPClient
from muster.testing import a_pod
from tests.e2e.processes import Muster

pytestmark = pytest.mark.slow


def started(tmp_path: Path, *flags: str) -> tuple[Muster, Path]:
    running = Muster(tmp_path / "up.log", "up", "--port", "0", "--nodes", "2", "--data", str(tmp_path / "data"), *flags)
    running.wait_for("export KUBECONFIG=")
    found = re.search(r"export KUBECONFIG=(\S+)", running.said())
    assert found is not None
    return running, Path(found[1])


def create(kubeconfig: Path, *names: str) -> None:
    async def make() -> None:
        async with HTTPClient(files.load(kubeconfig)) as client:
            for name in names:
                await client.create(PODS, a_pod(name), "default")

    asyncio.run(make())


def test_after_kill_9_the_recording_has_everything_but_the_last_second_and_replays(tmp_path: Path):
    running, kubeconfig = started(tmp_path)
    try:
        create(kubeconfig, *(f"p{number}" for number in range(20)))
        time.sleep(2.0)
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()
    finally:
        running.stop()

    log = tmp_path / "data" / "decisions.jsonl"
    assert log.read_bytes().count(b'"do":"bind"') == 20
    assert log.stat().st_mode & 0o777 == 0o600
    assert run(["replay", str(log)]) == exits.OK


def test_the_next_run_keeps_what_the_one_before_recorded(tmp_path: Path):
    for _ in range(2):
        running, _ = started(tmp_path)
        running.stop()

    log = tmp_path / "data" / "decisions.jsonl"
    assert (tmp_path / "data" / "decisions.jsonl.000001").exists()
    assert run(["replay", str(log)]) == exits.OK


def test_no_recording_is_made_when_none_is_wanted(tmp_path: Path):
    running, _ = started(tmp_path, "--no-decision-log")
    running.stop()
    assert not (tmp_path / "data" / "decisions.jsonl").exists()
