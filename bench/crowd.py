"""Many watchers: how long a create takes while each of them is sent every event; and what a flood leaves in memory.

The server is `muster up` without nodes, controllers and scheduler, the watchers are TLS connections of another process
that read and throw away. `python -m bench.crowd [--watchers N] [--creates N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import uvloop

from bench.figures import Figure
from bench.http import (
    POD_PATH,
    a_server,
    calibration,
    creates_a_second,
    memory_of,
    processor_seconds,
    two_container_pod,
)
from muster.api.resources import PODS
from muster.client.config import ClientConfig
from muster.client.credentials import tls_context
from muster.client.http import HTTPClient
from muster.client.kubeconfig import load

AFTER_SECONDS = 90.0  # longer than changes are kept for watches


class _Watcher(asyncio.Protocol):
    """Reads a watch and throws it away."""

    def __init__(self, request: bytes) -> None:
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        return None


async def _watch(config: ClientConfig, watchers: int) -> None:
    """Open so many watches, say so, and read until killed."""
    where = urlsplit(config.server)
    async with HTTPClient(config) as client:
        now = (await client.list(PODS, "default", limit=1)).resource_version
    request = f"GET {POD_PATH}?watch=1&resourceVersion={now} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode()
    context = tls_context(config, config.cert_data, config.key_data)
    loop = asyncio.get_running_loop()
    for start in range(0, watchers, 50):
        some = range(start, min(watchers, start + 50))
        await asyncio.gather(
            *(loop.create_connection(lambda: _Watcher(request), where.hostname, where.port, ssl=context) for _ in some)
        )
    print("open", flush=True)
    await asyncio.Event().wait()


async def _latencies(config: ClientConfig, prefix: str, count: int) -> list[float]:
    """Milliseconds of one create after the other."""
    taken: list[float] = []
    async with HTTPClient(replace(config, connections=1)) as client:
        for number in range(count + 1):
            start = time.perf_counter()
            await client.create(PODS, two_container_pod(f"{prefix}-{number}"), "default")
            taken.append(1000 * (time.perf_counter() - start))
            await asyncio.sleep(0.1)
    return taken[1:]  # the first one had to connect


def run(watchers: int = 2_000, creates: int = 50, flood: int = 10_000) -> dict[str, float]:
    """All figures of this page."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory, a_server(Path(directory)) as (config, pid):
        file = Path(directory) / "kubeconfig"
        creates_a_second(file, "warm", 64, 8)
        figures["alone"] = statistics.median(asyncio.run(_latencies(config, "alone", creates)))
        figures |= _with_watchers(config, file, pid, watchers, creates)
        figures["before"] = memory_of(pid)
        creates_a_second(file, "flood", flood, 64)
        figures["flood"] = memory_of(pid)
        time.sleep(AFTER_SECONDS)
        figures["after"] = memory_of(pid)
    figures["calibration"] = calibration()
    return figures


def _with_watchers(config: ClientConfig, file: Path, pid: int, watchers: int, creates: int) -> dict[str, float]:
    crowd = subprocess.Popen(
        [sys.executable, "-m", "bench.crowd", "watch", str(file), str(watchers)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    try:
        assert crowd.stdout is not None
        crowd.stdout.readline()
        time.sleep(2)
        before = processor_seconds(pid)
        taken = asyncio.run(_latencies(config, "watched", creates))
        used = processor_seconds(pid) - before
    finally:
        crowd.terminate()
        crowd.wait(10)
    return {
        "watched": statistics.median(taken),
        "worst": max(taken),
        "event": 1e6 * used / creates / watchers,
    }


def figures() -> Iterator[Figure]:
    measured = run()
    yield Figure("create without watchers", measured["alone"], "ms")
    yield Figure("create with 2,000 watchers, median", measured["watched"], "ms", ceiling=50)
    yield Figure("create with 2,000 watchers, longest", measured["worst"], "ms")
    yield Figure("processor time of an event to a watcher", measured["event"], "us")
    yield Figure("memory before a flood of 10,000 pods", measured["before"], "MB")
    yield Figure("memory right after it", measured["flood"], "MB")
    yield Figure("memory 90 s after it, the pods still there", measured["after"], "MB")
    yield Figure("calibration loop", measured["calibration"], "ms")


def main() -> None:
    if sys.argv[1:2] == ["watch"]:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        uvloop.run(_watch(load(sys.argv[2]), int(sys.argv[3])))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watchers", type=int, default=2_000)
    parser.add_argument("--creates", type=int, default=50)
    parser.add_argument("--flood", type=int, default=10_000)
    arguments = parser.parse_args()
    for name, value in run(arguments.watchers, arguments.creates, arguments.flood).items():
        print(f"{name:12} {value:10.2f}")


if __name__ == "__main__":
    main()
