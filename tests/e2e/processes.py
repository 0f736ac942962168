"""Muster as processes beside a real cluster: started, waited for, and never left behind."""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

MUSTER = [sys.executable, "-u", "-c", "from muster.cli.main import main; main()"]
PATIENCE = 60.0


class Muster:
    """One running `muster …` and the file that takes its output."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen([*MUSTER, *arguments], stdout=output, stderr=output)

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for(self, text: str, seconds: float = PATIENCE) -> None:
        eventually(lambda: self._has_said(text), seconds, lambda: f"{text!r} in its log:\n{self.said()[-3000:]}")

    def _has_said(self, text: str) -> bool:
        found = text in self.said()
        assert found or self.process.poll() is None, f"muster ended with {self.process.returncode}:\n{self.said()}"
        return found

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def scheduler(kubeconfig: Path, log: Path, *flags: str, until: str = '"Scheduling"') -> Iterator[Muster]:
    """`muster scheduler` that serves the default name; ready when the block begins."""
    served = (
        []
        if any(flag.startswith(("--scheduler-name", "--config")) for flag in flags)
        else ["default-scheduler", "muster"]
    )
    names = [part for name in served for part in ("--scheduler-name", name)]
    election = [] if any(flag.startswith("--leader-elect") for flag in flags) else ["--leader-elect=false"]
    arguments = ["--kubeconfig", str(kubeconfig), "--secure-port", "0", *names, *election, *flags]
    running = Muster(log, "scheduler", *arguments)
    try:
        if until:
            running.wait_for(until)
        yield running
    finally:
        running.stop()


@contextmanager
def up(log: Path, *flags: str) -> Iterator[Path]:
    """`muster up` with nothing in it; gives its kubeconfig."""
    running = Muster(log, "up", "--port", "0", "--nodes", "0", "--memory", *flags)
    try:
        running.wait_for("export KUBECONFIG=")
        found = re.search(r"export KUBECONFIG=(\S+)", running.said())
        assert found is not None
        yield Path(found[1])
    finally:
        running.stop()


class Kubectl:
    """kubectl with one kubeconfig."""

    def __init__(self, kube: Path, kubeconfig: Path) -> None:
        self._command = [kube / "kubectl", "--kubeconfig", kubeconfig]

    def __call__(self, *arguments: str, input: str | None = None, refused: bool = False) -> str:
        done = subprocess.run([*self._command, *arguments], input=input, capture_output=True, text=True, check=False)
        assert (done.returncode != 0) == refused, done.stdout + done.stderr
        return done.stderr if refused else done.stdout

    def create(self, *objects: dict[str, Any]) -> None:
        self("create", "-f", "-", input=yaml.safe_dump_all(objects))


def eventually(holds: Callable[[], Any], seconds: float = PATIENCE, else_: Callable[[], str] | str = "it") -> Any:
    """What the function gives, once that is true of anything."""
    deadline = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {else_() if callable(else_) else else_}")
        time.sleep(0.1)


def credentials(kubeconfig: Path) -> dict[str, Any]:
    """The cluster and the user of a kubeconfig with one of each."""
    config = yaml.safe_load(kubeconfig.read_text())
    return {**config["clusters"][0]["cluster"], **config["users"][0]["user"]}
