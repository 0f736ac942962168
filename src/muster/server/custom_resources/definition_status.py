"""The status of a definition: which of its names are accepted, and whether it is established.

Names are given to whoever asked first in a group. The status is computed when a definition is written, so that a client
finds its kind served as soon as the write is answered; when names become free, a controller writes the definitions that
wait for them again.
"""

from __future__ import annotations

from typing import Any

from muster.server import metadata
from muster.server.custom_resources import json_path
from muster.server.custom_resources.cel_rules import compile_rules
from muster.server.custom_resources.definition_rules import APPROVED, is_protected, is_true
from muster.server.custom_resources.patterns import compile_patterns
from muster.server.custom_resources.structural import Structural
from muster.server.resources.kind import Obj, Write

GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"


async def admit_definition(write: Write, new: Obj, old: Obj | None) -> None:
    """Set the status that follows from the spec and from the other definitions."""
    if write.operation == "DELETE":
        return
    others = [each for each in write.reader.list(PLURAL, GROUP) if each["metadata"]["name"] != write.name]
    status: Obj = new.setdefault("status", {})
    now = metadata.timestamp(write.now)
    accepted, problem = _accepted(new["spec"], status.get("acceptedNames") or {}, others)
    status["acceptedNames"] = accepted
    if problem:
        _set(status, "NamesAccepted", "False", *problem, now)
    else:
        _set(status, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
    if is_true(new, "Established"):
        pass  # for good, whatever happens to its names later
    elif problem:
        _set(status, "Established", "False", "NotAccepted", "not all names are accepted", now)
    else:
        words = "the initial names have been accepted"
        _set(status, "Established", "True", "InitialNamesAccepted", words, now)
    _set_approval(new, status, now)
    status.setdefault("storedVersions", [])
    write.warnings += _warnings(new["spec"])
    for version in new["spec"].get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            await compile_patterns(schema)
            await compile_rules(Structural(schema))


def _accepted(spec: Obj, before: Obj, others: list[Obj]) -> tuple[Obj, tuple[str, str] | None]:
    """The names that a definition may use, and (reason, message) where it may not use all it asks for."""
    taken = [
        (each.get("status") or {}).get("acceptedNames") or {}
        for each in others
        if each["spec"]["group"] == spec["group"]
    ]
    resources = {
        name for each in taken for name in (each.get("plural"), each.get("singular"), *each.get("shortNames", ()))
    }
    kinds = {name for each in taken for name in (each.get("kind"), each.get("listKind"))}
    wanted: Obj = spec["names"]
    names, problem = dict(before), None
    for field, used in (("plural", resources), ("singular", resources)):
        problem = _take(names, field, wanted, used) or problem
    fresh = [name for name in wanted.get("shortNames") or () if name not in (before.get("shortNames") or ())]
    clashes = [f'"{name}" is already in use' for name in fresh if name in resources]
    if clashes:
        words = clashes[0] if len(clashes) == 1 else f"[{', '.join(clashes)}]"
        problem = ("ShortNamesConflict", words)
    else:
        _copy(names, "shortNames", wanted)
    for field in ("kind", "listKind"):
        problem = _take(names, field, wanted, kinds) or problem
    _copy(names, "categories", wanted)
    return {name: names[name] for name in _ORDER if name in names}, problem


_ORDER = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def _take(names: Obj, field: str, wanted: Obj, used: set[Any]) -> tuple[str, str] | None:
    name = wanted.get(field)
    if name != names.get(field) and name in used:
        return f"{field[0].upper()}{field[1:]}Conflict", f'"{name}" is already in use'
    _copy(names, field, wanted)
    return None


def _copy(names: Obj, field: str, wanted: Obj) -> None:
    if wanted.get(field):
        names[field] = wanted[field]
    else:
        names.pop(field, None)


def _set_approval(definition: Obj, status: Obj, now: str) -> None:
    """For groups of Kubernetes itself: whether the API is said to be approved."""
    if not is_protected(definition["spec"]["group"]):
        return
    name = "KubernetesAPIApprovalPolicyConformant"
    approved = (definition["metadata"].get("annotations") or {}).get(APPROVED, "")
    if approved.startswith("unapproved"):
        words = f'not approved: "{approved}"'
        _set(status, name, "False", "UnapprovedAnnotation", words, now)
    elif approved:
        _set(status, name, "True", "ApprovedAnnotation", f"approved in {approved}", now)


def _set(status: Obj, kind: str, value: str, reason: str, message: str, now: str) -> None:
    conditions: list[Obj] = list(status.get("conditions") or ())
    wanted = {"type": kind, "status": value, "reason": reason, "message": message}
    for index, each in enumerate(conditions):
        if each.get("type") == kind:
            moment = each.get("lastTransitionTime") if each.get("status") == value else now
            conditions[index] = {**wanted, "lastTransitionTime": moment}
            break
    else:
        conditions.append({**wanted, "lastTransitionTime": now})
    status["conditions"] = conditions


def _warnings(spec: Obj) -> list[str]:
    """What is accepted and will not work."""
    found: list[str] = []
    for index, version in enumerate(spec.get("versions") or ()):
        for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
            if wrong := json_path.complaint(column["jsonPath"]):
                where = f"spec.versions[{index}].additionalPrinterColumns[{at}].jsonPath"
                found.append(f"{where}: the column stays empty: {wrong}")
    return found
