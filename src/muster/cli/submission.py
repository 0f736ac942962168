"""Manifests as the scheduler would see them once submitted: defaulted, admitted, validated, Jobs expanded to pods.

The way there is the real one: an API server in memory with its controllers takes the manifests, so whatever it
refuses here it would refuse there, in the same words. What comes out is in the order of submission, and gets uids in
that order, so that the same manifests lead to the same answer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from muster.api.errors import ApiError
from muster.api.resources import JOBS, NAMESPACES, PODS, PRIORITY_CLASSES, Resource
from muster.cli import exits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muster.client.protocol import Client
    from muster.scheduler.events import Changed
    from muster.scheduler.snapshot import Snapshot

Batch = list[dict[str, Any]]
Name = tuple[str, str, str]  # kind, namespace, name

FIRST = ("Namespace", "PriorityClass")  # what admission of the others asks for
PATIENCE_SECONDS = 10.0


async def submit(batches: list[Batch], snapshot: Snapshot, namespace: str) -> list[list[Changed]]:
    """For each batch of manifests the facts that submitting it would add to the cluster of the snapshot."""
    from muster.engine.cluster_snapshot import take_snapshot
    from muster.testing.cluster import api_server

    facts: list[list[Changed]] = []
    async with api_server(controllers=True) as plane:
        client = plane.client
        await _prepare(client, [obj for batch in batches for obj in batch], snapshot, namespace)
        known = {_uid(obj) for _, obj in _objects(await take_snapshot(client))}
        ours = Numbering(snapshot)
        # Wherever they stand: whoever submits several files expects them to know each other's classes.
        for obj in (obj for batch in batches for obj in batch if obj.get("kind") in FIRST):
            await _create(client, obj, namespace)
        for batch in batches:
            for obj in (obj for obj in batch if obj.get("kind") not in FIRST):
                await _create(client, obj, namespace)
            await _expanded(client)
            new = [(kind, obj) for kind, obj in _objects(await take_snapshot(client)) if _uid(obj) not in known]
            known |= {_uid(obj) for _, obj in new}
            facts.append(ours.facts(new))
    return facts


def _objects(snapshot: Snapshot) -> Iterator[tuple[str, Any]]:
    for event in snapshot.events():
        yield event.kind, event.object


def _uid(obj: Any) -> str:
    return obj.metadata.uid


class Numbering:
    """Fits what was submitted into the cluster: uids in order; what the cluster has already is changed, not made."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._there: dict[Name, Any] = {_name(kind, obj): obj for kind, obj in _objects(snapshot)}
        self._count = 0

    def facts(self, objects: list[tuple[str, Any]]) -> list[Changed]:
        from muster.scheduler.events import Changed

        order = sorted(objects, key=lambda item: (item[0] == "Pod", *_name(*item)))
        return [Changed(kind, self._placed(kind, obj)) for kind, obj in order if not self._is_there(kind, obj)]

    def _is_there(self, kind: str, obj: Any) -> bool:
        """What cannot be changed by submitting it again: it stays as it is."""
        return kind in ("Pod", *FIRST) and _name(kind, obj) in self._there

    def _placed(self, kind: str, obj: Any) -> Any:
        old = self._there.get(_name(kind, obj))
        if old is not None:
            kept = {"status": old.status} if hasattr(old, "status") else {}
            return msgspec.structs.replace(obj, metadata=old.metadata, **kept)
        self._count += 1
        meta = msgspec.structs.replace(obj.metadata, uid=f"simulated-{self._count:06d}")
        return msgspec.structs.replace(obj, metadata=meta)


def _name(kind: str, obj: Any) -> Name:
    return (kind, obj.metadata.namespace, obj.metadata.name)


# --- the server in memory --------------------------------------------------------------------------


async def _prepare(client: Client, objects: Batch, snapshot: Snapshot, namespace: str) -> None:
    """What admission asks for: namespaces and priority classes of the cluster."""
    names = {str((obj.get("metadata") or {}).get("namespace") or namespace) for obj in objects} - {"default"}
    own = {str((o.get("metadata") or {}).get("name")) for o in objects if o.get("kind") in FIRST}
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
    """Wait until the controllers have made the pods that Jobs, Deployments and StatefulSets ask for."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    before, quiet = -1, 0
    while quiet < 3 and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.03)
        count = len((await client.list(PODS)).items)
        settled = all(_has_pods(job) for job in (await client.list(JOBS)).items)
        quiet = quiet + 1 if count == before and settled else 0
        before = count


def _has_pods(job: dict[str, Any]) -> bool:
    spec, status = job.get("spec") or {}, job.get("status") or {}
    wanted = min(int(spec.get("parallelism") or 1), int(spec.get("completions") or spec.get("parallelism") or 1))
    return bool(spec.get("suspend")) or int(status.get("active") or 0) >= wanted
