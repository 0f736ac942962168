"""A small pod that fits while many groups that do not are waiting: both schedulers on one real kube-apiserver.

A hundred nodes have one cpu left each, so that none of the waiting groups fits. Once the scheduler has tried all of
them, small pods are created one after another; what counts is the time from the creation to the bind of each.
`python -m bench.pressure --parked 500 --kind gangs` measures one row, without arguments all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from e2e.kube.cluster import RealCluster

from bench.cluster import (
    GROUPS,
    NAMESPACE,
    RACK,
    SCHEDULERS,
    BoundPod,
    BuildFailed,
    Obj,
    built,
    clear,
    create,
    pod_manifest,
    prepare,
)
from bench.figures import Figure
from muster.api.resources import COMPOSITE_POD_GROUPS, PODS
from muster.client.http import HTTPClient
from muster.client.kubeconfig import load
from muster.testing import a_composite, a_pod_group

NODES, CPU = 100, 32
PARKED = (500, 2000, 10_000)
SMALL_PODS = 20
MEDIAN_BAR, WORST_BAR = 0.1, 0.3
SETTLE = 120.0  # seconds at most until a scheduler is quiet


@dataclass
class Backlog:
    """Objects that wait for ever."""

    composites: list[Obj]
    groups: list[Obj]
    pods: list[Obj]


def two_shape_gangs(count: int) -> Backlog:
    """Gangs of two pods of eight cpus and two of sixteen."""
    groups = [{**a_pod_group(f"g-{i}", NAMESPACE, min_count=4), "apiVersion": GROUPS.api_version} for i in range(count)]
    pods = [pod_manifest(f"g-{i}-{j}", (8, 8, 16, 16)[j], group=f"g-{i}") for i in range(count) for j in range(4)]
    return Backlog([], groups, pods)


def trees(count: int) -> Backlog:
    """Trees of two gangs of two pods, each gang in one rack."""
    composites = [
        {**a_composite(f"t-{i}", NAMESPACE, min_groups=2), "apiVersion": COMPOSITE_POD_GROUPS.api_version}
        for i in range(count)
    ]
    constraint = {"topology": [{"key": RACK}]}
    groups = [
        {
            **a_pod_group(f"t-{i}-{c}", NAMESPACE, min_count=2, parent=f"t-{i}", schedulingConstraints=constraint),
            "apiVersion": GROUPS.api_version,
        }
        for i in range(count)
        for c in range(2)
    ]
    pods = [
        pod_manifest(f"t-{i}-{c}-{j}", 8, group=f"t-{i}-{c}") for i in range(count) for c in range(2) for j in range(2)
    ]
    return Backlog(composites, groups, pods)


KINDS: dict[str, Callable[[int], Backlog]] = {"gangs": two_shape_gangs, "trees": trees}


async def bound_at(client: HTTPClient, name: str, version: str) -> float:
    """When a pod is seen bound."""
    async for event in client.watch(PODS, NAMESPACE, resource_version=version, into=BoundPod):
        if event.type in ("ADDED", "MODIFIED") and event.object.metadata.name == name and event.object.spec.node_name:
            return time.monotonic()
    raise ConnectionError("the watch ended")


async def until_quiet(pid: int, most: float) -> float:
    """Wait until a process has used next to no time for three seconds; how long that took."""
    began, used, quiet = time.monotonic(), _cpu(pid), 0
    while time.monotonic() - began < most and quiet < 3:
        await asyncio.sleep(1.0)
        now = _cpu(pid)
        quiet = quiet + 1 if now - used < 0.1 else 0
        used = now
    return time.monotonic() - began


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def measure(
    cluster: RealCluster, client: HTTPClient, scheduler: str, backlog: Backlog, most: float
) -> list[float]:
    """Seconds from the creation of each small pod to its bind."""
    await create(client, COMPOSITE_POD_GROUPS, backlog.composites)
    await create(client, GROUPS, backlog.groups)
    await create(client, PODS, backlog.pods)
    with SCHEDULERS[scheduler](cluster) as pid:
        await bind_one(client, "first", most)  # the scheduler has started and read everything
        settled = await until_quiet(pid, most)
        print(f"    {scheduler}: quiet after {settled:.0f} s", file=sys.stderr)
        return [await bind_one(client, f"small-{number}", 60.0) for number in range(SMALL_PODS)]


async def bind_one(client: HTTPClient, name: str, most: float) -> float:
    """Seconds from the creation of one small pod to its bind; it is deleted again."""
    version = (await client.list(PODS, NAMESPACE, limit=1, into=BoundPod)).resource_version
    seen = asyncio.create_task(bound_at(client, name, version))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    await client.create(PODS, pod_manifest(name, 1), NAMESPACE)
    try:
        return await asyncio.wait_for(seen, most) - began
    except TimeoutError:
        return float("inf")
    finally:
        await client.delete(PODS, name, NAMESPACE, grace_period_seconds=0)
        await asyncio.sleep(0.2)


async def run(kind: str, count: int, binaries: Path, schedulers: list[str], most: float) -> dict[str, list[float]]:
    """Per scheduler, the seconds of every small pod beside so many waiting groups."""
    found: dict[str, list[float]] = {}
    with RealCluster(binaries) as cluster:
        async with HTTPClient(load(cluster.kubeconfig)) as client:
            await prepare(cluster, client, NODES, CPU)
            for scheduler in schedulers:
                filler = [pod_manifest(f"full-{n}", CPU - 1, node=f"node-{n:04d}") for n in range(NODES)]
                await create(client, PODS, filler)
                found[scheduler] = await measure(cluster, client, scheduler, KINDS[kind](count), most)
                print("    " + " ".join(f"{each:.3f}" for each in found[scheduler]), file=sys.stderr)
                if scheduler != schedulers[-1]:
                    await clear_all(client)
    return found


async def clear_all(client: HTTPClient) -> None:
    await clear(client)
    await client.request("DELETE", COMPOSITE_POD_GROUPS.path(NAMESPACE))
    while left := (await client.list(COMPOSITE_POD_GROUPS, NAMESPACE)).items:
        for obj in left:
            await client.patch(
                COMPOSITE_POD_GROUPS, obj["metadata"]["name"], {"metadata": {"finalizers": None}}, NAMESPACE
            )


def rows(kind: str, count: int, times: dict[str, list[float]]) -> Iterator[Figure]:
    """The median and the worst of each scheduler; only Muster has bars."""
    for scheduler, seconds in times.items():
        bars = (MEDIAN_BAR, WORST_BAR) if scheduler == "muster" else (None, None)
        for what, value, bar in zip(("median", "worst"), (statistics.median(seconds), max(seconds)), bars, strict=True):
            name = f"a small pod beside {count:,} waiting {kind}, {scheduler}: {what}"
            yield Figure(name, value, "s", ceiling=bar)


def figures() -> Iterator[Figure]:
    """All rows of Muster, and the smallest beside kube-scheduler, which takes minutes to try the larger backlogs."""
    try:
        binaries = built("kube-apiserver", "etcd", "kube-scheduler")
    except BuildFailed as error:
        for kind, count in product(KINDS, PARKED):
            for what, bar in (("median", MEDIAN_BAR), ("worst", WORST_BAR)):
                name = f"a small pod beside {count:,} waiting {kind}, muster: {what}"
                yield Figure.not_measured(name, "s", str(error), ceiling=bar)
        return
    for kind, count in product(KINDS, PARKED):
        schedulers = list(SCHEDULERS) if count == min(PARKED) else ["muster"]
        yield from rows(kind, count, asyncio.run(run(kind, count, binaries, schedulers, SETTLE)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--parked", type=int, action="append", help="so many waiting groups")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these")
    parser.add_argument("--scheduler", action="append", choices=SCHEDULERS, help="only this one")
    parser.add_argument("--settle", type=float, default=SETTLE, help="seconds at most until the scheduler is quiet")
    options = parser.parse_args()
    try:
        binaries = built("kube-apiserver", "etcd", "kube-scheduler")
    except BuildFailed as error:
        sys.exit(str(error))
    for kind, count in product(options.kind or KINDS, options.parked or PARKED):
        times = asyncio.run(run(kind, count, binaries, options.scheduler or list(SCHEDULERS), options.settle))
        for figure in rows(kind, count, times):
            print(figure, flush=True)


if __name__ == "__main__":
    main()
