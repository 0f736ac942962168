"""Creates the Workload and the PodGroup of Jobs that ask for gang scheduling in their own spec.

Names are deterministic, so that a controller that is restarted between two writes finds what it has created.
"""

from __future__ import annotations

from typing import Any

from muster.api.errors import ApiError
from muster.api.resources import JOBS, POD_GROUPS, WORKLOADS
from muster.client.protocol import Client
from muster.controllers.events import ControllerEvents
from muster.controllers.objects import UnstructuredObject, controller_of
from muster.controllers.pod_control import controller_reference

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST = 253

JSON = dict[str, Any]


def wants_group(job: UnstructuredObject) -> bool:
    """Whether this controller makes the Job's group: it asks for one, has no controller and names no group itself."""
    pod_spec: JSON = (job.spec.get("template") or {}).get("spec") or {}
    return (
        job.spec.get("scheduling") is not None
        and pod_spec.get("schedulingGroup") is None
        and controller_of(job.metadata) is None
    )


async def ensure_group(
    client: Client, events: ControllerEvents, job: UnstructuredObject, never_started: bool
) -> JSON | None:
    """The Job's PodGroup, created if the Job is new; None if it has none."""
    workload_name, template_name = names_of(job)
    group_name = group_name_of(workload_name, template_name)
    found = await _get(client, POD_GROUPS, group_name, job)
    if found is None:
        if not never_started:
            return None
        found = await _make(client, events, job, workload_name, template_name)
    await _follow_minimum(client, job, found, workload_name)
    return found


async def _make(
    client: Client, events: ControllerEvents, job: UnstructuredObject, workload_name: str, template_name: str
) -> JSON:
    namespace, name = job.metadata.namespace, job.metadata.name
    workload = await _get(client, WORKLOADS, workload_name, job)
    if workload is None:
        workload = await client.create(WORKLOADS, _workload(job, workload_name, template_name), namespace)
        text = f"Created Workload {workload_name} for Job {name}"
        await events.normal(JOBS, job.metadata, "WorkloadCreated", text)
    group_name = group_name_of(workload_name, template_name)
    group = await client.create(POD_GROUPS, _group(job, group_name, workload, template_name), namespace)
    await events.normal(JOBS, job.metadata, "PodGroupCreated", f"Created PodGroup {group_name} for Job {name}")
    return group


async def _get(client: Client, resource: Any, name: str, job: UnstructuredObject) -> JSON | None:
    try:
        found = await client.get(resource, name, job.metadata.namespace)
    except ApiError as error:
        if error.code != 404:
            raise
        return None
    owners: list[JSON] = found["metadata"].get("ownerReferences") or []
    if not any(each.get("uid") == job.metadata.uid for each in owners):
        raise ApiError(409, "AlreadyExists", f'{resource.plural} "{name}" belongs to somebody else')
    return found


async def _follow_minimum(client: Client, job: UnstructuredObject, group: JSON, workload_name: str) -> None:
    """An elastic gang: a changed minimum of the Job reaches the group and its template."""
    wanted = _policy(job).get("gang")
    current = ((group.get("spec") or {}).get("schedulingPolicy") or {}).get("gang")
    if wanted is None or current is None or current.get("minCount") == wanted["minCount"]:
        return
    namespace = job.metadata.namespace
    workload = await _get(client, WORKLOADS, workload_name, job)
    if workload is not None:
        templates: list[JSON] = workload["spec"]["podGroupTemplates"]
        templates[0]["schedulingPolicy"]["gang"]["minCount"] = wanted["minCount"]
        await client.update(WORKLOADS, workload)
    patch = {"spec": {"schedulingPolicy": {"gang": {"minCount": wanted["minCount"]}}}}
    await client.patch(POD_GROUPS, group["metadata"]["name"], patch, namespace)


def _policy(job: UnstructuredObject) -> JSON:
    asked: JSON = (job.spec.get("scheduling") or {}).get("schedulingPolicy") or {"basic": {}}
    if asked.get("gang") is None:
        return {"basic": {}}
    parallelism = job.spec.get("parallelism")
    default = max(1, 1 if parallelism is None else int(parallelism))
    return {"gang": {"minCount": asked["gang"].get("minCount") or default}}


def _template(job: UnstructuredObject) -> JSON:
    """What template and group have in common."""
    scheduling: JSON = job.spec.get("scheduling") or {}
    made: JSON = {"schedulingPolicy": _policy(job)}
    for key in ("schedulingConstraints", "disruptionMode", "resourceClaims"):
        if scheduling.get(key):
            made[key] = scheduling[key]
    priority_class = ((job.spec.get("template") or {}).get("spec") or {}).get("priorityClassName")
    if priority_class:
        made["priorityClassName"] = priority_class
    return made


def _workload(job: UnstructuredObject, name: str, template_name: str) -> JSON:
    return {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "ownerReferences": [controller_reference(JOBS, job.metadata)],
        },
        "spec": {
            "controllerRef": {"apiGroup": JOBS.group, "kind": JOBS.kind, "name": job.metadata.name},
            "podGroupTemplates": [{"name": template_name, **_template(job)}],
        },
    }


def _group(job: UnstructuredObject, name: str, workload: JSON, template_name: str) -> JSON:
    workload_name = workload["metadata"]["name"]
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "ownerReferences": [
                controller_reference(JOBS, job.metadata),
                owner_reference(WORKLOADS.api_version, WORKLOADS.kind, workload),
            ],
        },
        "spec": {"workloadRef": {"workloadName": workload_name, "templateName": template_name}, **_template(job)},
    }


def owner_reference(api_version: str, kind: str, obj: JSON) -> JSON:
    """A reference to an owner that does not manage the object."""
    return {"apiVersion": api_version, "kind": kind, "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def names_of(job: UnstructuredObject) -> tuple[str, str]:
    """The names of a Job's Workload and of the template in it."""
    suffix = safe_hash(f"(types.UID){job.metadata.uid}")
    name = job.metadata.name[: _LONGEST - len(suffix) - 1]
    return f"{name}-{suffix}", f"{job.metadata.name}-pgt-0"[-63:].lstrip("-.")


def group_name_of(workload: str, template: str) -> str:
    suffix = safe_hash(workload + template)
    room = _LONGEST - len(suffix) - 2
    if len(workload) + len(template) > room:
        half = room // 2
        kept = max(half, room - len(template))
        workload = workload[:kept]
        template = template[: room - len(workload)]
    return f"{workload}-{template}-{suffix}"


def safe_hash(text: str) -> str:
    """FNV-1a of the text, written with letters that cannot form words."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(value))
