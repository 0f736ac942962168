"""Gangs of two schedulers that race for the same nodes, round after round, and what became of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from muster.api.resources import PODS, Resource
from muster.client.protocol import Client
from muster.testing import a_pod, a_pod_group
from tests.build.manifests import in_version

GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", True)
NAMESPACE = "default"
NODES = 4  # a gang of so many pods, each of which fills a node
SETTLED = 0.4  # seconds without another bind
PATIENCE = 30.0


@dataclass
class Tally:
    """What was counted over all rounds."""

    whole: Counter[str] = field(default_factory=Counter[str])  # gangs that started, by scheduler
    half: list[str] = field(default_factory=list[str])  # gangs bound below their minimum
    rejected: list[str] = field(default_factory=list[str])  # pods that a kubelet would not admit


async def race(client: Client, schedulers: tuple[str, str], rounds: int, cpu: str) -> Tally:
    """In each round every scheduler gets a gang that needs all nodes; when one has ended, the other must start."""
    tally = Tally()
    for number in range(rounds):
        gangs = {f"{name}-{number}": name for name in schedulers}
        await asyncio.gather(*(_create(client, gang, name, cpu) for gang, name in gangs.items()))
        pods = await _settled(client)
        _count(tally, pods, gangs)
        await _delete(client, [pod for pod in pods if pod["spec"].get("nodeName")])
        left = [pod for pod in pods if not pod["spec"].get("nodeName")]
        if left:
            pods = await _settled(client)
            _count(tally, pods, gangs)
            await _delete(client, pods)
        await asyncio.gather(*(client.delete(GROUPS, gang, NAMESPACE) for gang in gangs))
    return tally


async def _create(client: Client, gang: str, scheduler: str, cpu: str) -> None:
    await client.create(GROUPS, in_version(a_pod_group(gang, min_count=NODES), "v1beta1"), NAMESPACE)
    pods = (a_pod(f"{gang}-{i}", cpu=cpu, group=gang, schedulerName=scheduler) for i in range(NODES))
    await asyncio.gather(*(client.create(PODS, pod, NAMESPACE) for pod in pods))


async def _settled(client: Client) -> list[dict[str, Any]]:
    """The pods, once a gang is bound and nothing has been bound for a while."""
    deadline = time.monotonic() + PATIENCE
    bound, since = -1, time.monotonic()
    while time.monotonic() < deadline:
        pods = (await client.list(PODS, NAMESPACE)).items
        now_bound = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
        if now_bound != bound:
            bound, since = now_bound, time.monotonic()
        elif bound >= NODES and time.monotonic() - since > SETTLED:
            return pods
        await asyncio.sleep(0.05)
    raise AssertionError(f"no gang was bound within {PATIENCE:g} s")


def _count(tally: Tally, pods: list[dict[str, Any]], gangs: dict[str, str]) -> None:
    for gang, scheduler in gangs.items():
        own = [pod for pod in pods if pod["metadata"]["name"].startswith(f"{gang}-")]
        bound = [pod for pod in own if pod["spec"].get("nodeName")]
        failed = [pod["metadata"]["name"] for pod in own if pod["status"].get("phase") == "Failed"]
        tally.rejected += failed
        if len(bound) == NODES and not failed:
            tally.whole[scheduler] += 1
        elif bound:
            tally.half.append(gang)


async def _delete(client: Client, pods: list[dict[str, Any]]) -> None:
    names = [pod["metadata"]["name"] for pod in pods]
    await asyncio.gather(*(client.delete(PODS, name, NAMESPACE, grace_period_seconds=0) for name in names))
