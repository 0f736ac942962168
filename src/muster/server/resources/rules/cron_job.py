"""CronJobs: defaults, and the rules of schedule, time zone and Job template."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from muster.api import cron
from muster.api.errors import FieldError
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import forbidden, invalid, not_negative, one_of, required
from muster.server.resources.rules.job import default_spec, validate_spec
from muster.server.resources.rules.templates import default_template

_LONGEST_NAME = 52  # the names of its Jobs have a number after it


def default(cron_job: Obj) -> None:
    spec = cron_job.get("spec")
    if spec is None:
        spec = cron_job["spec"] = {}
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    if (template := spec.get("jobTemplate")) and template.get("spec"):
        default_template(template["spec"])


def validate(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    found: list[FieldError] = []
    before: Obj = (old or {}).get("spec") or {}
    schedule = spec.get("schedule") or ""
    found += _schedule(schedule) if schedule else [required("spec.schedule")]
    found += not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if spec.get("timeZone") is not None and spec.get("timeZone") != before.get("timeZone"):
        found += _time_zone(spec["timeZone"])
    found += one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        found += not_negative(f"spec.{key}", spec.get(key))
    name = (new.get("metadata") or {}).get("name") or ""
    if old is None and len(name) > _LONGEST_NAME:
        found.append(invalid("metadata.name", name, f"must be no more than {_LONGEST_NAME} characters"))
    template: Obj = (spec.get("jobTemplate") or {}).get("spec") or {}
    if template.get("selector"):
        found.append(forbidden("spec.jobTemplate.spec.selector", "`selector` will be auto-generated"))
    filled = {**template}
    default_spec(filled)
    return found + validate_spec(filled, "spec.jobTemplate.spec")


def _schedule(text: str) -> list[FieldError]:
    if "TZ" in text:
        return [invalid("spec.schedule", text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")]
    try:
        cron.parse(text)
    except cron.CronError as error:
        return [invalid("spec.schedule", text, str(error))]
    return []


def _time_zone(name: str) -> list[FieldError]:
    if not name:
        return [invalid("spec.timeZone", name, "timeZone must be nil or non-empty string")]
    if name.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid("spec.timeZone", name, text)]
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # no such zone, a directory, or no path inside the database
        return [invalid("spec.timeZone", name, f"unknown time zone {name}")]
    return []
