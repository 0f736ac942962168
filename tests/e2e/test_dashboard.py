"""The dashboard in a real browser: every page on a running control plane, on a recording and on a hostile snapshot.

Chromium is looked up on the machine. Screenshots of every page in both themes are written to `test-output/dashboard`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from muster.api.types import Condition
from muster.scheduler.simulation.decision_log import encode
from tests.build.objects import a_gang, a_node, pods
from tests.build.scheduler import a_world
from tests.cli.snapshots import saved
from tests.dashboard.pages import RACK
from tests.dashboard.test_recording import a_run
from tests.e2e.browser import MUSTER, OUTPUT, ROOT, Pages, a_tab, axe_source, serious_faults, served

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


def kubectl(kubeconfig: Path, *arguments: str, text: str = "") -> str:
    command = ["kubectl", "--kubeconfig", str(kubeconfig), *arguments]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """`muster up` with 16 GPU nodes, a gang that runs and a gang that does not fit."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    kubeconfig = tmp_path_factory.mktemp("up") / "kubeconfig"
    up = ("up", "--memory", "--port", "0", "--nodes", "16", "--node-gpu", "8", "--kubeconfig", str(kubeconfig))
    with served(*up) as link:
        for name in ("priorities", "training-gang", "too-large"):
            kubectl(kubeconfig, "apply", "-f", str(ROOT / "examples" / f"{name}.yaml"))
        kubectl(kubeconfig, "wait", "podgroup/training", "--for=condition=PodGroupInitiallyScheduled", "--timeout=60s")
        yield link, kubeconfig


@pytest.fixture(scope="module")
def tab(browser: Any, cluster: tuple[str, Path]) -> Iterator[Pages]:
    with a_tab(browser, cluster[0]) as pages:
        yield pages


LIVE = [
    ("cluster", "/cluster", "default/training"),
    ("cluster-used", "/cluster?colour=used", "Scale"),
    ("cluster-fragmentation", "/cluster?colour=fragmentation&size=8", "Reading it"),
    ("queue", "/queue", "too-large"),
    ("gangs", "/group", "default/training"),
    ("group", "/group/PodGroup/default/too-large", "What would help"),
    ("what-if", "/what-if", "Use an example"),
    ("health", "/health", "Pending gangs"),
    ("time", "/time", "There is no recording"),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("name", "path", "shows"), LIVE)
def test_every_page_works_and_has_no_serious_fault(tab: Pages, theme: str, name: str, path: str, shows: str) -> None:
    tab.page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
    page = tab.open(path, shows)
    page.wait_for_timeout(700)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=OUTPUT / f"{name}-{theme}.png")
    assert serious_faults(page, axe_source()) == []


@pytest.mark.parametrize(("name", "path", "shows"), [LIVE[0], LIVE[3], LIVE[5]])
def test_pages_are_readable_on_a_phone(tab: Pages, name: str, path: str, shows: str) -> None:
    tab.page.set_viewport_size({"width": 390, "height": 844})
    try:
        page = tab.open(path, shows)
        page.wait_for_timeout(500)
        page.screenshot(path=OUTPUT / f"{name}-phone.png")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    finally:
        tab.page.set_viewport_size({"width": 1280, "height": 720})


def test_a_gang_becomes_bound_while_the_page_is_open(tab: Pages, cluster: tuple[str, Path]) -> None:
    manifest = (ROOT / "examples" / "gang-job.yaml").read_text()
    page = tab.open("/group", "default/training")
    kubectl(cluster[1], "apply", "-f", "-", text=manifest)
    row = page.get_by_role("row").filter(has_text="default/sweep")
    row.get_by_text("bound", exact=False).first.wait_for()
    row.get_by_role("link", name="default/sweep").click()
    page.get_by_text("its minimum is bound").wait_for()
    assert "/group/PodGroup/default/sweep" in page.url
    page.go_back()
    page.get_by_role("heading", name="Gangs").wait_for()
    kubectl(cluster[1], "delete", "-f", "-", text=manifest)
    row.wait_for(state="detached")


