"""Muster and kube-scheduler side by side on one real kube-apiserver: `make bench-cluster`.

Every case loads its backlog before a scheduler starts, then measures from the start of the process to the last bind,
and the peak memory of the scheduler's process; preemption is also measured with schedulers that run and are idle, from
the creation of the gang. One scheduler runs after the other on the same server and the same
machine; kube-scheduler without client-side rate limits, because Muster has none by default either. There are no
kubelets: victims have no grace period, so a deleted pod is gone at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from e2e.kube.cluster import RealCluster

from bench.figures import Figure
from muster.api.resources import NAMESPACES, NODES, POD_GROUPS, PODS, PRIORITY_CLASSES, Resource
from muster.client.http import HTTPClient
from muster.client.kubeconfig import load
from muster.testing import a_node, a_pod, a_pod_group

ROOT = Path(__file__).parents[1]
GROUPS = POD_GROUPS._replace(version="v1beta1")
NAMESPACE, RACK = "bench", "example.com/rack"
WRITERS = 48
PREEMPTION_BAR = 3.0  # how many times as fast as kube-scheduler
IDLE_SECONDS = 3.0  # that a scheduler runs before it is measured
MUSTER = [sys.executable, "-c", "from muster.cli.main import main; main()"]
Obj = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """Some gangs (or single pods, if a gang has no members) and the bar for how much faster Muster is to be."""

    name: str
    nodes: int
    gangs: int
    size: int
    racks: bool = False
    bar: float = 1.0

    @property
    def pods(self) -> int:
        return self.gangs * self.size


@dataclass
class Measured:
    seconds: list[float] = field(default_factory=list[float])
    peak_mib: list[float] = field(default_factory=list[float])


def cases(quick: bool) -> list[Case]:
    part = 10 if quick else 1
    nodes = 5000 // part
    return [
        Case("small gangs", nodes, 1000 // part, 3, bar=3),
        Case("large gangs", nodes, 3, 1000 // part, bar=15),
        Case("small gangs, one rack each", nodes, 750 // part, 4, racks=True, bar=10),
        Case("large gangs, one rack each", nodes, 3, 1000 // part, racks=True, bar=10),
        Case("single pods", nodes, 3000 // part, 1, bar=3),
    ]


# --- objects ---------------------------------------------------------------------------------------


def node_manifest(number: int, per_rack: int, cpu: int = 32) -> Obj:
    return a_node(f"node-{number:04d}", cpu=str(cpu), **{RACK: f"rack-{number // per_rack}"})


def pod_manifest(name: str, cpu: int, *, group: str = "", node: str = "", priority: str = "") -> Obj:
    spec: Obj = {"terminationGracePeriodSeconds": 0}
    if node:
        spec["nodeName"] = node
    if priority:
        spec["priorityClassName"] = priority
    return a_pod(name, NAMESPACE, cpu=str(cpu), memory="64Mi", group=group, **spec)


def gang_manifest(name: str, size: int, *, racks: bool = False, priority: str = "") -> Obj:
    spec: Obj = {}
    if racks:
        spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    if priority:
        spec["priorityClassName"] = priority
    return {**a_pod_group(name, NAMESPACE, min_count=size, **spec), "apiVersion": GROUPS.api_version}


def backlog(case: Case) -> tuple[list[Obj], list[Obj]]:
    if case.size == 1:
        return [], [pod_manifest(f"p-{i}", 1) for i in range(case.gangs)]
    groups = [gang_manifest(f"g-{i}", case.size, racks=case.racks) for i in range(case.gangs)]
    return groups, [pod_manifest(f"g-{i}-{j}", 1, group=f"g-{i}") for i in range(case.gangs) for j in range(case.size)]


# --- the cluster -----------------------------------------------------------------------------------


async def create(client: HTTPClient, resource: Resource, objects: Iterable[Obj]) -> None:
    waiting = iter(objects)

    async def write() -> None:
        for obj in waiting:
            await client.create(resource, obj, obj["metadata"].get("namespace"))

    await asyncio.gather(*(write() for _ in range(WRITERS)))


async def clear(client: HTTPClient) -> None:
    """Pods and groups away, and wait until they are."""
    finalizers = {"metadata": {"finalizers": None}}
    for resource in (PODS, GROUPS):
        await client.request("DELETE", resource.path(NAMESPACE), None, {"gracePeriodSeconds": "0"})
        while left := (await client.list(resource, NAMESPACE)).items:
            for obj in left if resource is GROUPS else ():
                await client.patch(resource, obj["metadata"]["name"], finalizers, NAMESPACE)
            await asyncio.sleep(0.2)


class BoundSpec(msgspec.Struct, rename="camel", frozen=True):
    node_name: str = ""


class Meta(msgspec.Struct, rename="camel", frozen=True):
    name: str = ""
    resource_version: str = ""


class BoundPod(msgspec.Struct, frozen=True):
    metadata: Meta
    spec: BoundSpec = BoundSpec()


async def all_bound(client: HTTPClient, count: int, prefix: str, version: str) -> None:
    """Return when so many pods are bound."""
    bound: set[str] = set()
    async for event in client.watch(PODS, NAMESPACE, resource_version=version, into=BoundPod):
        if event.type in ("ADDED", "MODIFIED") and event.object.spec.node_name:
            name = event.object.metadata.name
            if name.startswith(prefix):
                bound.add(name)
                if len(bound) >= count:
                    return


async def version_now(client: HTTPClient) -> str:
    return (await client.list(PODS, NAMESPACE, limit=1, into=BoundPod)).resource_version


# --- the schedulers --------------------------------------------------------------------------------


@contextmanager
def muster(cluster: RealCluster) -> Iterator[int]:
    flags = ["--secure-port", "0", "--leader-elect=false", "--scheduler-name", "default-scheduler"]
    # An installed package comes with its bytecode; a checkout may have been told not to write any.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with (cluster.root / "muster.log").open("ab") as log:
        process = subprocess.Popen(
            [*MUSTER, "scheduler", "--kubeconfig", str(cluster.kubeconfig), *flags],
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env=environment,
        )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def kube_scheduler(cluster: RealCluster) -> Iterator[int]:
    daemon = cluster.start_kube_scheduler("--kube-api-qps=5000", "--kube-api-burst=5000", wait=False)
    try:
        yield daemon.process.pid
    finally:
        cluster.end(daemon)


SCHEDULERS: dict[str, Callable[[RealCluster], Any]] = {"kube-scheduler": kube_scheduler, "muster": muster}


def peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise LookupError("no VmHWM")


# --- measuring -------------------------------------------------------------------------------------


async def measure_case(cluster: RealCluster, client: HTTPClient, case: Case, scheduler: str, limit: float) -> Measured:
    groups, pods = backlog(case)
    await create(client, GROUPS, groups)
    await create(client, PODS, pods)
    result = await timed(cluster, scheduler, limit, lambda: version_now(client), client, case.pods, "")
    await clear(client)
    return result


async def timed(
    cluster: RealCluster,
    scheduler: str,
    limit: float,
    version: Callable[[], Awaitable[str]],
    client: HTTPClient,
    count: int,
    prefix: str,
) -> Measured:
    since = await version()
    began = time.monotonic()
    with SCHEDULERS[scheduler](cluster) as pid:
        try:
            async with asyncio.timeout(limit):
                await all_bound(client, count, prefix, since)
            seconds = time.monotonic() - began
        except TimeoutError:
            seconds = float("inf")
        return Measured([seconds], [peak_mib(pid)])


async def measure_preemption(
    cluster: RealCluster, client: HTTPClient, nodes: int, scheduler: str, limit: float
) -> Measured:
    """Every node is full of ten low pods; a gang that needs all of every node evicts them all."""
    await create(client, PODS, low_pods(nodes))
    await create_vip(client, nodes)
    result = await timed(cluster, scheduler, limit, lambda: version_now(client), client, nodes, "vip")
    await clear(client)
    return result


async def measure_preemption_running(
    cluster: RealCluster, client: HTTPClient, nodes: int, scheduler: str, limit: float
) -> Measured:
    """The same with a scheduler that runs and is idle; from the creation of the gang to its last bind."""
    await create(client, PODS, low_pods(nodes))
    with SCHEDULERS[scheduler](cluster) as pid:
        since = await version_now(client)
        await create(client, PODS, [pod_manifest("probe", 0)])
        await all_bound(client, 1, "probe", since)
        await asyncio.sleep(IDLE_SECONDS)
        since = await version_now(client)
        began = time.monotonic()
        waiting = asyncio.create_task(all_bound(client, nodes, "vip", since))
        await create_vip(client, nodes)
        created = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                await waiting
            seconds = time.monotonic() - began
        except TimeoutError:
            seconds = float("inf")
        print(f"    creating the gang took {created - began:.2f} s", file=sys.stderr)
        result = Measured([seconds], [peak_mib(pid)])
    await clear(client)
    return result


def low_pods(nodes: int) -> list[Obj]:
    return [
        pod_manifest(f"low-{n}-{i}", 1, node=f"node-{n:04d}", priority="low") for n in range(nodes) for i in range(10)
    ]


async def create_vip(client: HTTPClient, nodes: int) -> None:
    """A gang that needs all of every node."""
    await create(client, GROUPS, [gang_manifest("vip", nodes, priority="high")])
    await create(client, PODS, [pod_manifest(f"vip-{i}", 10, group="vip", priority="high") for i in range(nodes)])


async def measure_parked(
    cluster: RealCluster, client: HTTPClient, nodes: int, scheduler: str, limit: float
) -> Measured:
    """A gang waits for room on full nodes; from the deletion of what fills them to its last bind."""
    await create(client, PODS, [pod_manifest(f"full-{n}", 10, node=f"node-{n:04d}") for n in range(nodes)])
    await create(client, GROUPS, [gang_manifest("late", nodes)])
    await create(client, PODS, [pod_manifest(f"late-{i}", 10, group="late") for i in range(nodes)])
    with SCHEDULERS[scheduler](cluster) as pid:
        await asyncio.sleep(10)
        since = await version_now(client)
        began = time.monotonic()
        for n in range(nodes):
            await client.delete(PODS, f"full-{n}", NAMESPACE, grace_period_seconds=0)
        freed = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                await all_bound(client, nodes, "late", since)
            seconds = time.monotonic() - freed
        except TimeoutError:
            seconds = float("inf")
        print(f"    freeing took {freed - began:.2f} s", file=sys.stderr)
        result = Measured([seconds], [peak_mib(pid)])
    await clear(client)
    return result


async def prepare(cluster: RealCluster, client: HTTPClient, nodes: int, cpu: int = 32) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    for name, value in (("low", 10), ("high", 100)):
        await client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    await create(client, NODES, (node_manifest(i, max(1, nodes // 50), cpu) for i in range(nodes)))


# --- the report ------------------------------------------------------------------------------------


@dataclass
class Row:
    case: str
    bar: float
    theirs: Measured
    ours: Measured


def table(rows: list[Row], limit: float) -> str:
    lines = [
        "| case | kube-scheduler | Muster | ratio | bar | peak memory: kube-scheduler | Muster |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        theirs, ours = statistics.median(row.theirs.seconds), statistics.median(row.ours.seconds)
        memory = [f"{statistics.median(each.peak_mib):.0f} MiB" for each in (row.theirs, row.ours)]
        bar = f"{row.bar:.0f}x" if row.bar > 1 else ""
        cells = [row.case, _seconds(theirs), _seconds(ours), _ratio(theirs, ours, limit), bar, *memory]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _seconds(value: float) -> str:
    return "did not finish" if value == float("inf") else f"{value:.1f} s"


def _ratio(theirs: float, ours: float, limit: float) -> str:
    """How many times as long kube-scheduler took; at least so much where it was given up."""
    if ours == float("inf"):
        return "-"
    return f"> {limit / ours:.0f}x" if theirs == float("inf") else f"{theirs / ours:.1f}x"


def machine() -> str:
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "unknown",
    )
    memory = int(Path("/proc/meminfo").read_text().split()[1]) // (1 << 20)
    return (
        f"{os.cpu_count()} cores of {model}, {memory} GiB, shared by the scheduler, kube-apiserver, etcd and the load"
    )


# --- the run ---------------------------------------------------------------------------------------


class BuildFailed(Exception):
    """The programs of Kubernetes cannot be had here, and why."""


def built(*programs: str) -> Path:
    """The folder with programs of Kubernetes, built if need be; all of them if none is named."""
    command = [ROOT / "e2e" / "kube" / "build.sh", *programs]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise BuildFailed(run.stderr.strip().splitlines()[-1] if run.stderr.strip() else "build.sh failed")
    return Path(run.stdout.strip().splitlines()[-1])


Measure = Callable[[str], Awaitable[Measured]]


async def repeat(name: str, bar: float, repetitions: int, only: list[str], measure: Measure) -> Row:
    row = Row(name, bar, Measured(), Measured())
    for _ in range(repetitions):
        for scheduler, into in (("kube-scheduler", row.theirs), ("muster", row.ours)):
            if only and scheduler not in only:
                into.seconds.append(float("inf"))
                into.peak_mib.append(0.0)
                continue
            found = await measure(scheduler)
            into.seconds += found.seconds
            into.peak_mib += found.peak_mib
            print(f"{name}: {scheduler} {found.seconds[0]:.2f} s, {found.peak_mib[0]:.0f} MiB", file=sys.stderr)
    return row


async def bench(options: argparse.Namespace, binaries: Path) -> list[Row]:
    every = cases(options.quick)
    chosen = [case for case in every if case.name == options.case] or [c for c in every if options.case in c.name]
    rows: list[Row] = []
    extra = not options.case
    again = (options.repetitions, options.scheduler)
    for case in chosen:
        title = f"{case.name}: {case.gangs:,}" + (f" x {case.size:,}" if case.size > 1 else "")
        # A server of its own for each: one that has served others for an hour is slower.
        with RealCluster(binaries) as cluster:
            async with HTTPClient(load(cluster.kubeconfig)) as client:
                await prepare(cluster, client, case.nodes)

                async def one(scheduler: str, case: Case = case, on: Any = (cluster, client)) -> Measured:
                    return await measure_case(*on, case, scheduler, options.limit)

                rows.append(await repeat(title, case.bar, *again, one))
    nodes = 20 if options.quick else 100
    with RealCluster(binaries) as cluster:
        async with HTTPClient(load(cluster.kubeconfig)) as client:
            await prepare(cluster, client, nodes, cpu=10)
            evicted = f"{nodes} nodes, {nodes * 10:,} evicted"
            for title, bar, measure in (
                (f"gang preemption, from the start of the process: {evicted}", 1, measure_preemption),
                (
                    f"gang preemption, from the creation of the gang: {evicted}",
                    PREEMPTION_BAR,
                    measure_preemption_running,
                ),
                (f"parked gang of {nodes}: from freed room to bound", 1, measure_parked),
            ):
                if extra or options.case in title:

                    async def other(scheduler: str, measure: Any = measure) -> Measured:
                        return await measure(cluster, client, nodes, scheduler, options.limit)

                    rows.append(await repeat(title, bar, *again, other))
    return rows


def figures() -> Iterator[Figure]:
    """Preemption of 1,000 pods by schedulers that run and are idle; `make bench-cluster` has the other cases."""
    name = "gang preemption on a real API server, 1,000 evicted: kube-scheduler against Muster"
    try:
        binaries = built("kube-apiserver", "etcd", "kube-scheduler")
    except BuildFailed as error:
        yield Figure.not_measured(name, "times", str(error), floor=PREEMPTION_BAR)
        return
    options = argparse.Namespace(
        quick=False, case="from the creation of the gang", repetitions=3, scheduler=[], limit=400
    )
    (row,) = asyncio.run(bench(options, binaries))
    theirs, ours = statistics.median(row.theirs.seconds), statistics.median(row.ours.seconds)
    note = f"{theirs:.1f} s against {ours:.1f} s; both wait for the API server, which is given two writes a victim"
    yield Figure(name, theirs / ours, "times", floor=PREEMPTION_BAR, note=note)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, once")
    parser.add_argument("--case", default="", help="only the cases with this in their name")
    parser.add_argument("--scheduler", action="append", default=[], choices=SCHEDULERS, help="only this one")
    parser.add_argument("--limit", type=float, default=400.0, help="seconds until a case is given up")
    parser.add_argument("--json", type=Path, help="write every figure to a file")
    options = parser.parse_args()
    if options.quick:
        options.repetitions = 1
    try:
        rows = asyncio.run(bench(options, built()))
    except BuildFailed as error:
        sys.exit(str(error))
    print(f"{machine()}.\n")
    print(table(rows, options.limit))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
