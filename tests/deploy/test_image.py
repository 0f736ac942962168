"""The image: which files reach its build, what it installs, and that it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from muster import __version__
from tests.deploy.image_build import ROOT, Image, build_stage, context


def test_nothing_but_what_the_build_needs_reaches_it() -> None:
    tops = {path.split("/")[0] for path in context()}
    assert tops == {"pyproject.toml", "uv.lock", "README.md", "LICENSE", "deploy", "examples", "src"}
    assert [path for path in context() if path.startswith("deploy/")] == ["deploy/image/uv.txt"]


def test_every_file_of_the_wheel_is_copied() -> None:
    copied = {source for word, rest in build_stage() if word == "COPY" for source in rest.split()[:-1]}
    assert {"pyproject.toml", "uv.lock", "README.md", "LICENSE", "examples", "src"} <= copied


def test_packages_are_installed_from_the_lock_and_compared_with_their_hashes() -> None:
    runs = [rest for word, rest in build_stage() if word == "RUN"]
    assert all("--require-hashes" in rest or "uv sync --frozen" in rest for rest in runs), runs
    version = next(line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("UV_VERSION"))
    assert (ROOT / "deploy" / "image" / "uv.txt").read_text().startswith(f"uv=={version.split()[-1]} \\")


@pytest.mark.slow
def test_the_image_has_what_it_needs_and_runs(tmp_path: Path) -> None:
    image = Image(tmp_path)
    image.build()
    assert __version__ in image.run("version").stdout
    assert "--leader-elect" in image.run("scheduler", "--help").stdout
    assert _size(image.prefix) < 250 * 2**20
    kubeconfig = tmp_path / "kubeconfig"
    command = [
        image.prefix / "bin" / "muster",
        "up",
        "--memory",
        "--port",
        "0",
        "--nodes",
        "2",
        "--kubeconfig",
        kubeconfig,
    ]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as up:
        try:
            assert _appears(kubeconfig, up)
            assert "node" in image.run("topology", "--kubeconfig", str(kubeconfig)).stdout
        finally:
            up.send_signal(signal.SIGINT)
        assert up.wait(30) == 0


def _appears(path: Path, process: subprocess.Popen[str]) -> bool:
    """Whether the file is there before the process ends."""
    while process.poll() is None:
        if path.exists():
            return True
        time.sleep(0.1)
    return False


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