def test_what_if_says_what_the_command_says(tab: Pages, cluster: tuple[str, Path]) -> None:
    manifest = ROOT / "examples" / "urgent-gang.yaml"
    page = tab.open("/what-if", "Use an example")
    page.get_by_label("Manifests").fill(manifest.read_text())
    with page.expect_response("**/api/what-if*", timeout=120_000) as answered:
        page.get_by_role("button", name="Try it").click()
    shown = answered.value.json()["answer"]
    page.get_by_text("Nothing was changed.").wait_for()
    page.screenshot(path=OUTPUT / "what-if-answered.png")
    command = [*MUSTER, "simulate", "-f", str(manifest), "--kubeconfig", str(cluster[1]), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert shown == json.loads(done.stdout)
    assert "urgent" not in kubectl(cluster[1], "get", "podgroups")


def test_the_map_is_used_with_keys(tab: Pages) -> None:
    page = tab.open("/cluster", "default/training")
    page.get_by_role("application").focus()
    for key in ("ArrowRight", "ArrowRight", "+", "0", "Enter"):
        page.keyboard.press(key)
    page.get_by_role("heading", name=re.compile(r"^node-\d+$")).wait_for()
    assert "node=node-" in page.url
    page.keyboard.press("Escape")
    page.get_by_role("heading", name="Cluster").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Zoom in"


def test_a_gang_is_found_on_the_map_from_its_page(tab: Pages) -> None:
    page = tab.open("/group/PodGroup/default/training", "its minimum is bound")
    page.get_by_role("link", name="show on the map").first.click()
    page.get_by_role("button", name="Clear selection").wait_for()
    assert "gang=PodGroup%2Fdefault%2Ftraining" in page.url


def test_the_slider_shows_what_was(browser: Any, tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_bytes(b"".join(encode(line) for line in a_run()))
    with served("dashboard", "--decision-log", str(log), "--no-browser") as link, a_tab(browser, link) as pages:
        page = pages.open("/time", "2 pods of second bound")
        page.get_by_role("button", name="2 pods of first bound").click()
        page.get_by_role("button", name="ns/second").wait_for(state="detached")
        page.get_by_role("button", name="ns/first").wait_for()
        page.get_by_role("button", name="Step forward").click()
        page.get_by_role("button", name="2 pods of second bound").click()
        page.get_by_role("button", name="ns/second").wait_for()
        page.get_by_role("button", name="Gang", exact=True).click()
        page.get_by_text("1 of 2 racks had the 2 seats it needs together").wait_for()
        for theme in ("light", "dark"):
            page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
            page.reload()
            page.get_by_text("Why it was placed here").wait_for()
            page.screenshot(path=OUTPUT / f"time-recording-{theme}.png")
        page.get_by_role("button", name="Map").click()
        page.get_by_role("slider").focus()
        page.keyboard.press("Home")
        page.get_by_text("0 pods, 0 gangs waiting").wait_for()
        assert serious_faults(page, axe_source()) == []
        for path, shows in (
            ("/cluster", "ns/second"),
            ("/queue", "Nothing waits"),
            ("/group", "ns/first"),
            ("/health", "Verdicts"),
        ):
            pages.open(path, shows)


def test_names_and_messages_are_never_markup(browser: Any, tmp_path: Path) -> None:
    world = a_world(nodes=[a_node(f"n{i}", cpu=1, labels={RACK: HOSTILE}) for i in range(2)])
    gang = a_gang("g", min_count=3)
    said = Condition("PodGroupInitiallyScheduled", "False", "Unschedulable", HOSTILE, "2026-01-01T00:00:00Z")
    world.add(msgspec.structs.replace(gang, status=msgspec.structs.replace(gang.status, conditions=(said,))))
    world.add(*pods(3, group="g", cpu=1))
    file = saved(world, tmp_path / "snapshot.json.gz")
    with served("dashboard", "--snapshot", file, "--no-browser") as link, a_tab(browser, link) as pages:
        for path, shows in (
            ("/queue", HOSTILE),
            ("/group/PodGroup/ns/g", HOSTILE),
            ("/cluster", "2 nodes"),
            ("/cluster?node=n0", HOSTILE[:20]),
            (f"/cluster?domain={HOSTILE}", "2 nodes"),
            ("/health", "Unschedulable"),
        ):
            page = pages.open(path, shows)
            page.wait_for_timeout(300)
            assert page.evaluate("window.hacked") is None
            assert page.locator("img[src=x]").count() == 0
