"""The rules of a pod's membership: `spec.schedulingGroup`, on pods and in pod templates."""

from __future__ import annotations

from muster.api import gates
from muster.api.errors import FORBIDDEN, INVALID, FieldError
from muster.api.gates import FeatureGates
from muster.api.validation import fields, formats, group_fields
from muster.api.validation.fields import Errors, Obj

MEMBERS = ("podGroupName",)


def prepare_scheduling_group(spec: Obj, old: Obj | None, feature_gates: FeatureGates = gates.DEFAULT) -> None:
    """Drop the membership of a new pod when the feature is off; a stored one is kept."""
    in_use = bool((old or {}).get("schedulingGroup"))
    enabled = feature_gates.enabled(gates.GENERIC_WORKLOAD)
    group_fields.drop(spec, "schedulingGroup", enabled=enabled, in_use=in_use)


def validate_scheduling_group(spec: Obj, path: str = "spec") -> Errors:
    """Every error about the membership that a pod spec declares. The group itself need not exist."""
    group = spec.get("schedulingGroup")
    if group is None:
        return []
    where = f"{path}.schedulingGroup"
    errors: Errors = []
    name = fields.as_object(group).get("podGroupName")
    if name is None:
        errors.append(FieldError(INVALID, where, "", "must specify one of: `podGroupName`"))
    else:
        complaints = formats.dns_subdomain(fields.as_text(name))
        errors += [FieldError(INVALID, f"{where}.podGroupName", name, complaint) for complaint in complaints]
    if spec.get("evictionResponders"):
        errors.append(FieldError(FORBIDDEN, where, None, "may not be set when evictionResponders is set"))
    return errors
