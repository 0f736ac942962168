"""A group whose minimum is bound says so with the next write to the server, however slow that is and however busy."""

from __future__ import annotations

import asyncio

import pytest

from muster.api.resources import PODS, Resource
from muster.client.clock import MonotonicClock
from muster.engine import options
from muster.engine.api_calls.call import ApiCall
from muster.engine.call_queue import CallQueue, ConcurrencyLimits
from muster.engine.engine import Engine
from muster.engine.settings import Settings
from muster.testing import a_pod_group
from tests.build.manifests import in_version
from tests.engine.conftest import World, eventually

GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)


class Timeline:
    """When writes were started and when binds were answered, in order."""

    def __init__(self, world: World, slow: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entries: list[tuple[str, str, str]] = []  # started or answered, kind of call, name of its object
        world.client.slow = slow
        start, end = CallQueue._start, CallQueue._end

        def started(queue: CallQueue, call: ApiCall) -> None:
            self.entries.append(("started", call.call_type, call.key[2]))
            start(queue, call)

        def ended(queue: CallQueue, call: ApiCall, error: str) -> None:
            self.entries.append(("answered", call.call_type, call.key[2]))
            end(queue, call, error)

        monkeypatch.setattr(CallQueue, "_start", started)
        monkeypatch.setattr(CallQueue, "_end", ended)

    def between(self, gang: str, minimum: int) -> list[tuple[str, str]]:
        """The writes that were started after the bind that completed the minimum, before the group said so."""
        binds = 0
        written: list[tuple[str, str]] | None = None
        for what, type_, name in self.entries:
            if (what, type_) == ("answered", "pod_binding") and name.startswith(f"{gang}-"):
                binds += 1
                written = [] if binds == minimum else written
            elif what == "started" and written is not None:
                if (type_, name) == ("status_patch", gang):
                    return written
                written.append((type_, name))
        raise AssertionError(f"{gang} never said that it is scheduled")


async def gangs(world: World, names: list[str], size: int, minimum: int) -> None:
    for name in names:
        await world.direct.create(GROUPS, in_version(a_pod_group(name, min_count=minimum), "v1beta1"), "default")
        for number in range(size):
            await world.pod(f"{name}-{number}", group=name)


async def run(world: World, binds: int = 64) -> Engine:
    source = options.source(None)
    settings = Settings(limits=ConcurrencyLimits(binds=binds))
    engine = Engine(world.client, options.config(source), settings, clock=MonotonicClock(), config_source=source)
    await world.launch(engine)
    return engine


async def all_said(world: World, names: list[str]) -> None:
    async def said() -> bool:
        found = (await world.direct.list(GROUPS)).items
        statuses = [
            each["status"]
            for group in found
            if group["metadata"]["name"] in names
            for each in group.get("status", {}).get("conditions", ())
            if each["type"] == "PodGroupInitiallyScheduled"
        ]
        return statuses == ["True"] * len(names)

    await eventually(said, 30.0)


@pytest.mark.parametrize("binds", [1, 4])
async def test_the_next_write_after_the_bind_that_completes_the_minimum_is_the_status_of_the_group(
    world: World, binds: int, monkeypatch: pytest.MonkeyPatch
):
    await world.node(cpu="100")
    timeline = Timeline(world, 0.01, monkeypatch)
    await gangs(world, ["g"], size=12, minimum=4)
    await run(world, binds)
    await all_said(world, ["g"])
    assert timeline.between("g", 4) == []


async def test_under_load_nothing_is_started_in_between_but_the_statuses_of_other_groups(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    await world.node(cpu="100")
    names = [f"g{number}x" for number in range(12)]
    timeline = Timeline(world, 0.005, monkeypatch)
    for number in range(100):  # their statuses and events keep the server busy
        await world.pod(f"large-{number}", cpu="1000")
    await gangs(world, names, size=5, minimum=3)
    await run(world, binds=8)
    await all_said(world, names)
    for name in names:
        between = timeline.between(name, 3)
        assert all(type_ == "status_patch" and about in names for type_, about in between), (name, between)


async def test_a_watcher_never_sees_a_bound_gang_that_still_waits_for_more_than_a_few_requests(world: World):
    await world.node(cpu="100")
    names = [f"g{number}x" for number in range(8)]
    world.client.slow = 0.02
    await run(world, binds=8)
    missing: dict[str, float] = {}
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        now = asyncio.get_running_loop().time
        while True:
            pods = (await world.direct.list(PODS)).items
            full = {name for name in names if sum(_is_bound(pod, name) for pod in pods) == 4}
            waiting = {g["metadata"]["name"] for g in (await world.direct.list(GROUPS)).items if not _is_scheduled(g)}
            for name in full & waiting:
                longest = max(longest, now() - missing.setdefault(name, now()))
            await asyncio.sleep(0.005)

    watcher = asyncio.create_task(watch())
    await gangs(world, names, size=4, minimum=4)
    await all_said(world, names)
    watcher.cancel()
    assert longest < 1.0


def _is_bound(pod: dict[str, dict[str, str]], gang: str) -> bool:
    return pod["metadata"]["name"].startswith(f"{gang}-") and bool(pod["spec"].get("nodeName"))


def _is_scheduled(group: dict[str, dict[str, list[dict[str, str]]]]) -> bool:
    conditions = group.get("status", {}).get("conditions", [])
    return any(each["type"] == "PodGroupInitiallyScheduled" and each["status"] == "True" for each in conditions)
