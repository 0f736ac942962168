"""APIService: defaults and rules."""

from __future__ import annotations

from muster.api.errors import FieldError
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import invalid, required

_HIGHEST_GROUP, _HIGHEST_VERSION = 20_000, 1_000


def default(obj: Obj) -> None:
    if service := (obj.get("spec") or {}).get("service"):
        service.setdefault("port", 443)


def status_of(obj: Obj) -> Obj:
    """A group that the server itself serves is available from the start; others are checked first."""
    if (obj.get("spec") or {}).get("service"):
        return {}
    condition = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": obj["metadata"].get("creationTimestamp"),
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    return {"conditions": [condition]}


def validate(new: Obj, old: Obj | None, subresource: str) -> list[FieldError]:
    spec: Obj = new.get("spec") or {}
    found: list[FieldError] = []
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    name = new["metadata"].get("name", "")
    if name != wanted:
        words = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        found.append(invalid("metadata.name", name, words))
    if not spec.get("version"):
        found.append(required("spec.version"))
    for field, most in (("groupPriorityMinimum", _HIGHEST_GROUP), ("versionPriority", _HIGHEST_VERSION)):
        value = spec.get(field) or 0
        if not 0 < value <= most:
            found.append(invalid(f"spec.{field}", value, f"must be positive and less than {most}"))
    service: Obj | None = spec.get("service")
    if service is None:
        if spec.get("caBundle"):
            found.append(invalid("spec.caBundle", "", "local APIServices may not have a caBundle"))
        if spec.get("insecureSkipTLSVerify"):
            found.append(
                invalid("spec.insecureSkipTLSVerify", True, "local APIServices may not have insecureSkipTLSVerify")
            )
        return found
    found += [required(f"spec.service.{part}") for part in ("namespace", "name") if not service.get(part)]
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        words = "may not be true if caBundle is present"
        found.append(invalid("spec.insecureSkipTLSVerify", True, words))
    return found
