"""`muster up` as a process: what it prints, keeps, refuses, and how it ends."""

import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muster.api.resources import NODES, PODS
from muster.client.http import HTTPClient
from muster.client.kubeconfig import load
from muster.testing import a_pod

COMMAND = [sys.executable, "-u", "-c", "from muster.cli.main import main; main()"]


class Up:
    """A running `muster up`, and what it has said so far."""

    def __init__(self, process: "subprocess.Popen[str]", said: str) -> None:
        self.process = process
        self.said = said

    @property
    def kubeconfig(self) -> Path:
        found = re.search(r"export KUBECONFIG=(\S+)", self.said)
        assert found is not None, self.said
        return Path(found[1])


@contextmanager
def up(*flags: str, until: str = "Ctrl-C") -> Iterator[Up]:
    process = subprocess.Popen(
        [*COMMAND, "up", "--port", "0", "--nodes", "0", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    try:
        for line in process.stdout:
            said += line
            if until in line:
                break
        yield Up(process, said)
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(20)
        process.stdout.close()


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


LEAN = ("--no-scheduler", "--no-controllers")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One plane for all tests that do not end it: two nodes, data in the directory of its kubeconfig."""
    home = tmp_path_factory.mktemp("up")
    with up("--nodes", "2", "--data", str(home / "data"), "--kubeconfig", str(home / "k")) as plane:
        assert plane.kubeconfig == home / "k"
        yield plane


@pytest.mark.slow
@pytest.mark.parametrize("gate", ["GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"])
def test_with_a_gate_off_it_gets_ready_and_stops_at_the_first_signal(gate: str) -> None:
    with up("--memory", "--nodes", "1", "--feature-gates", f"{gate}=false") as running:
        assert "Muster is up at" in running.said
        assert "feature gate CompositePodGroup is disabled" in running.said or gate == "CompositePodGroup"
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(20) == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_what_to_do_next_and_stops_cleanly(number: int) -> None:
    with up("--memory", *LEAN) as running:
        assert "https://127.0.0.1:" in running.said
        assert len([line for line in running.said.splitlines() if line.startswith("  ")]) == 3
        kubeconfig = running.kubeconfig
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        running.process.send_signal(number)
        assert running.process.wait(10) == 0
        assert running.process.stdout is not None
        assert running.process.stdout.read().strip() == "Stopped."
    assert not kubeconfig.exists()


@pytest.mark.slow
async def test_what_is_stored_is_there_after_a_restart(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"), *LEAN)
    with up(*data) as first:
        async with HTTPClient(load(first.kubeconfig)) as client:
            uid = (await client.create(PODS, a_pod("p")))["metadata"]["uid"]
    with up(*data) as second:
        async with HTTPClient(load(second.kubeconfig)) as client:
            assert (await client.get(PODS, "p", "default"))["metadata"]["uid"] == uid


def test_a_second_start_on_the_same_directory_is_refused(running: Up) -> None:
    data = str(running.kubeconfig.parent / "data")
    refused = run("up", "--port", "0", "--nodes", "0", "--data", data, *LEAN)
    assert refused.returncode == 69
    assert data in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = run("up", "--memory", "--nodes", "0", "--port", str(port), *LEAN)
    assert refused.returncode == 69
    assert f"127.0.0.1:{port} is already in use" in refused.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--memory", "--data", "x"), "cannot be combined"),
        (("--memory", "--feature-gates", "NoSuchGate=true"), "--feature-gates"),
        (("--nodes", "-1"), "--nodes"),
    ],
)
def test_flags_that_make_no_sense_are_refused(flags: tuple[str, ...], words: str) -> None:
    refused = run("up", *flags)
    assert refused.returncode == 64
    assert words in refused.stderr


async def test_nodes_can_be_failed_and_recovered(running: Up) -> None:
    kubeconfig = str(running.kubeconfig)
    said = run("node", "fail", "node-1", "--kubeconfig", kubeconfig)
    assert said.stdout == "node/node-1 failed\n", said.stderr
    async with HTTPClient(load(running.kubeconfig)) as client:
        node = await client.get(NODES, "node-1")
        assert node["metadata"]["annotations"]["muster.dev/failed"] == "true"
        assert run("node", "recover", "node-1", "--kubeconfig", kubeconfig).returncode == 0
        assert not (await client.get(NODES, "node-1"))["metadata"].get("annotations", {}).get("muster.dev/failed")
    missing = run("node", "fail", "node-9", "--kubeconfig", kubeconfig)
    assert (missing.returncode, missing.stderr) == (1, 'Error: nodes "node-9" not found\n')


@pytest.mark.slow
def test_it_is_up_soon() -> None:
    # Processor time, because the wall clock depends on who else is using the machine.
    taken = []
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with up("--memory", "--nodes", "3"):
            pass
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) < 4.0  # about one second; the rest is for a busy machine
