"""What-ifs run in processes of their own, few at a time, and end when nobody waits for them."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import aiohttp
import pytest

from muster.dashboard.what_if_runner import MOST_BYTES, Busy, WhatIfRunner
from muster.views.failures import ViewFailure
from tests.build.objects import a_node
from tests.build.scheduler import a_world
from tests.cli.snapshots import snapshot_of
from tests.dashboard.pages import a_browser

POD = b"""
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: "2"}}}]
"""


def children() -> set[str]:
    """The processes that this one has started and that still run."""
    found = Path("/proc/self/task").glob("*/children")
    return {pid for each in found for pid in each.read_text().split()}


async def test_the_answer_comes_from_another_process():
    snapshot = snapshot_of(a_world(nodes=[a_node("n0")]))
    found = await WhatIfRunner().run("ann", snapshot, POD, "default")
    assert found.answer.fits
    assert [(each.pod, each.node) for each in found.answer.placements] == [("default/p", "n0")]


async def test_what_would_wait_is_explained():
    snapshot = snapshot_of(a_world(nodes=[a_node("n0", cpu=1)]))
    found = await WhatIfRunner().run("ann", snapshot, POD, "default")
    assert not found.answer.fits
    assert [each.name for each in found.explanations] == ["p"]
    assert found.explanations[0].verdict == "Infeasible"


@pytest.mark.parametrize(
    ("text", "says"), [(b"a: [", "not valid YAML"), (b"", "there is no manifest"), (b"- 1", "must be an object")]
)
async def test_manifests_that_make_no_sense_are_refused(text: bytes, says: str):
    with pytest.raises(ViewFailure, match=says):
        await WhatIfRunner().run("ann", snapshot_of(a_world()), text, "default")


async def test_one_at_a_time_for_a_viewer_and_two_in_all():
    snapshot = snapshot_of(a_world(nodes=[a_node("n0")]))
    runner = WhatIfRunner()
    tasks = [asyncio.create_task(runner.run(viewer, snapshot, POD, "default")) for viewer in ("ann", "bob")]
    await asyncio.sleep(0)
    with pytest.raises(Busy, match="your last question"):
        await runner.run("ann", snapshot, POD, "default")
    with pytest.raises(Busy, match="others are asking"):
        await runner.run("eve", snapshot, POD, "default")
    await asyncio.gather(*tasks)
    assert (await runner.run("eve", snapshot, POD, "default")).answer.fits


async def test_a_question_that_nobody_waits_for_any_more_is_ended():
    before = children()
    runner = WhatIfRunner()
    task = asyncio.create_task(runner.run("ann", snapshot_of(a_world()), POD, "default"))
    while not children() - before:  # noqa: ASYNC110 (nothing tells that a process has begun)
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children() == before
    with pytest.raises(ViewFailure):
        await runner.run("ann", snapshot_of(a_world()), b"", "default")  # it is not busy any more


async def test_too_much_is_refused_over_http_and_so_is_too_often():
    async with a_browser(a_world(nodes=[a_node("n0")])) as browser:
        async with browser.post("/api/what-if", data=io.BytesIO(b"x" * (MOST_BYTES + 1))) as answer:
            assert answer.status == 413

        async def ask(browser: aiohttp.ClientSession) -> int:
            async with browser.post("/api/what-if", data=POD) as answer:
                return answer.status

        assert sorted(await asyncio.gather(ask(browser), ask(browser))) == [200, 429]
