"""What happens to a CompositePodGroup on a write: defaults, preparation and the rules it must keep."""

from __future__ import annotations

from muster.api import gates
from muster.api.gates import FeatureGates
from muster.api.validation import conditions, fields, group_fields
from muster.api.validation.fields import MISSING, Change, Errors, Obj


def default(obj: Obj) -> None:
    """Fill in what the author left out."""
    group_fields.default_mode(obj)


def prepare(new: Obj, old: Obj | None, subresource: str, feature_gates: FeatureGates = gates.DEFAULT) -> None:
    """Restore what this write may not touch and drop the fields whose gate is off."""
    if subresource == "status" and old is not None:
        group_fields.keep_all_but_status(new, old)
        return
    group_fields.keep_status(new, old)
    group_fields.keep_preemption_policy(new, old)
    in_use = bool(fields.as_object((old or {}).get("spec")).get("preemptionPolicy"))
    enabled = feature_gates.enabled(gates.PREEMPTION_POLICY)
    group_fields.drop(new.get("spec"), "preemptionPolicy", enabled=enabled, in_use=in_use)


def validate(new: Obj, old: Obj | None, subresource: str, feature_gates: FeatureGates = gates.DEFAULT) -> Errors:
    """Every error of a CompositePodGroup; `old` is None on a create."""
    if subresource == "status":
        status = Change("status", fields.as_object(new.get("status")), MISSING if old is None else old.get("status"))
        return conditions.validate(status.at("conditions"))
    spec = Change("spec", fields.as_object(new.get("spec")), MISSING if old is None else old.get("spec"))
    errors = group_fields.parent(spec.at("parentCompositePodGroupName"), enabled=True)
    errors += group_fields.workload_ref(spec.at("workloadRef"), required=True)
    errors += group_fields.policy(spec.at("schedulingPolicy"), "minGroupCount")
    errors += group_fields.constraints(spec.at("schedulingConstraints"))
    errors += group_fields.disruption_mode(spec.at("disruptionMode"))
    return errors + group_fields.priority(spec, feature_gates)
