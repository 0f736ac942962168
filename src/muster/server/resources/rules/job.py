"""Jobs: defaults, the selector a new Job is given, its rules, and what may change while it runs.

`spec.scheduling` (gang scheduling asked for on the Job itself) is validated here and carried out by
the Job controller.
"""

from __future__ import annotations

from typing import Any

from muster.api.errors import FieldError
from muster.api.job_gangs import GANG_ANNOTATION, NO_GANG, BadGangAnnotation, check_annotation, gang_annotation
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import forbidden, invalid, not_negative, one_of, required, unchanged
from muster.server.resources.rules.status import keep_status
from muster.server.resources.rules.templates import default_template, selects, validate_template

CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
JOB_NAME = "batch.kubernetes.io/job-name"
MAX_INDEXES = 100_000
_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_FROZEN = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_WHILE_SUSPENDED = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


def default(job: Obj) -> None:
    spec = job.get("spec")
    if spec is None:
        spec = job["spec"] = {}
    default_spec(spec)


def default_spec(spec: Obj) -> None:
    """Fills in a Job's spec, in place; CronJobs share it."""
    default_template(spec)
    if spec.get("parallelism") is None:
        if spec.get("completions") is None and spec.get("completionMode") != "Indexed":
            spec["completions"] = 1
        spec["parallelism"] = 1
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    if spec.get("podReplacementPolicy") is None:
        spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"


def prepare(new: Obj, old: Obj | None, subresource: str) -> None:
    keep_status(new, old, subresource)
    if old is None:
        new["status"] = {}
        _generate_selector(new)


def _generate_selector(job: Obj) -> None:
    """A Job selects its own pods by its uid, unless its author insists on a selector."""
    spec: Obj = job.get("spec") or {}
    metadata: Obj = job.get("metadata") or {}
    template = spec.get("template")
    uid, name = metadata.get("uid"), metadata.get("name") or ""
    if spec.get("manualSelector") or not isinstance(template, dict) or not uid:
        return
    given = template.setdefault("metadata", {})
    labels = given["labels"] = dict(given.get("labels") or {})
    labels.update({CONTROLLER_UID: uid, "controller-uid": uid, JOB_NAME: name, "job-name": name})
    spec["selector"] = {"matchLabels": {**((spec.get("selector") or {}).get("matchLabels") or {}), CONTROLLER_UID: uid}}


