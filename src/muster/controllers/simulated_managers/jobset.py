"""A stand-in for the JobSet manager: Jobs with its labels, in its order, restarted and ended as it does.

Left out: exclusive placement, success policies other than all Jobs, rules of failure policies, headless Services.
"""

from __future__ import annotations

import hashlib
from typing import Any

from muster.api.membership import JOB_SETS, JOBSET
from muster.api.resources import JOBS
from muster.client.clock import timestamp
from muster.controllers.controller import Controller
from muster.controllers.objects import UnstructuredObject, controller_of, controller_uid
from muster.controllers.pod_control import controller_reference

JSON = dict[str, Any]
ATTEMPT = f"{JOBSET}restart-attempt"


class SimulatedJobSets(Controller):
    name = "simulated-jobset-manager"
    workers = 4

    def setup(self) -> None:
        self._sets = self.watch_keys(JOB_SETS)
        self._jobs = self.watch(JOBS)
        self._owned = self._jobs.index("by-controller", controller_uid)
        self._jobs.on_change(lambda old, new: self._job_changed(new if new is not None else old))

    def _job_changed(self, job: UnstructuredObject) -> None:
        owner = controller_of(job.metadata)
        if owner is not None and owner.kind == JOB_SETS.kind:
            self.queue.add((job.metadata.namespace, owner.name))

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        this: UnstructuredObject | None = self._sets.get(*key)
        if this is None or this.metadata.deletion_timestamp is not None or this.status.get("terminalState"):
            return None
        jobs: list[UnstructuredObject] = self._owned.get(this.metadata.uid)
        attempt = int(this.status.get("restarts") or 0)
        for old in jobs:
            if _attempt(old) < attempt and old.metadata.deletion_timestamp is None:
                await self.client.delete(
                    JOBS, old.metadata.name, key[0], uid=old.metadata.uid, propagation_policy="Foreground"
                )
        current = {job.metadata.name: job for job in jobs if _attempt(job) == attempt}
        if await self._has_ended(this, current, attempt):
            return None
        await self._create(this, current, {job.metadata.name for job in jobs}, attempt)
        await self._suspend(this, current)
        await self._report(this, current)
        return None

    async def _create(
        self, this: UnstructuredObject, current: dict[str, UnstructuredObject], taken: set[str], attempt: int
    ) -> None:
        """All Jobs whose turn it is; a Job of an older attempt keeps its name until it is gone."""
        in_order = (this.spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
        for index, each in enumerate(_replicated(this)):
            waits = _replicated(this)[index - 1 : index] if in_order and index else []
            if all(_is_ready(this, other, current) for other in waits) and self._may_start(this, each, current):
                for number in range(_replicas(each)):
                    name = f"{this.metadata.name}-{each['name']}-{number}"
                    if name not in taken:
                        await self.client.create(JOBS, _job(this, each, number, attempt), this.metadata.namespace)

    def _may_start(self, this: UnstructuredObject, each: JSON, current: dict[str, UnstructuredObject]) -> bool:
        by_name = {other["name"]: other for other in _replicated(this)}
        for need in each.get("dependsOn") or ():
            other = by_name.get(need.get("name"))
            check = _is_complete if need.get("status") == "Complete" else _is_ready
            if other is not None and not check(this, other, current):
                return False
        return True

    async def _suspend(self, this: UnstructuredObject, current: dict[str, UnstructuredObject]) -> None:
        wanted = bool(this.spec.get("suspend"))
        for job in current.values():
            if bool(job.spec.get("suspend")) != wanted and job.metadata.deletion_timestamp is None:
                await self.client.patch(JOBS, job.metadata.name, {"spec": {"suspend": wanted}}, job.metadata.namespace)

    async def _has_ended(self, this: UnstructuredObject, current: dict[str, UnstructuredObject], attempt: int) -> bool:
        failed = [job for job in current.values() if _condition(job, "Failed")]
        if failed:
            most = int((this.spec.get("failurePolicy") or {}).get("maxRestarts") or 0)
            if attempt < most:
                await self._set_status(this, {"restarts": attempt + 1})
            else:
                await self._end(this, "Failed", f"job {failed[0].metadata.name} failed")
            return True
        total = sum(_replicas(each) for each in _replicated(this))
        if total and sum(_condition(job, "Complete") for job in current.values()) == total:
            await self._end(this, "Completed", "jobset completed successfully")
            return True
        return False

    async def _end(self, this: UnstructuredObject, state: str, message: str) -> None:
        condition = {
            "type": state,
            "status": "True",
            "reason": "FailedJobs" if state == "Failed" else "AllJobsCompleted",
            "message": message,
            "lastTransitionTime": timestamp(self.clock.now()),
        }
        await self._set_status(this, {"terminalState": state, "conditions": [condition]})

    async def _report(self, this: UnstructuredObject, current: dict[str, UnstructuredObject]) -> None:
        rows = [
            {
                "name": each["name"],
                "ready": sum(_job_ready(job) for job in _jobs_of(this, each, current)),
                "succeeded": sum(_condition(job, "Complete") for job in _jobs_of(this, each, current)),
            }
            for each in _replicated(this)
        ]
        if rows != this.status.get("replicatedJobsStatus"):
            await self._set_status(this, {"replicatedJobsStatus": rows})

    async def _set_status(self, this: UnstructuredObject, status: JSON) -> None:
        await self.client.patch(
            JOB_SETS, this.metadata.name, {"status": status}, this.metadata.namespace, subresource="status"
        )


def _replicated(this: UnstructuredObject) -> list[JSON]:
    return list(this.spec.get("replicatedJobs") or ())


def _replicas(each: JSON) -> int:
    replicas = each.get("replicas")
    return 1 if replicas is None else int(replicas)


def _attempt(job: UnstructuredObject) -> int:
    return int((job.metadata.labels or {}).get(ATTEMPT, 0))


def _condition(job: UnstructuredObject, type_: str) -> bool:
    return any(
        each.get("type") == type_ and each.get("status") == "True" for each in job.status.get("conditions") or ()
    )


def _jobs_of(this: UnstructuredObject, each: JSON, current: dict[str, UnstructuredObject]) -> list[UnstructuredObject]:
    names = (f"{this.metadata.name}-{each['name']}-{number}" for number in range(_replicas(each)))
    return [current[name] for name in names if name in current]


def _job_ready(job: UnstructuredObject) -> bool:
    parallelism = job.spec.get("parallelism")
    completions = job.spec.get("completions")
    wanted = 1 if parallelism is None else int(parallelism)
    wanted = wanted if completions is None else min(wanted, int(completions))
    return int(job.status.get("ready") or 0) + int(job.status.get("succeeded") or 0) >= wanted


def _is_ready(this: UnstructuredObject, each: JSON, current: dict[str, UnstructuredObject]) -> bool:
    jobs = _jobs_of(this, each, current)
    return len(jobs) == _replicas(each) and all(_job_ready(job) for job in jobs)


def _is_complete(this: UnstructuredObject, each: JSON, current: dict[str, UnstructuredObject]) -> bool:
    jobs = _jobs_of(this, each, current)
    return len(jobs) == _replicas(each) and all(_condition(job, "Complete") for job in jobs)


def _identity(this: UnstructuredObject, each: JSON, number: int, attempt: int) -> dict[str, str]:
    """The labels that Jobs and pods carry, which are annotations as well."""
    listed, name = _replicated(this), f"{this.metadata.name}-{each['name']}-{number}"
    before = listed[: next(index for index, other in enumerate(listed) if other["name"] == each["name"])]
    group = each.get("groupName") or "default"
    alike = [other for other in listed if (other.get("groupName") or "default") == group]
    first_alike = [other for other in before if (other.get("groupName") or "default") == group]
    values = {
        "jobset-name": this.metadata.name,
        "jobset-uid": this.metadata.uid,
        "replicatedjob-name": each["name"],
        "replicatedjob-replicas": _replicas(each),
        "job-index": number,
        "job-global-index": sum(map(_replicas, before)) + number,
        "global-replicas": sum(map(_replicas, listed)),
        "group-name": group,
        "group-replicas": sum(map(_replicas, alike)),
        "job-group-index": sum(map(_replicas, first_alike)) + number,
        "job-key": hashlib.sha1(f"{this.metadata.namespace}/{name}".encode(), usedforsecurity=False).hexdigest(),
        "restart-attempt": attempt,
    }
    return {f"{JOBSET}{key}": str(value) for key, value in values.items()}


def _job(this: UnstructuredObject, each: JSON, number: int, attempt: int) -> JSON:
    name, identity = f"{this.metadata.name}-{each['name']}-{number}", _identity(this, each, number, attempt)
    template: JSON = each.get("template") or {}
    spec: JSON = {"completionMode": "Indexed", **(template.get("spec") or {})}
    spec.setdefault("completions", spec.get("parallelism", 1))
    pod: JSON = spec.get("template") or {}
    pod_spec: JSON = {"restartPolicy": "OnFailure", "subdomain": this.metadata.name, **(pod.get("spec") or {})}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": name,
            "namespace": this.metadata.namespace,
            **_labelled(template.get("metadata"), identity),
            "ownerReferences": [controller_reference(JOB_SETS, this.metadata)],
        },
        "spec": {
            **spec,
            "suspend": bool(this.spec.get("suspend")),
            "template": {"metadata": _labelled(pod.get("metadata"), identity), "spec": pod_spec},
        },
    }


def _labelled(meta: JSON | None, identity: dict[str, str]) -> JSON:
    found = meta or {}
    return {kind: {**(found.get(kind) or {}), **identity} for kind in ("labels", "annotations")}
