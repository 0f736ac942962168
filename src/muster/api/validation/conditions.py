"""The rules of `status.conditions`, the same for every kind that follows the API conventions."""

from __future__ import annotations

import re

from muster.api.errors import DUPLICATE, INVALID, NOT_SUPPORTED, REQUIRED, TOO_LONG, FieldError
from muster.api.validation import fields, formats
from muster.api.validation.fields import Change, Errors, Obj

REASON_LIMIT = 1024
MESSAGE_LIMIT = 32768

_REASON = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'"
)
_reason = re.compile(_REASON)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})", re.ASCII)
_STATUSES = ("False", "True", "Unknown")


def validate(change: Change) -> Errors:
    """Every error of a list of conditions. Conditions that did not change are not judged again."""
    if change.same:
        return []
    before = {as_type(item): item for item in fields.as_list(change.old)} if change.update else {}
    errors: Errors = []
    seen: set[str] = set()
    for index, item in enumerate(fields.as_list(change.new)):
        condition, path = fields.as_object(item), f"{change.path}[{index}]"
        kind = as_type(item)
        if kind and kind in seen:
            errors.append(FieldError(DUPLICATE, f"{path}.type", kind))
        seen.add(kind)
        if before.get(kind) != item:
            errors += _condition(condition, path)
    return errors


def as_type(condition: object) -> str:
    return fields.as_text(fields.as_object(condition).get("type"))


def _condition(condition: Obj, path: str) -> Errors:
    kind, status = as_type(condition), fields.as_text(condition.get("status"))
    errors = [FieldError(REQUIRED, f"{path}.type", None, "is required")] if not kind else []
    if kind:
        complaints = formats.qualified_name(kind)
        errors += [FieldError(INVALID, f"{path}.type", kind, complaint) for complaint in complaints]
    if not status:
        errors.append(FieldError(REQUIRED, f"{path}.status"))
    elif status not in _STATUSES:
        listed = ", ".join(f'"{known}"' for known in _STATUSES)
        errors.append(FieldError(NOT_SUPPORTED, f"{path}.status", status, f"supported values: {listed}"))
    generation = condition.get("observedGeneration")
    if isinstance(generation, int) and generation < 0:
        errors.append(
            FieldError(INVALID, f"{path}.observedGeneration", generation, "must be greater than or equal to zero")
        )
    errors += _when(condition.get("lastTransitionTime"), f"{path}.lastTransitionTime")
    errors += _why(fields.as_text(condition.get("reason")), f"{path}.reason")
    if len(fields.as_text(condition.get("message")).encode()) > MESSAGE_LIMIT:
        errors.append(FieldError(TOO_LONG, f"{path}.message", None, f"may not be more than {MESSAGE_LIMIT} bytes"))
    return errors


def _when(moment: object, path: str) -> Errors:
    if not moment:
        return [FieldError(REQUIRED, path)]
    if not isinstance(moment, str) or not _TIME.fullmatch(moment):
        return [FieldError(INVALID, path, moment, "must be a time like 2026-01-31T12:00:00Z")]
    return []


def _why(reason: str, path: str) -> Errors:
    if not reason:
        return [FieldError(REQUIRED, path)]
    errors: Errors = []
    if not _reason.fullmatch(reason):
        examples = ("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB")
        errors.append(FieldError(INVALID, path, reason, formats.taught(_REASON_RULE, _REASON, *examples)))
    if len(reason) > REASON_LIMIT:
        errors.append(FieldError(TOO_LONG, path, None, f"may not be more than {REASON_LIMIT} bytes"))
    return errors
