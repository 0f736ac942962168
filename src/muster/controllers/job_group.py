"""Gives Jobs their groups: a Workload and a PodGroup for a Job of its own, a PodGroup for one whose parent delegates.

They are made only for a Job that has never started, before its first pod, so that a Job from before the gate was
switched on is left as it is. What exists is found by its owner, in the watched collections; what was created a moment
ago and is not seen yet is remembered. The minimum of a gang follows the Job, or the parent's template.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.api.errors import ApiError
from muster.api.gates import INFER_JOB_GANG, WORKLOAD_WITH_JOB, FeatureGates
from muster.api.job_gangs import gang_annotation, minimum_of, pods_at_once
from muster.api.resources import JOBS, POD_GROUPS, WORKLOADS, Resource
from muster.client.protocol import Client
from muster.controllers.events import ControllerEvents
from muster.controllers.informers import ObjectStore
from muster.controllers.job_group_objects import (
    TEMPLATE_ANNOTATION,
    group_for,
    group_name_of,
    names_of,
    template_named,
    workload_for,
)
from muster.controllers.objects import UnstructuredObject, controller_of, controller_uid, json_of

JSON = dict[str, Any]
ParentKey = tuple[str, str, str, str]  # namespace, API group, kind, name


class GroupBlocked(Exception):
    """The Job waits for what its group is made from; the message says what."""


@dataclass(slots=True)
class _Made:
    """What was created for one Job and may not be seen yet."""

    workload: JSON | None = None
    group: JSON | None = None


def is_delegated(job: UnstructuredObject) -> bool:
    """Whether the Job's parent has the Workload and leaves the PodGroup to the Job's controller."""
    return TEMPLATE_ANNOTATION in (job.metadata.annotations or {}) and controller_of(job.metadata) is not None


def parent_of(job: UnstructuredObject) -> ParentKey | None:
    """The object that controls a Job."""
    owner = controller_of(job.metadata)
    if owner is None:
        return None
    return (job.metadata.namespace, owner.api_version.rpartition("/")[0], owner.kind, owner.name)


def described_by(workload: UnstructuredObject) -> ParentKey | None:
    """The object that a Workload describes."""
    reference: JSON = workload.spec.get("controllerRef") or {}
    if not reference.get("name"):
        return None
    return (
        workload.metadata.namespace,
        str(reference.get("apiGroup") or ""),
        str(reference.get("kind") or ""),
        str(reference["name"]),
    )


class JobGroups:
    """The groups of all Jobs."""

    def __init__(
        self,
        client: Client,
        events: ControllerEvents,
        gates: FeatureGates,
        workloads: ObjectStore,
        groups: ObjectStore,
    ) -> None:
        self._client = client
        self._events = events
        self._enabled = gates.enabled(WORKLOAD_WITH_JOB)
        self._infer = gates.enabled(INFER_JOB_GANG)
        self._workloads = workloads.index("by-controller", controller_uid)
        self._groups = groups.index("by-controller", controller_uid)
        self._described = workloads.index("by-controller-ref", described_by)
        self._made: dict[str, _Made] = {}  # by the Job's uid

    def forget(self, job_uid: str) -> None:
        self._made.pop(job_uid, None)

    async def group_of(self, job: UnstructuredObject, never_started: bool) -> JSON | None:
        """The Job's PodGroup, created if the Job is new; None if its pods name what the template says.

        Raises `GroupBlocked` where pods must wait.
        """
        pod_spec: JSON = (job.spec.get("template") or {}).get("spec") or {}
        if not self._enabled or pod_spec.get("schedulingGroup") is not None:
            return None
        try:
            if controller_of(job.metadata) is None:
                return await self._root(job, never_started)
            return await self._delegated(job, never_started) if is_delegated(job) else None
        except ApiError as error:
            if error.code not in (404, 409):
                await self._events.warning(JOBS, job.metadata, "FailedWorkloadCreate", error.message)
            raise

    # --- a Job of its own --------------------------------------------------------------------------

    async def _root(self, job: UnstructuredObject, never_started: bool) -> JSON | None:
        group = self._known_group(job)
        if group is None and not never_started:
            return None
        minimum = minimum_of(job.spec, gang_annotation(job.metadata.annotations, job.spec), infer=self._infer)
        if group is None:
            workload = self._known_workload(job) or await self._create_workload(job, minimum)
            templates: list[JSON] = workload["spec"].get("podGroupTemplates") or []
            if len(templates) != 1:
                raise GroupBlocked(f"Workload {workload['metadata']['name']} must have exactly one podGroupTemplate")
            name = group_name_of(workload["metadata"]["name"], templates[0]["name"])
            group = await self._create_group(job, group_for(job, name, workload, templates[0], owned=True))
        else:
            # An inferred gang that is no longer fully parallel stays one: of the pods that it still runs at once.
            await self._follow(job, group, minimum if minimum is not None else pods_at_once(job.spec))
        return group

    async def _create_workload(self, job: UnstructuredObject, minimum: int | None) -> JSON:
        workload = await self._create(WORKLOADS, workload_for(job, minimum), job)
        self._made.setdefault(job.metadata.uid, _Made()).workload = workload
        text = f"Created Workload {workload['metadata']['name']} for Job {job.metadata.name}"
        await self._events.normal(JOBS, job.metadata, "WorkloadCreated", text)
        return workload

    async def _follow(self, job: UnstructuredObject, group: JSON, minimum: int) -> None:
        """An elastic gang: a changed minimum reaches the template first, then the group."""
        workload = self._known_workload(job)
        template = template_named(workload["spec"], names_of(job)[1]) if workload is not None else None
        if workload is not None and template is not None and _minimum(template) not in (None, minimum):
            name = workload["metadata"]["name"]
            patch = {"spec": {"podGroupTemplates": [{**template, "schedulingPolicy": {"gang": {"minCount": minimum}}}]}}
            changed = await self._client.patch(WORKLOADS, name, patch, job.metadata.namespace)
            self._made.setdefault(job.metadata.uid, _Made()).workload = changed
        await self._set_minimum(job, group, minimum)

    # --- a Job whose parent delegates --------------------------------------------------------------

    async def _delegated(self, job: UnstructuredObject, never_started: bool) -> JSON | None:
        group = self._known_group(job)
        if group is None and not never_started:
            return None
        name = (job.metadata.annotations or {})[TEMPLATE_ANNOTATION]
        workload = self._workload_of_parent(job)
        template = template_named(workload["spec"], name) if workload is not None else None
        if workload is None or template is None:
            if group is not None:
                return group
            raise GroupBlocked(_missing(job, workload, name))
        if group is None:
            called = group_name_of(workload["metadata"]["name"], name)
            made = group_for(job, called, workload, template, owned=False)
            group = await self._create_delegated(job, made, workload, name)
        elif (minimum := _minimum(template)) is not None:
            await self._set_minimum(job, group, minimum)
        return group

    async def _create_delegated(self, job: UnstructuredObject, made: JSON, workload: JSON, template: str) -> JSON:
        try:
            return await self._create_group(job, made)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        # Another Job of the same parent has the template's group already: this one is told apart by its uid.
        name = group_name_of(workload["metadata"]["name"], template, job.metadata.uid)
        return await self._create_group(job, {**made, "metadata": {**made["metadata"], "name": name}})

    def _workload_of_parent(self, job: UnstructuredObject) -> JSON | None:
        found = self._described.get(parent_of(job))
        parent = controller_of(job.metadata)
        mine = [each for each in found if parent is not None and controller_uid(each) == parent.uid]
        chosen = min(mine or found, key=lambda each: each.metadata.name, default=None)
        return json_of(chosen) if chosen is not None else None

    # --- both --------------------------------------------------------------------------------------

    def _known_workload(self, job: UnstructuredObject) -> JSON | None:
        made = self._made.get(job.metadata.uid, _Made()).workload
        return _newest(self._workloads.get(job.metadata.uid), made)

    def _known_group(self, job: UnstructuredObject) -> JSON | None:
        made = self._made.get(job.metadata.uid, _Made()).group
        return _newest(self._groups.get(job.metadata.uid), made)

    async def _create_group(self, job: UnstructuredObject, group: JSON) -> JSON:
        created = await self._create(POD_GROUPS, group, job)
        self._made.setdefault(job.metadata.uid, _Made()).group = created
        text = f"Created PodGroup {created['metadata']['name']} for Job {job.metadata.name}"
        await self._events.normal(JOBS, job.metadata, "PodGroupCreated", text)
        return created

    async def _create(self, resource: Resource, obj: JSON, job: UnstructuredObject) -> JSON:
        """Create an object, or take the one of that name if it was created for this very Job."""
        try:
            return await self._client.create(resource, obj, job.metadata.namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            found = await self._client.get(resource, obj["metadata"]["name"], job.metadata.namespace)
            owners: list[JSON] = found["metadata"].get("ownerReferences") or []
            if not any(each.get("uid") == job.metadata.uid and each.get("controller") for each in owners):
                raise
            return found

    async def _set_minimum(self, job: UnstructuredObject, group: JSON, minimum: int) -> None:
        if _minimum(group["spec"]) in (None, minimum):
            return
        patch = {"spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}}
        changed = await self._client.patch(POD_GROUPS, group["metadata"]["name"], patch, job.metadata.namespace)
        self._made.setdefault(job.metadata.uid, _Made()).group = changed


def _missing(job: UnstructuredObject, workload: JSON | None, template: str) -> str:
    parent = controller_of(job.metadata)
    assert parent is not None
    if workload is None:
        return f"no Workload describes {parent.kind} {parent.name}, which is to have the template {template}"
    return f"Workload {workload['metadata']['name']} has no podGroupTemplate named {template}"


def _minimum(holder: JSON) -> int | None:
    """The minimum that a group's spec or a template states; None: it is no gang."""
    return ((holder.get("schedulingPolicy") or {}).get("gang") or {}).get("minCount")


def _newest(seen: list[UnstructuredObject], made: JSON | None) -> JSON | None:
    """What the watch shows, unless our own write is newer than it."""
    first = min(seen, key=lambda each: each.metadata.name, default=None)
    if first is None:
        return made
    if made is not None and int(made["metadata"]["resourceVersion"]) > int(first.metadata.resource_version):
        return made
    return json_of(first)
