"""Devices: how long the scheduler decides about gangs with claims, and what devices cost those who have none.

A gang of 1,000 pods with one device each on 5,000 nodes with eight devices each; every device has an attribute of its
own, so that no two of a node are twins. No API server is involved; `bench.device_cluster` has that.

Run: python -m bench.devices
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from bench.figures import Figure
from bench.objects import a_node, a_pod
from muster.api import groups as api
from muster.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from muster.api.types import Pod, PodResourceClaimStatus
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.interface import events
from muster.scheduler.interface.decisions import Bind
from muster.scheduler.runtime.config import default_config

DRIVER = "gpu.example.com"
NODES, EACH, GANG = 5_000, 8, 1_000
RUNS = 7  # of pods without claims, with and without devices in the cluster, in turn


def a_slice(node: str, each: int = EACH) -> ResourceSlice:
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"index": {"int": number}, "model": {"string": "a"}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for number in range(each)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    return msgspec.convert({"metadata": {"name": node}, "spec": spec}, ResourceSlice)


def a_class() -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    return msgspec.convert({"metadata": {"name": "gpu"}, "spec": spec}, DeviceClass)


def a_claim(pod: str) -> ResourceClaim:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": pod, "controller": True}
    meta = {"name": pod, "namespace": "ns", "uid": f"claim-{pod}", "ownerReferences": [owner]}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    return msgspec.convert({"metadata": meta, "spec": spec}, ResourceClaim)


def a_device_pod(name: str, group: str) -> Pod:
    pod = a_pod(name, "1", "1Gi", group=group, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
    made = (PodResourceClaimStatus("gpu", name),)
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, resource_claim_statuses=made))


def a_group(name: str, size: int) -> api.PodGroup:
    policy = {"gang": {"minCount": size}}
    meta = {"name": name, "namespace": "ns", "uid": name}
    return msgspec.convert({"metadata": meta, "spec": {"schedulingPolicy": policy}}, api.PodGroup)


def a_scheduler(nodes: int, *, devices: bool) -> Scheduler:
    scheduler = Scheduler(default_config(), seed=0)
    for number in range(nodes):
        tell(scheduler, a_node(f"n{number}", "64", "256Gi"))
        if devices:
            tell(scheduler, a_slice(f"n{number}"))
    tell(scheduler, a_class())
    scheduler.handle(events.CacheSynced(), 0.0)
    return scheduler


def tell(scheduler: Scheduler, obj: Any) -> None:
    scheduler.handle(events.ObjectUpdated(type(obj).__name__, obj), 0.0)


def decide(scheduler: Scheduler, objects: Sequence[Any]) -> tuple[int, list[float]]:
    """Tell it of objects; how many binds it then decides, and how long each slice of that took."""
    for obj in objects:
        tell(scheduler, obj)
    slices: list[float] = []
    binds = 0
    while not binds:
        begin = time.process_time()  # on a shared machine what others take is no cost of ours
        found = scheduler.next(0.0)
        slices.append(time.process_time() - begin)
        binds += sum(isinstance(decision, Bind) for decision in found)
        if not found and scheduler.is_idle(0.0):
            break
    return binds, slices


def device_gang(name: str, size: int) -> list[Any]:
    pods = [f"{name}-{number}" for number in range(size)]
    return [a_group(name, size), *map(a_claim, pods), *(a_device_pod(pod, name) for pod in pods)]


def plain_gang(name: str, size: int) -> list[Any]:
    return [a_group(name, size), *(a_pod(f"{name}-{number}", "1", "1Gi", group=name) for number in range(size))]


def decision(nodes: int = NODES, size: int = GANG) -> Iterator[Figure]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    scheduler = a_scheduler(nodes, devices=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    decide(scheduler, device_gang("first", 1))  # loads the evaluator of expressions
    binds, slices = decide(scheduler, device_gang("gang", size))
    if binds != size:
        raise SystemExit(f"{binds} of {size} pods were bound")
    what = f"{size:,} pods with a device each, {nodes:,} nodes with {EACH} devices"
    yield Figure(f"{what}: decided in", sum(slices) * 1000, "ms", ceiling=300)
    full = nodes * EACH - size
    _, slices = decide(scheduler, device_gang("large", min(size, full) + 1))
    yield Figure(f"{what}: the next gang of as many and one", sum(slices) * 1000, "ms", ceiling=600)
    yield Figure(f"memory for {nodes * EACH:,} devices", memory - before, "MB", ceiling=1000)


def cost_without_claims(nodes: int = NODES, size: int = GANG) -> Figure:
    """A gang without claims, in a cluster with devices against one without: the median of pairs in turn."""
    ratios: list[float] = []
    for run in range(RUNS):
        times: list[float] = []
        for devices in (True, False) if run % 2 else (False, True):
            scheduler = a_scheduler(nodes, devices=devices)
            decide(scheduler, plain_gang("first", 1))
            times.append(sum(decide(scheduler, plain_gang("gang", size))[1]))
        ratios.append(times[0] / times[1] if run % 2 else times[1] / times[0])
    return Figure("a gang without claims beside devices, against a cluster without", statistics.median(ratios), "times")


def figures() -> Iterator[Figure]:
    yield from decision()
    yield cost_without_claims()


def main() -> None:
    for figure in figures():
        print(figure, flush=True)


if __name__ == "__main__":
    main()
