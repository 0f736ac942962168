"""A real Chromium on a dashboard: tabs that note every complaint, and the `muster` processes that serve the pages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "test-output" / "dashboard"
TOOLS = ROOT / "tools" / "pages"
MUSTER = [sys.executable, "-m", "muster.cli.main"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LINK = re.compile(r"http://127\.0\.0\.1:\d+/\?token=[\w-]+")


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """A `muster` process that prints the address of its dashboard."""
    process = subprocess.Popen([*MUSTER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line)
            found = LINK.search(line)
            if found:
                yield found[0]
                return
        pytest.fail("".join(lines))
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


class Pages:
    """A browser's tab on a dashboard, which notes every complaint and every request to another site."""

    def __init__(self, browser: Any, link: str, **options: Any) -> None:
        self.base = link.split("/?")[0]
        self.context = browser.new_context(viewport={"width": 1280, "height": 720}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("request", self._requested)
        self.page.goto(link)

    def _requested(self, request: Any) -> None:
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.complaints.append(f"asked {request.url}")

    def open(self, path: str, shows: str) -> Any:
        self.page.goto(self.base + path)
        self.page.get_by_text(shows).first.wait_for()
        return self.page

    def close(self) -> None:
        self.context.close()
        assert self.complaints == []


@contextmanager
def a_tab(browser: Any, link: str, **options: Any) -> Iterator[Pages]:
    pages = Pages(browser, link, **options)
    yield pages
    pages.close()


def axe_source() -> str:
    file = TOOLS / "node_modules" / "axe-core" / "axe.min.js"
    if not file.exists() and shutil.which("npm"):
        subprocess.run(["npm", "ci", "--silent"], cwd=TOOLS, check=False)
    if not file.exists():
        pytest.skip("axe-core is not installed (npm ci in tools/pages)")
    return file.read_text()


def serious_faults(page: Any, axe: str) -> list[str]:
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {each['nodes'][0]['target']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
