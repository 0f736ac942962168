"""The site: its pages are all in its navigation, and what they say to type works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.site.command_blocks import ROOT, commands, pages, python_blocks, run

NAV = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]


def linked(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for value in nav.values():
            yield from linked(value)
    else:
        for each in nav:
            yield from linked(each)


def test_every_page_is_in_the_navigation_once() -> None:
    there = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    named = list(linked(NAV))
    assert set(named) == there
    assert len(named) == len(set(named))


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_internal_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).resolve().exists(), target


def test_pages_with_commands_are_found() -> None:
    assert "start/laptop.md" in {str(page.relative_to(ROOT / "docs")) for page in pages()}
    assert any(command.startswith("muster explain") for command in commands(ROOT / "docs" / "start" / "laptop.md"))


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_the_commands_of_a_page_work(page: Path, tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl")
    failed = run(page, tmp_path)
    assert failed is None, f"{failed.command}\n{failed.output}"


@pytest.mark.slow
def test_the_tests_on_the_page_pass(tmp_path: Path) -> None:
    (block,) = python_blocks(ROOT / "docs" / "how-to" / "test-with-pytest.md")
    (tmp_path / "test_page.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_controller_on_the_page_works(tmp_path: Path) -> None:
    (block,) = python_blocks(ROOT / "docs" / "how-to" / "write-a-controller.md")
    test = "\n".join(
        (
            block,
            "def test_it(muster_cluster):",
            "    start(muster_cluster.client, 'g', 2)",
            "    assert len(list(muster_cluster.client.list(PODS, 'default'))) == 2",
        )
    )
    (tmp_path / "test_page.py").write_text(test)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", tmp_path],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