def validate(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    if subresource:
        return []
    spec: Obj = new.get("spec") or {}
    found = validate_spec(spec, "spec")
    if not spec.get("selector"):
        found.append(required("spec.selector"))
    else:
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        if not selects(spec["selector"], labels):
            found.append(
                invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
            )
    found += _gang_annotation(new, old)
    return found + (_changes(spec, old) if old is not None else [])


def _gang_annotation(new: Obj, old: Obj | None) -> list[FieldError]:
    """The annotation that makes a Job a gang, or keeps it from being one. Its group is made once, so it says which."""
    spec: Obj = new.get("spec") or {}
    value = gang_annotation((new.get("metadata") or {}).get("annotations"), spec)
    where = f"metadata.annotations[{GANG_ANNOTATION}]"
    before = None
    if old is not None:
        stored: Obj = old.get("spec") or {}
        before = gang_annotation((old.get("metadata") or {}).get("annotations"), stored)
        if (value, spec.get("parallelism")) == (before, stored.get("parallelism")):
            return []
    if value is not None:
        if (spec.get("scheduling") or {}).get("schedulingPolicy"):
            return [forbidden(where, "may not be set beside spec.scheduling.schedulingPolicy, which says the same")]
        try:
            check_annotation(value, spec)
        except BadGangAnnotation as fault:
            return [invalid(where, value, str(fault))]
    if old is not None and _variant(value) != _variant(before):
        why = "whether the Job is a gang is fixed when it is created; only the number may be updated"
        return [invalid(where, value, why)]
    return []


def _variant(value: str | None) -> str | None:
    return value if value in (None, NO_GANG) else "gang"


def validate_spec(spec: Obj, path: str) -> list[FieldError]:
    """The rules of a Job's spec, wherever it stands."""
    found: list[FieldError] = []
    for key in _NUMBERS:
        found += not_negative(f"{path}.{key}", spec.get(key))
    found += one_of(f"{path}.completionMode", spec.get("completionMode"), ("NonIndexed", "Indexed"))
    if spec.get("completionMode") == "Indexed":
        if spec.get("completions") is None:
            found.append(required(f"{path}.completions", "when completion mode is Indexed"))
        for key in ("completions", "parallelism"):
            if (spec.get(key) or 0) > MAX_INDEXES:
                found.append(
                    invalid(
                        f"{path}.{key}",
                        spec[key],
                        f"must be less than or equal to {MAX_INDEXES} when completion mode is Indexed",
                    )
                )
    elif spec.get("backoffLimitPerIndex") is not None:
        found.append(
            invalid(f"{path}.backoffLimitPerIndex", spec["backoffLimitPerIndex"], "requires indexed completion mode")
        )
    found += validate_template(spec.get("template") or {}, f"{path}.template")
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        found.append(required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    return found + _scheduling(spec, path)


def _scheduling(spec: Obj, path: str) -> list[FieldError]:
    scheduling: Any = spec.get("scheduling")
    if scheduling is None:
        return []
    here = f"{path}.scheduling"
    policy: Obj = scheduling.get("schedulingPolicy") or {}
    chosen = [each for each in ("basic", "gang") if policy.get(each) is not None]
    found: list[FieldError] = []
    if len(chosen) > 1:
        found.append(
            invalid(f"{here}.schedulingPolicy", "{basic, gang}", "must specify exactly one of: `basic`, `gang`")
        )
    elif not chosen and scheduling.get("schedulingPolicy") is not None:
        found.append(invalid(f"{here}.schedulingPolicy", "", "must specify one of: `basic`, `gang`"))
    count = (policy.get("gang") or {}).get("minCount")
    where = f"{here}.schedulingPolicy.gang.minCount"
    parallelism = 1 if spec.get("parallelism") is None else spec["parallelism"]
    if count is not None and count < 1:
        found.append(invalid(where, count, "must be greater than or equal to 1"))
    elif count is not None and count > parallelism:
        found.append(invalid(where, count, f"must not be greater than parallelism ({parallelism})"))
    if (scheduling.get("disruptionMode") or {}).get("all") is not None and "gang" not in chosen:
        found.append(
            invalid(
                f"{here}.disruptionMode",
                scheduling["disruptionMode"],
                "the disruptionMode `all` is not supported with the Basic scheduling policy",
            )
        )
    return found


def _changes(spec: Obj, old: Obj) -> list[FieldError]:
    before: Obj = old.get("spec") or {}
    found = unchanged("spec.selector", spec.get("selector"), before.get("selector"))
    for key in _FROZEN:
        found += unchanged(f"spec.{key}", spec.get(key), before.get(key))
    if spec.get("completions") != before.get("completions") and not _elastic(spec, before):
        found.append(invalid("spec.completions", spec.get("completions"), "field is immutable"))
    found += _template_change(spec, before, old)
    return found + _scheduling_change(spec.get("scheduling"), before.get("scheduling"))


def _elastic(spec: Obj, before: Obj) -> bool:
    """An Indexed Job may grow and shrink as long as it runs all its indexes at once."""
    return (
        spec.get("completionMode") == "Indexed"
        and spec.get("completions") is not None
        and spec.get("completions") == spec.get("parallelism")
        and before.get("completions") == before.get("parallelism")
    )


def _template_change(spec: Obj, before: Obj, old: Obj) -> list[FieldError]:
    new, earlier = spec.get("template") or {}, before.get("template") or {}
    if before.get("suspend") and not (old.get("status") or {}).get("startTime"):
        # Until its first pod, the placement of a suspended Job may still change.
        earlier = {**earlier, "metadata": new.get("metadata") or {}, "spec": dict(earlier.get("spec") or {})}
        for key in _WHILE_SUSPENDED:
            if key in (new.get("spec") or {}):
                earlier["spec"][key] = new["spec"][key]
            else:
                earlier["spec"].pop(key, None)
    return unchanged("spec.template", new, earlier)


def _scheduling_change(new: Any, old: Any) -> list[FieldError]:
    path = "spec.scheduling"
    if new == old:
        return []
    if old is None:
        return [invalid(path, new, "field cannot be set once created")]
    if new is None:
        return [invalid(path, new, "field cannot be cleared once set")]
    after, before = new.get("schedulingPolicy") or {}, old.get("schedulingPolicy") or {}
    found: list[FieldError] = []
    if set(after) != set(before):
        found.append(
            invalid(
                f"{path}.schedulingPolicy",
                after,
                "the basic/gang policy variant is immutable after creation; "
                "only schedulingPolicy.gang.minCount may be updated",
            )
        )
    for key in ("schedulingConstraints", "disruptionMode", "resourceClaims"):
        found += unchanged(f"{path}.{key}", new.get(key), old.get(key))
    return found
