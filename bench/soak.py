"""`make soak`: a control plane under churn for as long as asked, with its promises checked all the way.

Gangs of random size, some inside a rack, some of higher priority, are submitted, run for a second or two on simulated
nodes and are deleted; nodes fail and come back. Every few seconds the stored objects are read: no gang may stand bound
in part while none of its binds is in flight, and no node may hold more than it has. Memory and open files are printed
and compared with those after the first tenth of the run.

`python -m bench.soak --minutes 30 --seed 1`
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from muster.api import quantity
from muster.api.errors import ApiError
from muster.api.resources import NODES, POD_GROUPS, PODS, PRIORITY_CLASSES
from muster.client.protocol import Client
from muster.nodes.inventory import FAILED, RACK
from muster.plane.options import NodeOptions, Options
from muster.plane.plane import Plane

NODE_COUNT, NODE_CPU = 64, 16
GANGS_AT_ONCE = 40
SETTLED_SECONDS = 3.0  # a gang may stand in part for as long as its binds are in flight, not longer


class Churn:
    """Submits and deletes gangs for ever."""

    def __init__(self, client: Client, seed: int) -> None:
        self.client = client
        self.random = random.Random(seed)
        self.number = 0
        self.minimums: dict[str, int] = {}
        self.partial_since: dict[str, float] = {}
        self.ran = Counter[str]()

    async def submit(self) -> None:
        self.number += 1
        name = f"g{self.number}"
        size = self.random.choice((1, 2, 4, 8, 16))
        urgent = self.random.random() < 0.1
        spec: dict[str, Any] = {
            "schedulingPolicy": {"gang": {"minCount": size}},
            "priorityClassName": "urgent" if urgent else "batch",
            "disruptionMode": {self.random.choice(("single", "all")): {}},
        }
        if self.random.random() < 0.4:
            spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
        await self.client.create(POD_GROUPS, _object(POD_GROUPS, name, spec), "default")
        self.minimums[name] = size
        for index in range(size):
            pod = _object(PODS, f"{name}-{index}", self._pod(name, spec["priorityClassName"]))
            pod["metadata"]["annotations"] = {"muster.dev/run-seconds": str(self.random.choice((1, 2)))}
            await self.client.create(PODS, pod, "default")

    def _pod(self, group: str, priority_class: str) -> dict[str, Any]:
        cpu = self.random.choice((1, 2, 4))
        resources = {"requests": {"cpu": str(cpu)}}
        return {
            "schedulingGroup": {"podGroupName": group},
            "priorityClassName": priority_class,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i", "resources": resources}],
        }

    async def sweep(self, now: float) -> None:
        """Check the promises, and delete the gangs that have ended."""
        pods = (await self.client.list(PODS)).items
        by_group: dict[str, list[dict[str, Any]]] = {}
        for pod in pods:
            by_group.setdefault(pod["spec"]["schedulingGroup"]["podGroupName"], []).append(pod)
        _check_nodes((await self.client.list(NODES)).items, pods)
        for name, members in by_group.items():
            self._check_gang(name, members, now)
            if all(p["status"].get("phase") in ("Succeeded", "Failed") for p in members):
                await self._end(name, members)

    def _check_gang(self, name: str, members: list[dict[str, Any]], now: float) -> None:
        complete = len(members) == self.minimums.get(name)
        bound = sum(bool(p["spec"].get("nodeName")) for p in members)
        if not complete or bound in (0, len(members)):
            self.partial_since.pop(name, None)
            return
        since = self.partial_since.setdefault(name, now)
        assert now - since < SETTLED_SECONDS, f"{name} stands in part: {bound} of {len(members)}"

    async def _end(self, name: str, members: list[dict[str, Any]]) -> None:
        self.ran["gangs"] += 1
        self.ran["pods"] += len(members)
        self.minimums.pop(name, None)
        for pod in members:
            await self._delete(PODS, pod["metadata"]["name"])
        await self._delete(POD_GROUPS, name)

    async def _delete(self, resource: Any, name: str) -> None:
        try:
            await self.client.delete(resource, name, "default", grace_period_seconds=0)
        except ApiError as error:
            if error.code != 404:
                raise

    async def shake(self) -> None:
        """Cut a node's power, or give it back."""
        name = f"node-{self.random.randrange(NODE_COUNT)}"
        failed = "true" if self.random.random() < 0.5 else None
        await self.client.patch(NODES, name, {"metadata": {"annotations": {FAILED: failed}}})


def _object(resource: Any, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}


def _check_nodes(nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> None:
    used = Counter[str]()
    for pod in pods:
        if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            used[pod["spec"]["nodeName"]] += quantity.milli(
                pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            )
    for node in nodes:
        room = quantity.milli(node["status"]["allocatable"]["cpu"])
        assert used[node["metadata"]["name"]] <= room, f"{node['metadata']['name']} is overcommitted"


def _footprint() -> tuple[float, int]:
    """Resident memory in MB and the number of open files."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, len(list(Path("/proc/self/fd").iterdir()))


async def soak(minutes: float, seed: int) -> None:
    options = Options(https=False, nodes=NodeOptions(NODE_COUNT, cpu=str(NODE_CPU)))
    async with Plane(options) as plane:
        for name, value in (("batch", 10), ("urgent", 1000)):
            body = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": "PriorityClass", "metadata": {"name": name}}
            await plane.client.create(PRIORITY_CLASSES, body | {"value": value})
        churn = Churn(plane.client, seed)
        start = time.monotonic()
        end, warm, shown = start + minutes * 60, None, start
        while (now := time.monotonic()) < end:
            while len(churn.minimums) < GANGS_AT_ONCE:
                await churn.submit()
            await asyncio.sleep(0.3)
            await churn.sweep(time.monotonic())
            if churn.random.random() < 0.05:
                await churn.shake()
            if warm is None and now - start > minutes * 6:
                warm = _footprint()
            if now - shown > 10:
                shown = now
                print(f"{now - start:6.0f}s  {_told(churn)}")
        first, last = warm or _footprint(), _footprint()
        print(f"done: {_told(churn)}; after a tenth of it {first[0]:.0f} MB and {first[1]} files were in use")
        assert last[0] < first[0] * 1.5 + 50, "memory grew"


def _told(churn: Churn) -> str:
    memory, files = _footprint()
    return f"{churn.ran['gangs']} gangs, {churn.ran['pods']} pods, {memory:.0f} MB, {files} files"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    asyncio.run(soak(arguments.minutes, arguments.seed))
    sys.exit(0)


if __name__ == "__main__":
    main()
