"""Manifests as the scheduler would see them once submitted: defaulted, admitted, validated, Jobs expanded to pods.

The way there is the real one: an API server in memory with its controllers takes the manifests, so whatever it
refuses here it would refuse there, in the same words.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from muster.api.errors import ApiError
from muster.api.resources import JOBS, NAMESPACES, PODS, PRIORITY_CLASSES, Resource
from muster.cli import exits

if TYPE_CHECKING:
    from muster.client.protocol import Client
    from muster.scheduler.events import Changed
    from muster.scheduler.snapshot import Snapshot

SUBMITTED = ("PriorityClass", "Workload", "CompositePodGroup", "PodGroup", "Pod")
PATIENCE_SECONDS = 10.0


async def submit(objects: list[dict[str, Any]], snapshot: Snapshot, namespace: str) -> list[Changed]:
    """The facts that submitting these manifests would add to the cluster of the snapshot."""
    from muster.engine.gather import gather
    from muster.scheduler.events import Changed
    from muster.testing.cluster import api_server

    async with api_server(controllers=True) as plane:
        await _prepare(plane.client, objects, snapshot, namespace)
        for obj in objects:
            await _create(plane.client, obj, namespace)
        await _expanded(plane.client)
        found = await gather(plane.client)
    there = {o.metadata.name for o in snapshot.objects.get("PriorityClass", ())}
    return [
        Changed(kind, obj)
        for kind in SUBMITTED
        for obj in found.objects.get(kind, ())
        if kind != "PriorityClass" or obj.metadata.name not in there
    ]


async def _prepare(client: Client, objects: list[dict[str, Any]], snapshot: Snapshot, namespace: str) -> None:
    """What admission asks for: namespaces and priority classes."""
    names = {str((obj.get("metadata") or {}).get("namespace") or namespace) for obj in objects} - {"default"}
    own = {
        str((o.get("metadata") or {}).get("name")) for o in objects if o.get("kind") in ("Namespace", "PriorityClass")
    }
    for name in sorted(names - own):
        await _quietly(client, NAMESPACES, {"metadata": {"name": name}})
    for each in snapshot.objects.get("PriorityClass", ()):
        if each.metadata.name not in own:
            body = {
                "metadata": {"name": each.metadata.name},
                "value": each.value,
                "globalDefault": each.global_default,
                "preemptionPolicy": each.preemption_policy or "PreemptLowerPriority",
            }
            await _quietly(client, PRIORITY_CLASSES, body)


async def _quietly(client: Client, resource: Resource, obj: dict[str, Any]) -> None:
    try:
        await client.create(resource, {"apiVersion": resource.api_version, "kind": resource.kind, **obj})
    except ApiError as error:
        if error.code not in (409, 403, 422):  # there already, or a system class
            raise


async def _create(client: Client, obj: dict[str, Any], namespace: str) -> None:
    kind, version = str(obj.get("kind")), str(obj.get("apiVersion"))
    name = (obj.get("metadata") or {}).get("name") or (obj.get("metadata") or {}).get("generateName") or "?"
    resource = await resource_of(client, version, kind)
    if resource is None:
        raise exits.Failure(f"{kind}/{name}: {version} has no kind {kind} that can be simulated", exits.BAD_INPUT)
    where = (obj.get("metadata") or {}).get("namespace") or namespace
    try:
        await client.create(resource, obj, where if resource.namespaced else None)
    except ApiError as error:
        raise exits.Failure(f"{kind}/{name}: {error.message}", exits.BAD_INPUT) from error


async def resource_of(client: Client, api_version: str, kind: str) -> Resource | None:
    """The resource that serves a kind, as discovery names it."""
    group, _, version = api_version.rpartition("/")
    path = f"/apis/{api_version}" if group else f"/api/{api_version}"
    try:
        answer = await client.request("GET", path)
    except ApiError:
        return None
    for each in answer.get("resources") or []:
        if each["kind"] == kind and "/" not in each["name"]:
            return Resource(group, version, each["name"], kind, each["namespaced"])
    return None


async def _expanded(client: Client) -> None:
    """Wait until the controllers have made the pods that Jobs and Deployments ask for."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    before, quiet = -1, 0
    while quiet < 4 and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.05)
        count = len((await client.list(PODS)).items)
        settled = all(_has_pods(job) for job in (await client.list(JOBS)).items)
        quiet = quiet + 1 if count == before and settled else 0
        before = count


def _has_pods(job: dict[str, Any]) -> bool:
    spec, status = job.get("spec") or {}, job.get("status") or {}
    wanted = min(int(spec.get("parallelism") or 1), int(spec.get("completions") or spec.get("parallelism") or 1))
    return bool(spec.get("suspend")) or int(status.get("active") or 0) >= wanted
