"""The API server without HTTP: what a create, a list, a watch event and a stored pod cost.

`python -m bench.server [--pods N]` prints the figures. Bodies are JSON, the
full road is taken (field validation, defaulting, admission, validation, field ownership), in one process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.figures import Figure, without_bar
from bench.objects import ordinary_container
from muster.server.core import ApiServer
from muster.server.request import JSON, Request, Response, WatchStream
from muster.server.served_kinds import build_registry
from muster.server.store.base import Store
from muster.server.store.memory import MemoryStore
from muster.server.store.sqlite import SqliteStore

PATH = "/api/v1/namespaces/default/pods"
WATCHERS = 50
HEADERS = {"content-type": JSON, "user-agent": "bench/1"}


def pod_body(index: int) -> bytes:
    """The body of a request that creates a pod of ordinary size."""
    metadata = {"name": f"pod-{index}", "labels": {"app": "bench", "part": str(index % 100)}}
    spec = {"containers": [ordinary_container()], "schedulingGroup": {"podGroupName": f"gang-{index // 8}"}}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


async def a_server(store: Store) -> ApiServer:
    server = ApiServer(store, build_registry())
    await server.bootstrap()
    return server


async def create(server: ApiServer, bodies: list[bytes]) -> None:
    for body in bodies:
        answer = await server.handle(Request("POST", PATH, {}, HEADERS, body))
        assert isinstance(answer, Response)
        assert answer.status == 201, answer.body


async def create_by_many(server: ApiServer, bodies: list[bytes], clients: int = 64) -> None:
    await asyncio.gather(*(create(server, bodies[start::clients]) for start in range(clients)))


async def timed(work: Awaitable[Any]) -> float:
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


def used_megabytes() -> float:
    """Resident memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def measure(pods: int) -> dict[str, float]:
    """All figures, by name."""
    bodies = [pod_body(index) for index in range(2 * pods)]
    figures: dict[str, float] = {}
    gc.collect()
    before = used_megabytes()
    server = await a_server(MemoryStore())
    figures["creates a second, memory"] = pods / await timed(create(server, bodies[:pods]))
    figures[f"list of {pods} pods, ms"] = 1000 * await timed(server.handle(Request("GET", PATH)))
    figures["list by label, ms"] = 1000 * await timed(
        server.handle(Request("GET", PATH, {"labelSelector": ("part=7",)}))
    )
    await create(server, bodies[pods:])
    gc.collect()
    figures[f"memory of {2 * pods} pods, MB"] = used_megabytes() - before
    figures[f"events a second to {WATCHERS} watchers"] = await _burst(server, pods // 10)
    with tempfile.TemporaryDirectory() as directory:
        store = SqliteStore.open(directory)
        durable = await a_server(store)
        figures["creates a second, SQLite, 64 clients"] = pods / await timed(create_by_many(durable, bodies[:pods]))
        await store.close()
        figures[f"restart with {pods} pods, s"] = await timed(_restart(directory))
    return figures


async def _restart(directory: str) -> None:
    await SqliteStore.open(directory).close()


async def _burst(server: ApiServer, writes: int) -> float:
    """How many events a second reach all watchers together while objects are written."""
    version = str(server.store.revision)

    async def take() -> None:
        query = {"watch": ("true",), "resourceVersion": (version,)}
        stream = await server.handle(Request("GET", PATH, query))
        assert isinstance(stream, WatchStream)
        seen = 0
        async for chunk in stream.frames:
            seen += chunk.count(b"\n")
            if seen >= writes:
                return

    watchers = [asyncio.ensure_future(take()) for _ in range(WATCHERS)]
    await asyncio.sleep(0)
    bodies = [pod_body(10_000_000 + index) for index in range(writes)]

    async def write() -> None:
        for start in range(0, writes, 32):
            await create(server, bodies[start : start + 32])
            await asyncio.sleep(0)
        await asyncio.gather(*watchers)

    return WATCHERS * writes / await timed(write())


def run(pods: int = 10_000) -> dict[str, float]:
    runner: Callable[[Any], dict[str, float]] = asyncio.run
    return runner(measure(pods))


def figures() -> Iterator[Figure]:
    yield from without_bar(run())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    for name, value in run(parser.parse_args().pods).items():
        print(f"{name:45} {value:12,.1f}")


if __name__ == "__main__":
    main()
