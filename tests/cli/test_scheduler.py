"""`muster scheduler` as a process, and what it says about bad input."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from muster.api.resources import LEASES, NODES, PODS
from muster.cli import exits
from muster.cli.main import run
from muster.engine.engine import Engine
from muster.plane.options import Options
from muster.plane.plane import Plane
from muster.testing import a_node, a_pod
from tests.engine.conftest import eventually

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture(autouse=True)
def restored_logs() -> Iterator[None]:
    """The command sets up logging for its process; here that is the tests' own."""
    logger = logging.getLogger("muster")
    before = (logger.handlers, logger.level, logger.propagate)
    yield
    logger.handlers, logger.level, logger.propagate = before


def spare_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@asynccontextmanager
async def a_plane(kubeconfig: Path) -> AsyncIterator[Plane]:
    options = Options(controllers=False, scheduler=False, kubeconfig=kubeconfig, freeze=False)
    async with Plane(options) as plane:
        yield plane


async def muster(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "muster.cli.main",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def page(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as answer:
        return answer.status, await answer.text()


@pytest.mark.slow
async def test_the_process_schedules_serves_its_pages_and_stops_cleanly(tmp_path: Path):
    kubeconfig, log, port = tmp_path / "kubeconfig", tmp_path / "decisions.jsonl", spare_port()
    async with a_plane(kubeconfig) as plane:
        await plane.client.create(NODES, a_node("n1"))
        await plane.client.create(PODS, a_pod("p", schedulerName="muster"))
        process = await muster(
            "scheduler",
            f"--kubeconfig={kubeconfig}",
            "--secure-port=0",
            f"--metrics-bind-address=127.0.0.1:{port}",
            f"--decision-log={log}",
            "-v=4",
        )
        try:

            async def bound() -> bool:
                return bool((await plane.client.get(PODS, "p", "default"))["spec"].get("nodeName"))

            await eventually(bound, 20)
            assert await page(f"http://127.0.0.1:{port}/readyz") == (200, "ok")
            assert "[+]informer-sync ok" in (await page(f"http://127.0.0.1:{port}/readyz?verbose"))[1]
            assert (await page(f"http://127.0.0.1:{port}/livez/ping"))[0] == 200
            metrics = (await page(f"http://127.0.0.1:{port}/metrics"))[1]
            assert 'scheduler_schedule_attempts_total{profile="muster",result="scheduled"} 1.0' in metrics
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = await asyncio.wait_for(process.communicate(), 20)
        lease = await plane.client.get(LEASES, "muster", "kube-system")

    assert process.returncode == 0, errors.decode()
    assert b'"Became leader"' in errors
    assert b'groupAPI="native (PodGroup scheduling.k8s.io/v1beta1' in errors
    assert lease["spec"].get("holderIdentity", "") == "", "the lease was given back"
    replayed = await muster("replay", str(log))
    said, _ = await replayed.communicate()
    assert replayed.returncode == 0
    assert said.startswith(b"The same decisions")


@pytest.mark.slow
async def test_a_server_that_is_down_is_waited_for_and_readyz_says_so(tmp_path: Path):
    kubeconfig, port = tmp_path / "kubeconfig", spare_port()
    async with a_plane(kubeconfig):
        pass
    process = await muster(
        "scheduler",
        f"--kubeconfig={kubeconfig}",
        "--secure-port=0",
        f"--metrics-bind-address=127.0.0.1:{port}",
        "--logging-format=json",
    )
    try:

        async def answers() -> bool:
            try:
                status, text = await page(f"http://127.0.0.1:{port}/readyz")
            except aiohttp.ClientError:
                return False
            return status == 500 and "has not been reached" in text

        await eventually(answers, 20)
        assert (await page(f"http://127.0.0.1:{port}/livez"))[0] == 200
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 0
    assert b'"msg":"The API server cannot be reached, trying again"' in errors


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("profiles: [", "not YAML"),
        ("- 1\n", "expected one KubeSchedulerConfiguration"),
        ("apiVersion: v1\nkind: Pod\n", "expected apiVersion kubescheduler.config.k8s.io/v1"),
        (HEAD + "extenders: [{urlPrefix: http://x}]\n", "extenders are not supported"),
        (HEAD + "profiles: [{plugins: {filter: {enabled: [{name: Nonsense}]}}}]\n", "Nonsense"),
        (HEAD + "leaderElection: {leaseDuration: 5s}\n", "leaseDuration must be greater than renewDeadline"),
        (HEAD + "leaderElection: {leaseDuration: soon}\n", "'soon' is no duration"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_explained(
    tmp_path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
):
    config = tmp_path / "config.yaml"
    config.write_text(text)

    code = run(["scheduler", a_kubeconfig(tmp_path), f"--config={config}", "--secure-port=0"])

    said = capsys.readouterr().err
    assert code == exits.BAD_INPUT
    assert words in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kubeconfig=/nowhere/at/all"], "/nowhere/at/all"),
        (["--feature-gates=Nonsense=true"], "Nonsense"),
        (["--config=/nowhere/config.yaml"], "/nowhere/config.yaml"),
    ],
)
def test_bad_arguments_are_explained(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]):
    assert run(["scheduler", "--secure-port=0", *arguments]) == exits.BAD_INPUT
    assert words in capsys.readouterr().err


def a_kubeconfig(directory: Path) -> str:
    path = directory / "kubeconfig"
    path.write_text(
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
    )
    return f"--kubeconfig={path}"


@pytest.mark.parametrize("error", [ValueError("no such thing"), OSError("the disk is gone")])
def test_an_error_of_the_run_is_not_taken_for_bad_input(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    async def fails(self: Engine) -> None:
        raise error

    monkeypatch.setattr(Engine, "run", fails)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert run(["scheduler", a_kubeconfig(tmp_path), "--secure-port=0"]) == exits.UNEXPECTED
    assert f"something unexpected happened: {type(error).__name__}: {error}" in capsys.readouterr().err
    (details,) = tmp_path.glob("muster-error-*.txt")
    assert "in fails" in details.read_text(), "the traceback is kept"


def test_a_decision_log_that_cannot_be_written_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = [a_kubeconfig(tmp_path), "--secure-port=0", f"--decision-log={tmp_path}/nowhere/log"]

    assert run(["scheduler", *arguments]) == exits.BAD_INPUT
    assert "nowhere/log" in capsys.readouterr().err


def test_an_address_in_use_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        assert (
            run(["scheduler", a_kubeconfig(tmp_path), "--secure-port=0", f"--metrics-bind-address={address}"])
            == exits.BAD_INPUT
        )
    assert "address already in use" in capsys.readouterr().err


def test_a_certificate_that_cannot_be_read_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    cert = tmp_path / "cert.pem"
    cert.write_text("no certificate")
    arguments = [a_kubeconfig(tmp_path), f"--secure-port={spare_port()}", f"--tls-cert-file={cert}"]

    assert run(["scheduler", *arguments]) == exits.BAD_INPUT
    assert "Traceback" not in capsys.readouterr().err
