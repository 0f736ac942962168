"""The API server over HTTPS: creates a second, the time of a large list, and a burst seen by many watchers.

The server runs in a process of its own, durable, with RBAC and validation on; the clients (`bench/load.py`) share this
machine with it. Creates are measured without any admission by others, and with one webhook and one policy.
`python -m bench.http [--pods N] [--clients N]` prints the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from bench.admission import admission_objects
from bench.figures import Figure
from bench.load import post, send
from bench.objects import ordinary_container
from muster.api.resources import PODS
from muster.api.types import Pod
from muster.client.config import ClientConfig
from muster.client.http import HTTPClient
from muster.client.kubeconfig import load

CLIENT_PROCESSES = 2
POD_PATH = "/api/v1/namespaces/default/pods"


@contextmanager
def a_server(directory: Path) -> Iterator[tuple[ClientConfig, int]]:
    """`muster up` without nodes, controllers and scheduler; gives the client's configuration and the process id."""
    flags = ["--port", "0", "--data", str(directory), "--nodes", "0", "--no-scheduler", "--no-controllers"]
    command = [sys.executable, "-u", "-c", "from muster.cli.main import main; main()", "up", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Ctrl-C"):
                break
        yield load(directory / "kubeconfig"), process.pid
    finally:
        process.terminate()
        process.wait(10)


def two_container_pod(name: str) -> dict[str, Any]:
    """A pod of ordinary size: two containers, some environment, probes, a few labels."""
    container = ordinary_container(readinessProbe={"httpGet": {"path": "/ready", "port": 8080}})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": "bench", "team": "a", "part": name[-1]},
        },
        "spec": {"containers": [container, {"name": "side", "image": "registry.example/side:1"}]},
    }


async def _create(config: ClientConfig, prefix: str, count: int, clients: int) -> float:
    """So many clients, each with a connection of its own, one request at a time; gives the seconds it took."""
    bodies = (msgspec.json.encode(two_container_pod(f"{prefix}-{index}")) for index in range(count))
    requests = [post(config, POD_PATH, body) for body in bodies]
    start = time.perf_counter()
    await send(config, requests, clients)
    return time.perf_counter() - start


async def _watch(config: ClientConfig, version: str, count: int, watchers: int) -> float:
    """Watchers that each wait for so many events; gives the time of the slowest since the call."""
    start = time.perf_counter()

    async def follow() -> None:
        async with HTTPClient(config) as client:
            seen = 0
            async for event in client.watch(PODS, "default", resource_version=version, into=Pod):
                seen += event.type == "ADDED"
                if seen == count:
                    return

    await asyncio.gather(*(follow() for _ in range(watchers)))
    return time.perf_counter() - start


