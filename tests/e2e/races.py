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


@dataclass(frozen=True)
class Loss:
    """A pod that a kubelet would not admit, because a pod of the other scheduler had been bound there before it."""

    pod: str
    after: float  # seconds from that bind to its own, as a watch showed them


@dataclass
class Tally:
    """What was counted over all rounds."""

    whole: Counter[str] = field(default_factory=Counter[str])  # gangs that started, by scheduler
    half: list[str] = field(default_factory=list[str])  # gangs bound below their minimum
    rejected: list[str] = field(default_factory=list[str])  # pods that a kubelet would not admit
    losses: list[Loss] = field(default_factory=list[Loss])  # of these, the ones that came second
    round_trips: list[float] = field(default_factory=list[float])  # seconds that a request took


async def race(client: Client, schedulers: tuple[str, str], rounds: int, cpu: str) -> Tally:
    """In each round every scheduler gets a gang that needs all nodes; when one has ended, the other must start."""
    tally, bound_at = Tally(), dict[str, float]()
    following = asyncio.create_task(_follow(client, bound_at))
    try:
        await _rounds(client, schedulers, rounds, cpu, tally, bound_at)
    finally:
        following.cancel()
    return tally


async def _follow(client: Client, bound_at: dict[str, float]) -> None:
    """Write down when a watch first shows each pod on a node."""
    while True:
        version = (await client.list(PODS, NAMESPACE)).resource_version
        async for event in client.watch(PODS, NAMESPACE, resource_version=version):
            if event.object is not None and event.object["spec"].get("nodeName"):  # a bookmark has no object
                bound_at.setdefault(event.object["metadata"]["name"], time.monotonic())


async def _rounds(
    client: Client, schedulers: tuple[str, str], rounds: int, cpu: str, tally: Tally, bound_at: dict[str, float]
) -> None:
    for number in range(rounds):
        gangs = {f"{name}-{number}": name for name in schedulers}
        await asyncio.gather(*(_create(client, gang, name, cpu) for gang, name in gangs.items()))
        pods = await _settled(client, tally)
        _count(tally, pods, gangs, bound_at)
        await _delete(client, [pod for pod in pods if pod["spec"].get("nodeName")])
        left = [pod for pod in pods if not pod["spec"].get("nodeName")]
        if left:
            pods = await _settled(client, tally)
            _count(tally, pods, gangs, bound_at)
            await _delete(client, pods)
        await asyncio.gather(*(client.delete(GROUPS, gang, NAMESPACE) for gang in gangs))


async def _create(client: Client, gang: str, scheduler: str, cpu: str) -> None:
    await client.create(GROUPS, in_version(a_pod_group(gang, min_count=NODES), "v1beta1"), NAMESPACE)
    pods = (a_pod(f"{gang}-{i}", cpu=cpu, group=gang, schedulerName=scheduler) for i in range(NODES))
    await asyncio.gather(*(client.create(PODS, pod, NAMESPACE) for pod in pods))


async def _settled(client: Client, tally: Tally) -> list[dict[str, Any]]:
    """The pods, once a gang is bound and nothing has been bound for a while."""
    deadline = time.monotonic() + PATIENCE
    bound, since = -1, time.monotonic()
    while time.monotonic() < deadline:
        asked = time.monotonic()
        pods = (await client.list(PODS, NAMESPACE)).items
        tally.round_trips.append(time.monotonic() - asked)
        now_bound = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
        if now_bound != bound:
            bound, since = now_bound, time.monotonic()
        elif bound >= NODES and time.monotonic() - since > SETTLED:
            return pods
        await asyncio.sleep(0.05)
    raise AssertionError(f"no gang was bound within {PATIENCE:g} s")


def _count(tally: Tally, pods: list[dict[str, Any]], gangs: dict[str, str], bound_at: dict[str, float]) -> None:
    for gang, scheduler in gangs.items():
        own = [pod for pod in pods if pod["metadata"]["name"].startswith(f"{gang}-")]
        bound = [pod for pod in own if pod["spec"].get("nodeName")]
        failed = [pod["metadata"]["name"] for pod in own if pod["status"].get("phase") == "Failed"]
        tally.rejected += failed
        tally.losses += [loss for name in failed if (loss := _loss(name, pods, own, bound_at)) is not None]
        if len(bound) == NODES and not failed:
            tally.whole[scheduler] += 1
        elif bound:
            tally.half.append(gang)


def _loss(name: str, pods: list[dict[str, Any]], own: list[dict[str, Any]], bound_at: dict[str, float]) -> Loss | None:
    """How long before a rejected pod the pod was bound that it met on its node."""
    node = next(pod["spec"]["nodeName"] for pod in own if pod["metadata"]["name"] == name)
    others = [p["metadata"]["name"] for p in pods if p["spec"].get("nodeName") == node and p not in own]
    before = [bound_at[name] - bound_at[other] for other in others if name in bound_at and other in bound_at]
    return Loss(name, max(before)) if before and max(before) > 0 else None


async def _delete(client: Client, pods: list[dict[str, Any]]) -> None:
    names = [pod["metadata"]["name"] for pod in pods]
    await asyncio.gather(*(client.delete(PODS, name, NAMESPACE, grace_period_seconds=0) for name in names))
