"""What is released: the wheel, the source archive, and the list of what they depend on."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from muster import __version__

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


def test_every_locked_package_is_listed_with_its_licence() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    packages = {package["name"]: package for package in lock["package"]}
    needed: set[str] = set()
    pending = ["muster-scheduler"]
    while pending:
        for dependency in packages[pending.pop()].get("dependencies", ()):
            # What only other systems or interpreters install is not shipped.
            if dependency["name"] not in needed and "win32" not in dependency.get("marker", ""):
                needed.add(dependency["name"])
                pending.append(dependency["name"])
    page = (ROOT / "THIRD_PARTY.md").read_text().partition("## Python packages")[2]
    assert set(re.findall(r"^\| ([a-z0-9-]+) \| [^|]+ \|$", page, re.MULTILINE)) - {"package"} == needed


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source archive, built from the checkout."""
    directory = tmp_path_factory.mktemp("dist")
    subprocess.run([UV, "build", "--quiet", "--out-dir", directory, ROOT], check=True)
    return directory


@pytest.mark.slow
def test_the_wheel_has_the_program_and_the_examples_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "muster/_examples/training-gang.yaml" in names
    assert "muster/dashboard/static/index.html" in names
    assert {name.split("/")[0] for name in names} == {"muster", f"muster_scheduler-{__version__}.dist-info"}


@pytest.mark.slow
def test_the_source_archive_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path / "again", source], check=True)
    (first,), (second,) = built.glob("*.whl"), (tmp_path / "again").glob("*.whl")
    assert sorted(zipfile.ZipFile(first).namelist()) == sorted(zipfile.ZipFile(second).namelist())


@pytest.mark.slow
def test_an_installed_wheel_runs(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    subprocess.run([UV, "pip", "install", "--quiet", "--python", python, wheel], check=True)
    ran = subprocess.run(
        [python.with_name("muster"), "demo"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "rack-" in ran.stdout
