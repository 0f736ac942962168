"""CronJobs: make a Job at each moment of a schedule, and keep some of the finished ones.

The name of a Job follows from its moment, so that no moment gets two. After a pause only the latest missed moment is
made up for, and only within `startingDeadlineSeconds`.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from muster.api import cron
from muster.api.errors import ApiError
from muster.api.resources import CRON_JOBS, JOBS
from muster.client.clock import seconds_of, timestamp
from muster.controllers.controller import Controller
from muster.controllers.job import finished_condition
from muster.controllers.objects import UnstructuredObject, controller_of, controller_uid
from muster.controllers.pod_control import controller_reference
from muster.controllers.status import JSON, write_status

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MANY_MISSED = 100
_SLACK = 0.1  # seconds after a moment at which it is looked at


class CronJobController(Controller):
    name = "cronjob-controller"
    workers = 2

    def setup(self) -> None:
        self._cron_jobs = self.watch_keys(CRON_JOBS)
        jobs = self.watch(JOBS)
        self._owned = jobs.index("by-controller", controller_uid)
        jobs.on_change(self._job_changed)

    def _job_changed(self, old: UnstructuredObject | None, new: UnstructuredObject | None) -> None:
        job = new if new is not None else old
        owner = controller_of(job.metadata) if job is not None else None
        if job is not None and owner is not None and owner.kind == CRON_JOBS.kind:
            self.queue.add((job.metadata.namespace, owner.name))

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        found: UnstructuredObject | None = self._cron_jobs.get(*key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return None
        jobs: list[UnstructuredObject] = self._owned.get(found.metadata.uid)
        return await _Reconciliation(self, found, jobs).run()


class _Reconciliation:
    """One reconciliation of one CronJob."""

    def __init__(
        self, controller: CronJobController, found: UnstructuredObject, jobs: list[UnstructuredObject]
    ) -> None:
        self.controller = controller
        self.client = controller.client
        self.cron_job = found
        self.meta = found.metadata
        self.spec = found.spec
        self.jobs = jobs
        self.now = controller.clock.now()
        self.active: list[JSON] = list(found.status.get("active") or ())
        self.last: str | None = found.status.get("lastScheduleTime")
        self.succeeded: str | None = found.status.get("lastSuccessfulTime")

    async def run(self) -> float | None:
        await self._note_finished()
        await self._note_missing()
        again = await self._start_due()
        await self._prune()
        await write_status(self.client, CRON_JOBS, self.cron_job, self._status())
        return again

    # What became of its Jobs

    async def _note_finished(self) -> None:
        for job in self.jobs:
            uid = job.metadata.uid
            ended = finished_condition(job)
            listed = any(each.get("uid") == uid for each in self.active)
            if ended is not None and listed:
                self.active = [each for each in self.active if each.get("uid") != uid]
                text = f"Saw completed job: {job.metadata.name}, condition: {ended['type']}"
                await self._say("SawCompletedJob", text)
            done: str | None = job.status.get("completionTime")
            if done and ended is not None and ended["type"] == "Complete" and done > (self.succeeded or ""):
                self.succeeded = done

    async def _note_missing(self) -> None:
        """Forget Jobs that are gone. The cache may not have shown a new one yet, so the server is asked."""
        known = {job.metadata.uid for job in self.jobs}
        for each in [each for each in self.active if each.get("uid") not in known]:
            try:
                await self.client.get(JOBS, str(each.get("name")), self.meta.namespace)
            except ApiError as error:
                if error.code != 404:
                    raise
                self.active.remove(each)
                await self._say("MissingJob", f"Active job went missing: {each.get('name')}")

    # The next Job

    async def _start_due(self) -> float | None:
        if self.spec.get("suspend"):
            return None
        text = str(self.spec.get("schedule") or "")
        try:
            zone = _zone(self.spec.get("timeZone"))
        except (KeyError, OSError, ValueError) as error:
            await self._warn("UnknownTimeZone", f'invalid timeZone: "{self.spec.get("timeZone")}": {error}')
            return None
        try:
            schedule = cron.parse(text)
        except cron.CronError as error:
            await self._warn("UnparseableSchedule", f'unparseable schedule: "{text}" : {error}')
            return None
        due = await self._due(schedule, zone)
        if due is not None:
            await self._start(due)
        following = schedule.next_after(self.now, zone)
        return None if following is None else max(0.0, following - self.now) + _SLACK

    async def _due(self, schedule: cron.Schedule, zone: tzinfo) -> float | None:
        """The latest moment that has come and has no Job yet."""
        since = seconds_of(self.last) or seconds_of(self.meta.creation_timestamp) or self.now
        deadline = self.spec.get("startingDeadlineSeconds")
        if deadline is not None:
            since = max(since, self.now - deadline)
        due, missed = _latest(schedule, zone, since, self.now)
        if missed > _MANY_MISSED:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            await self._warn("TooManyMissedTimes", text)
        return None if due is None or timestamp(due) == self.last else due

    async def _start(self, due: float) -> None:
        policy = self.spec.get("concurrencyPolicy")
        if policy == "Forbid" and self.active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            await self._say("JobAlreadyActive", text)
            return
        if policy == "Replace":
            for each in self.active:
                await self._delete(str(each.get("name")), str(each.get("uid")))
            self.active = []
        job = await self._create(due)
        if job is not None:
            self.active.append(job)
            self.last = timestamp(due)

    async def _create(self, due: float) -> JSON | None:
        """Make the Job of a moment; its reference, or None where another owner has taken the name."""
        template: JSON = self.spec.get("jobTemplate") or {}
        meta: JSON = template.get("metadata") or {}
        place = _zone(self.spec.get("timeZone"))
        said = datetime.fromtimestamp(due, UTC).astimezone(place).isoformat().replace("+00:00", "Z")
        body: JSON = {
            "metadata": {
                "name": f"{self.meta.name}-{int(due) // 60}",
                "namespace": self.meta.namespace,
                "labels": dict(meta.get("labels") or {}),
                "annotations": {**(meta.get("annotations") or {}), SCHEDULED_AT: said},
                "ownerReferences": [controller_reference(CRON_JOBS, self.meta)],
            },
            "spec": template.get("spec") or {},
        }
        try:
            made = await self.client.create(JOBS, body, self.meta.namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                await self._warn("FailedCreate", f"Error creating job: {error}")
                raise
            made = await self.client.get(JOBS, body["metadata"]["name"], self.meta.namespace)
            owned = any(each.get("uid") == self.meta.uid for each in made["metadata"].get("ownerReferences") or ())
            return _reference(made["metadata"]) if owned else None
        await self._say("SuccessfulCreate", f"Created job {made['metadata']['name']}")
        return _reference(made["metadata"])

    # Old Jobs

    async def _prune(self) -> None:
        """Delete finished Jobs beyond the limits, the oldest first."""
        for kind, key in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            limit = self.spec.get(key)
            if limit is None:
                continue
            ended = [job for job in self.jobs if (finished_condition(job) or {}).get("type") == kind]
            ended.sort(key=lambda job: (job.status.get("startTime") or "", job.metadata.name))
            for job in ended[: max(0, len(ended) - int(limit))]:
                if job.metadata.deletion_timestamp is None:
                    await self._delete(job.metadata.name, job.metadata.uid)

    async def _delete(self, name: str, uid: str) -> None:
        try:
            await self.client.delete(JOBS, name, self.meta.namespace, uid=uid, propagation_policy="Background")
        except ApiError as error:
            if error.code not in (404, 409):
                await self._warn("FailedDelete", f"Deleted job: {error}")
                raise
        else:
            await self._say("SuccessfulDelete", f"Deleted job {name}")

    # What is said

    def _status(self) -> JSON:
        fields = {"active": self.active, "lastScheduleTime": self.last, "lastSuccessfulTime": self.succeeded}
        return {key: value for key, value in fields.items() if value}

    async def _say(self, reason: str, message: str) -> None:
        await self.controller.events.normal(CRON_JOBS, self.meta, reason, message)

    async def _warn(self, reason: str, message: str) -> None:
        await self.controller.events.warning(CRON_JOBS, self.meta, reason, message)


def _zone(name: str | None) -> tzinfo:
    return UTC if not name else ZoneInfo(name)


def _latest(schedule: cron.Schedule, zone: tzinfo, since: float, now: float) -> tuple[float | None, int]:
    """The latest moment in (since, now], and about how many there were."""
    first = schedule.next_after(since, zone)
    if first is None or first > now:
        return None, 0
    second = schedule.next_after(first, zone)
    if second is None or second > now:
        return first, 1
    # A long pause is not walked moment by moment: the first two say how far apart they are.
    apart = max(1.0, second - first)
    missed = int((now - first) // apart) + 1
    latest, following = None, schedule.next_after(first + max(0, missed - 2) * apart - 1, zone)
    while following is not None and following <= now:
        latest, following = following, schedule.next_after(following, zone)
    return latest or first, missed


def _reference(meta: JSON) -> JSON:
    named = {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, **named}
