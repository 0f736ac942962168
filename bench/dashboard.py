"""The dashboard of 5,000 nodes and 50,000 pods, in a real Chromium: the first picture, panning, and what a page costs.

An API server in this process holds the cluster, `muster dashboard` is a process of its own, and Chromium opens its
pages. Times of the browser are from its own trace. `python -m bench.dashboard [--nodes N] [--seconds N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.figures import Figure
from muster.api.resources import NODES, POD_GROUPS, PODS
from muster.client.protocol import Client
from muster.plane.options import Options
from muster.plane.plane import Plane

PODS_PER_NODE, PER_RACK, RACKS_PER_BLOCK, WAITING = 10, 16, 8, 200
CHANGES_PER_SECOND, TABS = 20, 3
LINK = re.compile(rb"http://127\.0\.0\.1:\d+/\?token=[\w-]+")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FIRST_PICTURE, MOST_MB, MOST_HEAP_MB, MEDIAN_FRAME_MS, LONGEST_FRAME_MS, MOST_SHARE = 2.0, 1.5, 300.0, 12.0, 50.0, 5.0


# --- the cluster -----------------------------------------------------------------------------------


def node(number: int) -> dict[str, Any]:
    rack = number // PER_RACK
    labels = {
        "topology.muster.dev/rack": f"rack-{rack}",
        "topology.muster.dev/block": f"block-{rack // RACKS_PER_BLOCK}",
    }
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
    meta = {"name": f"node-{number:05d}", "labels": {**labels, "topology.kubernetes.io/zone": f"zone-{rack % 3}"}}
    ready = {"type": "Ready", "status": "True"}
    return {"metadata": meta, "status": {"capacity": room, "allocatable": room, "conditions": [ready]}}


def pod(name: str, group: str, on: int | None, cpu: str = "4") -> dict[str, Any]:
    requests = {"requests": {"cpu": cpu, "memory": "8Gi"}}
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "app", "resources": requests}]}
    spec["schedulingGroup"] = {"podGroupName": group}
    if on is not None:
        spec["nodeName"] = f"node-{on:05d}"
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def gang(name: str, size: int) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }


async def fill(client: Client, nodes: int) -> None:
    """Every node holds the pods of one gang; some gangs wait."""
    for number in range(nodes):
        await client.create(NODES, node(number))
        await client.create(POD_GROUPS, gang(f"gang-{number:05d}", PODS_PER_NODE))
        for i in range(PODS_PER_NODE):
            await client.create(PODS, pod(f"gang-{number:05d}-{i}", f"gang-{number:05d}", number, "2"))
    for number in range(WAITING):
        await client.create(POD_GROUPS, gang(f"waits-{number:03d}", 4))
        for i in range(4):
            await client.create(PODS, pod(f"waits-{number:03d}-{i}", f"waits-{number:03d}", None, "60"))


async def change(client: Client, nodes: int, seconds: float) -> int:
    """Pods come and go on nodes all over the cluster; how many changes that were."""
    done, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        which = (done // 2) * 37 % nodes
        name = f"extra-{done // 2}"
        if done % 2 == 0:
            await client.create(PODS, pod(name, f"gang-{which:05d}", which, "1"))
        else:
            await client.delete(PODS, name, "default", grace_period_seconds=0)
        done += 1
        await asyncio.sleep(max(0.0, began + done / CHANGES_PER_SECOND - time.monotonic()))
    return done


# --- the dashboard and the browser ------------------------------------------------------------------


@asynccontextmanager
async def a_dashboard(kubeconfig: Path) -> AsyncGenerator[tuple[str, int]]:
    """`muster dashboard` as a process; gives the address that opens a session, and its process id."""
    command = [sys.executable, "-m", "muster.cli.main", "dashboard", "--no-browser", "--kubeconfig", str(kubeconfig)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        while (found := LINK.search(await process.stdout.readline())) is None:
            assert process.returncode is None, "the dashboard has ended"
        yield found[0].decode(), process.pid
    finally:
        process.terminate()
        await process.wait()


def processor_seconds(process: int) -> float:
    """User and system time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def picture(page: Any, address: str, nodes: int) -> float:
    """Seconds from opening the map until it is painted."""
    began = time.perf_counter()
    await page.goto(f"{address}/cluster")
    await page.get_by_text(f"{nodes:,} nodes").first.wait_for()
    await page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return time.perf_counter() - began


async def heap_megabytes(session: Any) -> float:
    """The JavaScript heap after a collection."""
    await session.send("HeapProfiler.collectGarbage")
    return (await session.send("Runtime.getHeapUsage"))["usedSize"] / 1e6


