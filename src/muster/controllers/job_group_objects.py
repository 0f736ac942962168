"""The Workload and the PodGroup of a Job, as JSON, under the names that Kubernetes gives them.

Pure. Names follow from the Job's uid, so that a controller that is restarted between two writes finds what it has
created, and so does kube-controller-manager.
"""

from __future__ import annotations

from typing import Any

from muster.api.resources import JOBS, POD_GROUPS, WORKLOADS
from muster.controllers.objects import UnstructuredObject
from muster.controllers.pod_control import controller_reference

TEMPLATE_ANNOTATION = "scheduling.k8s.io/group-template-name"
PARENT_ANNOTATION = "scheduling.k8s.io/parent-compositepodgroup"

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST = 253

JSON = dict[str, Any]


def policy_of(minimum: int | None) -> JSON:
    return {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}


def workload_for(job: UnstructuredObject, minimum: int | None) -> JSON:
    """The Workload of a Job that no other object controls, with its one template."""
    name, template_name = names_of(job)
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
            "podGroupTemplates": [{"name": template_name, **_template(job, minimum)}],
        },
    }


def _template(job: UnstructuredObject, minimum: int | None) -> JSON:
    scheduling: JSON = job.spec.get("scheduling") or {}
    made: JSON = {"schedulingPolicy": policy_of(minimum)}
    for key in ("schedulingConstraints", "disruptionMode", "resourceClaims"):
        if scheduling.get(key):
            made[key] = scheduling[key]
    priority_class = ((job.spec.get("template") or {}).get("spec") or {}).get("priorityClassName")
    if priority_class:
        made["priorityClassName"] = priority_class
    return made


def group_for(job: UnstructuredObject, name: str, workload: JSON, template: JSON, *, owned: bool) -> JSON:
    """The PodGroup of a Job, made from a template. `owned`: the Workload is the Job's own, and owns the group too."""
    owners = [controller_reference(JOBS, job.metadata)]
    if owned:
        owners.append(owner_reference(WORKLOADS.api_version, WORKLOADS.kind, workload))
    spec: JSON = {
        "workloadRef": {"workloadName": workload["metadata"]["name"], "templateName": template["name"]},
        **{key: value for key, value in template.items() if key != "name" and value not in (None, "")},
    }
    parent = (job.metadata.annotations or {}).get(PARENT_ANNOTATION)
    if parent and not owned:
        spec["parentCompositePodGroupName"] = parent
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {"name": name, "namespace": job.metadata.namespace, "ownerReferences": owners},
        "spec": spec,
    }


def template_named(workload_spec: JSON, name: str) -> JSON | None:
    """The PodGroupTemplate of that name, at any level of a Workload's spec."""
    for template in workload_spec.get("podGroupTemplates") or ():
        if template.get("name") == name:
            return template
    for composite in workload_spec.get("compositePodGroupTemplates") or ():
        found = template_named(composite, name)
        if found is not None:
            return found
    return None


def owner_reference(api_version: str, kind: str, obj: JSON) -> JSON:
    """A reference to an owner that does not manage the object."""
    return {"apiVersion": api_version, "kind": kind, "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def names_of(job: UnstructuredObject) -> tuple[str, str]:
    """The names of a Job's Workload and of the template in it."""
    suffix = safe_hash(f"(types.UID){job.metadata.uid}")
    name = job.metadata.name[: _LONGEST - len(suffix) - 1]
    return f"{name}-{suffix}", f"{job.metadata.name}-pgt-0"[-63:].lstrip("-.")


def group_name_of(workload: str, template: str, also: str = "") -> str:
    """The name of a group made from a template; `also` tells it from another group of the same template."""
    suffix = safe_hash(workload + template + also)
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
