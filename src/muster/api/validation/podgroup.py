"""What happens to a PodGroup on a write: defaults, preparation and the rules it must keep.

The preemption policy is not a default of decoding: admission takes it from the priority class, which
it could not do once a default stood there.
"""

from __future__ import annotations

from muster.api import gates
from muster.api.errors import INVALID, REQUIRED, FieldError
from muster.api.expected_members import EXPECTED_MEMBERS, MalformedExpectation, decode
from muster.api.gates import FeatureGates
from muster.api.groups import MAX_RESOURCE_CLAIMS
from muster.api.validation import conditions, fields, formats, group_fields
from muster.api.validation.fields import MISSING, Change, Errors, Obj


def default(obj: Obj) -> None:
    """Fill in what the author left out."""
    group_fields.default_mode(obj)


def prepare(new: Obj, old: Obj | None, subresource: str, feature_gates: FeatureGates = gates.DEFAULT) -> None:
    """Restore what this write may not touch and drop the fields whose gate is off."""
    stored = fields.as_object((old or {}).get("spec"))
    if subresource == "status" and old is not None:
        group_fields.keep_all_but_status(new, old)
        enabled, in_use = feature_gates.enabled(gates.RESOURCE_CLAIMS), bool(stored.get("resourceClaims"))
        group_fields.drop(new.get("status"), "resourceClaimStatuses", enabled=enabled, in_use=in_use)
        return
    group_fields.keep_status(new, old)
    group_fields.keep_preemption_policy(new, old)
    for field, gate in (
        ("parentCompositePodGroupName", gates.COMPOSITE),
        ("schedulingConstraints", gates.TOPOLOGY),
        ("resourceClaims", gates.RESOURCE_CLAIMS),
        ("preemptionPolicy", gates.PREEMPTION_POLICY),
    ):
        enabled, in_use = feature_gates.enabled(gate), bool(stored.get(field))
        group_fields.drop(new.get("spec"), field, enabled=enabled, in_use=in_use)


def validate(new: Obj, old: Obj | None, subresource: str, feature_gates: FeatureGates = gates.DEFAULT) -> Errors:
    """Every error of a PodGroup; `old` is None on a create."""
    if subresource == "status":
        return _status(new, old)
    spec = Change("spec", fields.as_object(new.get("spec")), MISSING if old is None else old.get("spec"))
    errors = group_fields.parent(spec.at("parentCompositePodGroupName"), feature_gates.enabled(gates.COMPOSITE))
    errors += group_fields.workload_ref(spec.at("workloadRef"), required=False)
    if old is None and spec.new.get("parentCompositePodGroupName") and spec.new.get("workloadRef") is None:
        why = "must be set when parentCompositePodGroupName is set"
        errors.append(FieldError(REQUIRED, "spec.workloadRef", None, why))
    errors += group_fields.policy(spec.at("schedulingPolicy"), "minCount")
    topology_on = feature_gates.enabled(gates.TOPOLOGY)
    errors += group_fields.constraints(spec.at("schedulingConstraints"), gate=topology_on, clearable=True)
    errors += group_fields.resource_claims(spec.at("resourceClaims"))
    errors += group_fields.disruption_mode(spec.at("disruptionMode"))
    errors += _expected_members(new, old)
    return errors + group_fields.priority(spec, feature_gates)


def _expected_members(new: Obj, old: Obj | None) -> Errors:
    """The annotation that says which members are still to come, when it is written or changed."""
    texts = [
        fields.as_object(fields.as_object((obj or {}).get("metadata")).get("annotations")).get(EXPECTED_MEMBERS)
        for obj in (new, old)
    ]
    if not isinstance(texts[0], str) or texts[0] == texts[1]:
        return []
    try:
        decode(texts[0])
    except MalformedExpectation as malformed:
        return list(malformed.errors)
    return []


def _status(new: Obj, old: Obj | None) -> Errors:
    status = Change("status", fields.as_object(new.get("status")), MISSING if old is None else old.get("status"))
    errors = conditions.validate(status.at("conditions"))
    return errors + _claim_statuses(status.at("resourceClaimStatuses"), fields.as_object(new.get("spec")))


def _claim_statuses(change: Change, spec: Obj) -> Errors:
    if change.same:
        return []
    declared = {fields.as_object(claim).get("name") for claim in fields.as_list(spec.get("resourceClaims"))}
    items, errors = fields.items_by_name(change)
    if refused := fields.too_many(change, MAX_RESOURCE_CLAIMS):
        errors = refused
    for item in items:
        errors += [] if refused else fields.text(item.at("resourceClaimName"), formats.dns_subdomain)
        name = item.at("name")
        if name.new not in declared:
            why = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(FieldError(INVALID, name.path, fields.as_text(name.new), why))
    return errors
