"""The commands on a page: what stands behind `$ ` in its console blocks, run in one shell from top to bottom.

A block marked `no-run` is for places that a test does not have. `muster up` runs beside the others until the page ends;
a page that does not start it takes a cluster for granted, and has one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CLUSTER = "muster up --memory --port 0 --nodes 4 --kubeconfig ./kubeconfig"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Failed(NamedTuple):
    """A command that did not end well, and what it printed."""

    command: str
    output: str


def pages() -> list[Path]:
    """The pages of the site that have commands to run."""
    return sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent != ROOT / "docs" and commands(page))


def commands(page: Path) -> list[str]:
    """The commands of a page in order; lines that end in a backslash go on."""
    text = "".join(block.replace("\\\n", " ") for block in _BLOCK.findall(page.read_text()))
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def python_blocks(page: Path) -> list[str]:
    return _PYTHON.findall(page.read_text())


def run(page: Path, directory: Path) -> Failed | None:
    """Run a page's commands in a directory that has the examples and what is deployed; the first that fails, if any."""
    for name in ("examples", "deploy"):
        shutil.copytree(ROOT / name, directory / name)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(directory)}
    env["KUBECONFIG"] = str(directory / "kubeconfig")
    listed = commands(page)
    first = next((each for each in listed if each.startswith("muster up ")), CLUSTER)
    with (directory / "up.log").open("wb") as log:
        up = subprocess.Popen(first.split(), cwd=directory, env=env, stdout=log, stderr=log)
        try:
            _await(directory / "kubeconfig", up)
            for command in listed:
                if not command.startswith(("muster up ", "export KUBECONFIG=")):
                    done = _shell(command, directory, env)
                    if done.returncode != 0:
                        return Failed(command, done.stdout + done.stderr)
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(30)
    return None


def _shell(command: str, directory: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    words = ["bash", "-euo", "pipefail", "-c", command]
    return subprocess.run(words, cwd=directory, env=env, capture_output=True, text=True, timeout=90, check=False)


def _await(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        assert process.poll() is None, "muster up ended"
        time.sleep(0.05)