async def frames(page: Any, browser: Any) -> list[float]:
    """Milliseconds of script, layout and paint in each frame while the map is dragged about, zoomed in and out."""
    box = await page.get_by_role("application").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    await browser.start_tracing(page=page, categories=["devtools.timeline", "disabled-by-default-devtools.timeline"])
    for zoom in (0, -300, -600, 900):
        await page.mouse.move(x, y)
        if zoom:
            await page.mouse.wheel(0, zoom)
        await page.mouse.down()
        for step in range(60):
            await page.mouse.move(x + 3 * (step % 40), y + 2 * (step % 30))
        await page.mouse.up()
    return list(frame_times(json.loads(await browser.stop_tracing())["traceEvents"]))


def frame_times(events: list[dict[str, Any]]) -> Iterator[float]:
    """The tasks of the page's main thread, summed up from one animation frame to the next."""
    starts = sorted((e["ts"], e["pid"], e["tid"]) for e in events if e["name"] == "FireAnimationFrame")
    assert starts, "the trace has no frames"
    thread = starts[0][1:]
    tasks = [e for e in events if e["name"] == "RunTask" and (e["pid"], e["tid"]) == thread and "dur" in e]
    # A frame's own task begins just before its callback is fired: it is the one that contains it.
    begins = [max((t["ts"] for t in tasks if t["ts"] <= at), default=at) for at, *_ in starts]
    for begin, end in itertools.pairwise(begins):
        yield sum(t["dur"] for t in tasks if begin <= t["ts"] < end) / 1000


# --- figures ---------------------------------------------------------------------------------------


async def measure(nodes: int, seconds: float) -> list[Figure]:
    from playwright.async_api import async_playwright

    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        options = Options(kubeconfig=kubeconfig, controllers=False, scheduler=False)
        async with Plane(options) as plane:
            await fill(plane.client, nodes)
            async with a_dashboard(kubeconfig) as (link, process), async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                print(f"Chromium {browser.version}", flush=True)
                try:
                    return await in_browser(browser, plane.client, link, process, nodes, seconds)
                finally:
                    await browser.close()


async def in_browser(browser: Any, client: Client, link: str, process: int, nodes: int, seconds: float) -> list[Figure]:
    context = await browser.new_context(viewport={"width": 1280, "height": 720})
    page, address = await context.new_page(), link.split("/?")[0]
    page.set_default_timeout(120_000)
    began = time.perf_counter()
    await page.goto(link)
    await page.get_by_text(f"{nodes:,} nodes").first.wait_for()
    found = [Figure("from nothing to the first picture", time.perf_counter() - began, "s")]
    pictures = [await picture(page, address, nodes) for _ in range(3)]
    found.append(Figure("first picture, the data being there", min(pictures), "s", ceiling=FIRST_PICTURE))
    sizes = await page.evaluate("performance.getEntriesByType('resource').map(each => [each.name, each.transferSize])")
    payload = max(size for name, size in sizes if "/api/board" in name) / 1e6
    found.append(Figure("first payload, compressed", payload, "MB", ceiling=MOST_MB))
    heap = await heap_megabytes(await context.new_cdp_session(page))
    found.append(Figure("JavaScript heap after a collection", heap, "MB", ceiling=MOST_HEAP_MB))
    times = await frames(page, browser)
    note = f"{len(times)} frames"
    found.append(Figure("a frame while panning, median", statistics.median(times), "ms", None, MEDIAN_FRAME_MS, note))
    found.append(Figure("a frame while panning, longest", max(times), "ms", None, LONGEST_FRAME_MS, note))
    return [*found, await share(context, client, address, process, nodes, seconds)]


async def share(context: Any, client: Client, address: str, process: int, nodes: int, seconds: float) -> Figure:
    """What the dashboard's process costs with three pages open while the cluster changes."""
    for path in ("/queue", "/group/PodGroup/default/gang-00000")[: TABS - 1]:
        await (await context.new_page()).goto(address + path)
    await change(client, nodes, 3)  # what the new pages asked for first is over
    before, began = processor_seconds(process), time.monotonic()
    changes = await change(client, nodes, seconds)
    took = time.monotonic() - began
    used = 100 * (processor_seconds(process) - before) / took
    note = f"{changes / took:.1f} changes a second"
    return Figure(f"the process with {TABS} pages open", used, "% of a core", ceiling=MOST_SHARE, note=note)


def figures(nodes: int = 5000, seconds: float = 30.0) -> Iterator[Figure]:
    if CHROMIUM is None:
        print("no Chromium is installed: nothing is measured", file=sys.stderr)
        return
    yield from asyncio.run(measure(nodes, seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the cluster changes")
    options = parser.parse_args()
    for figure in figures(options.nodes, options.seconds):
        print(figure, flush=True)


if __name__ == "__main__":
    main()
