"""End to end in `muster up`: HTTPS clients create, the durable store keeps, the scheduler binds; kubelets are off.

Plain pods at 5,000 nodes, and the group shapes that scheduler_perf uses (gangs and gangs inside a rack). The clock runs
from the first create to the last bind. `python -m bench.end_to_end [--nodes N] [--pods N]`.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop

from bench.figures import Figure, without_bar
from muster.api.resources import NODES, POD_GROUPS, PODS
from muster.api.types import Pod
from muster.client.config import ClientConfig
from muster.client.http import HTTPClient
from muster.client.kubeconfig import load
from muster.testing import a_node, a_pod, a_pod_group

RACK = "topology.kubernetes.io/rack"
CLIENTS = 32


@contextmanager
def a_plane(directory: Path) -> Iterator[ClientConfig]:
    """`muster up` with its scheduler and without nodes of its own."""
    flags = ["--port", "0", "--data", str(directory), "--nodes", "0"]
    command = [sys.executable, "-u", "-c", "from muster.cli.main import main; main()", "up", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Ctrl-C"):
                break
        yield load(directory / "kubeconfig")
    finally:
        process.terminate()
        process.wait(20)


def node_in_rack(index: int) -> dict[str, Any]:
    return a_node(f"node-{index}", cpu="4", memory="32Gi", **{RACK: f"rack-{index // 100}"})


def gang_in_rack(name: str, size: int, rack: bool) -> dict[str, Any]:
    topology = {"schedulingConstraints": {"topology": [{"key": RACK}]}} if rack else {}
    return a_pod_group(name, min_count=size, **topology)


async def _each(config: ClientConfig, work: list[tuple[Any, dict[str, Any]]]) -> None:
    """Create everything with many clients at once."""
    todo = iter(work)

    async def worker() -> None:
        async with HTTPClient(replace(config, connections=1)) as client:
            for resource, obj in todo:
                await client.create(resource, obj, "default" if resource.namespaced else None)

    await asyncio.gather(*(worker() for _ in range(CLIENTS)))


async def _bound(config: ClientConfig, version: str, count: int) -> None:
    """Wait until so many pods were bound since the version."""
    seen: set[str] = set()
    async with HTTPClient(config) as client:
        async for event in client.watch(PODS, "default", resource_version=version, into=Pod):
            if event.object is not None and event.object.spec.node_name:
                seen.add(event.object.metadata.uid)
                if len(seen) >= count:
                    return


async def _shape(config: ClientConfig, prefix: str, groups: int, size: int, *, gang: bool, rack: bool = False) -> float:
    names = [f"{prefix}-{number}" for number in range(groups)]
    work: list[tuple[Any, dict[str, Any]]] = (
        [(POD_GROUPS, gang_in_rack(name, size, rack)) for name in names] if gang else []
    )
    work += [
        (PODS, a_pod(f"{name}-{i}", cpu="100m", memory="100Mi", group=name if gang else ""))
        for name in names
        for i in range(size)
    ]
    async with HTTPClient(config) as client:
        version = (await client.list(PODS, "default", limit=1)).resource_version
    start = time.perf_counter()
    waiting = asyncio.create_task(_bound(config, version, groups * size))
    await _each(config, work)
    await waiting
    return groups * size / (time.perf_counter() - start)


async def _all(config: ClientConfig, nodes: int, pods: int) -> dict[str, float]:
    await _each(config, [(NODES, node_in_rack(index)) for index in range(nodes)])
    return {
        "plain pods/s": await _shape(config, "plain", pods, 1, gang=False),
        f"gangs of 3, {pods // 3} of them, pods/s": await _shape(config, "small", pods // 3, 3, gang=True),
        "gangs of 1000, pods/s": await _shape(config, "large", max(1, pods // 1000), 1000, gang=True),
        "gangs of 4 in a rack, pods/s": await _shape(config, "rack", pods // 4, 4, gang=True, rack=True),
    }


def run(nodes: int = 5_000, pods: int = 3_000) -> dict[str, float]:
    """All figures of this page."""
    with (
        tempfile.TemporaryDirectory() as directory,
        a_plane(Path(directory)) as config,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        return runner.run(_all(config, nodes, pods))


def figures() -> Iterator[Figure]:
    yield from without_bar(run())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=3_000)
    arguments = parser.parse_args()
    for name, value in run(arguments.nodes, arguments.pods).items():
        print(f"{name:40} {value:10.0f}")


if __name__ == "__main__":
    main()