def _in_processes(role: str, config_file: Path, *arguments: object, processes: int) -> list[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "bench.http", role, str(config_file), *map(str, arguments)]
    return [
        subprocess.Popen([*command, str(index)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)
        for index in range(processes)
    ]


def memory_of(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def creates_a_second(file: Path, prefix: str, count: int, clients: int) -> float:
    share, each = count // CLIENT_PROCESSES, clients // CLIENT_PROCESSES
    workers = _in_processes("create", file, prefix, share, each, processes=CLIENT_PROCESSES)
    taken = [json.loads(worker.communicate()[0])["seconds"] for worker in workers]
    return count / max(taken)  # they begin within some milliseconds of each other


def run(pods: int = 10_000, clients: int = 64, watchers: int = 50) -> dict[str, float]:
    """All figures of this page."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory, a_server(Path(directory)) as (config, pid):
        file = Path(directory) / "kubeconfig"
        creates_a_second(file, "warm", 512, clients)
        figures |= _timed_creates(file, pid, "pod", pods, clients)
        figures["list_seconds"] = asyncio.run(_list_time(config))
        figures["memory_mb"] = memory_of(pid)
        figures |= asyncio.run(_burst(config, file, pods, clients, watchers))
        with admitted_by_others(config):
            asked = _timed_creates(file, pid, "asked", pods // 4, clients)
        figures |= {f"admitted_{name}": value for name, value in asked.items()}
    figures["calibration_ms"] = calibration()
    return figures


def _timed_creates(file: Path, pid: int, prefix: str, pods: int, clients: int) -> dict[str, float]:
    before = processor_seconds(pid)
    rate = creates_a_second(file, prefix, pods, clients)
    return {"creates_per_second": rate, "create_cpu_us": 1e6 * (processor_seconds(pid) - before) / pods}


def processor_seconds(pid: int) -> float:
    """What a process has used of the processors, all threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def calibration() -> float:
    """Milliseconds of processor time of a fixed loop, the best of five: the other figures are read beside it."""
    best = float("inf")
    for _ in range(5):
        start, total = time.process_time(), 0
        for number in range(400_000):
            total += number * number
        best = min(best, time.process_time() - start)
    return 1000 * best


_BARS: dict[str, tuple[str, str, float | None, float | None]] = {
    "creates_per_second": ("creates from 64 clients", "a second", 2_500, None),
    "create_cpu_us": ("processor time of a create", "us", None, None),
    "list_seconds": ("list of 10,000 pods", "s", None, 0.25),
    "memory_mb": ("memory with 10,000 pods", "MB", None, None),
    "burst_write_seconds": ("10,000 creates seen by 50 watchers", "s", None, None),
    "burst_seen_by_all_seconds": ("until all watchers have seen them", "s", None, None),
    "admitted_creates_per_second": ("creates with one webhook and one policy", "a second", None, None),
    "admitted_create_cpu_us": ("processor time of such a create", "us", None, None),
    "calibration_ms": ("calibration loop", "ms", None, None),
}


def figures() -> Iterator[Figure]:
    measured = run()
    for key, (name, unit, floor, ceiling) in _BARS.items():
        yield Figure(name, measured[key], unit, floor, ceiling)


@contextmanager
def admitted_by_others(config: ClientConfig) -> Iterator[None]:
    """A validating webhook and a validating policy that look at every pod and let it pass."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.admission"], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent
    )
    try:
        assert process.stdout is not None
        asyncio.run(_configure(config, json.loads(process.stdout.readline())))
        yield
    finally:
        process.terminate()
        process.wait(10)


async def _configure(config: ClientConfig, client_config: dict[str, Any]) -> None:
    async with HTTPClient(config) as client:
        for resource, obj in admission_objects(client_config):
            await client.create(resource, obj)


async def _list_time(config: ClientConfig) -> float:
    async with HTTPClient(config) as client:
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            await client.list(PODS, "default", into=Pod)
            best = min(best, time.perf_counter() - start)
        return best


async def _burst(config: ClientConfig, file: Path, pods: int, clients: int, watchers: int) -> dict[str, float]:
    async with HTTPClient(config) as client:
        version = (await client.list(PODS, "default", limit=1)).resource_version
    watching = _in_processes("watch", file, version, pods, watchers, processes=1)
    await asyncio.sleep(2)
    start = time.perf_counter()
    await asyncio.to_thread(creates_a_second, file, "burst", pods, clients)
    written = time.perf_counter() - start
    for process in watching:
        await asyncio.to_thread(process.communicate)
    all_seen = time.perf_counter() - start
    return {"burst_write_seconds": written, "burst_seen_by_all_seconds": all_seen}


def _role(arguments: list[str]) -> None:
    role, file, *rest = arguments
    config = load(file)
    loop = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=loop) as runner:
        if role == "create":
            prefix, count, clients, index = rest[0], int(rest[1]), int(rest[2]), rest[3]
            seconds = runner.run(_create(config, f"{prefix}-{index}", count, clients))
        else:
            seconds = runner.run(_watch(config, rest[0], int(rest[1]), int(rest[2])))
    print(json.dumps({"seconds": seconds}))


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] in ("create", "watch"):
        _role(sys.argv[1:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--watchers", type=int, default=50)
    arguments = parser.parse_args()
    for name, value in run(arguments.pods, arguments.clients, arguments.watchers).items():
        print(f"{name:28} {value:10.2f}")
    print(f"{'load average':28} {os.getloadavg()[0]:10.2f}")


if __name__ == "__main__":
    main()
