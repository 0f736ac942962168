"""The fields that groups and their templates share: policy, constraints, disruption, priority, claims.

A PodGroup, a CompositePodGroup and the templates of a Workload repeat the same fields with the same
rules; each rule is written here once, relative to the object that holds the field.
"""

from __future__ import annotations

from typing import Any, cast

from muster.api import gates
from muster.api.gates import FeatureGates
from muster.api.groups import MAX_PRIORITY, MAX_RESOURCE_CLAIMS, NEVER, PREEMPT_LOWER_PRIORITY
from muster.api.validation import fields, formats
from muster.api.validation.fields import Change, Errors, Obj

POLICY_MEMBERS = ("basic", "gang")
MODE_MEMBERS = ("single", "all")
CLAIM_MEMBERS = ("resourceClaimName", "resourceClaimTemplateName")
POLICIES = (NEVER, PREEMPT_LOWER_PRIORITY)


def policy(change: Change, minimum: str) -> Errors:
    """The scheduling policy of a group or template: the variant is fixed, the gang's minimum may change."""
    if change.same:
        return []
    gang = change.at("gang")
    errors = fields.union(change, POLICY_MEMBERS) + fields.frozen(change.at("basic"))
    moved = fields.neither_set_nor_cleared(gang)
    if not moved and gang.new is not None and not gang.same:
        errors += fields.at_least_one(gang.at(minimum))
    return errors + moved


def constraints(change: Change, *, gate: bool = True, clearable: bool = False) -> Errors:
    """At most one topology key, and it may not change. `clearable`: with the gate off, it may be taken away."""
    if change.same or (change.new is None and not change.update):
        return []
    errors = fields.gated(change, gate)
    if gate or not clearable:
        errors += fields.frozen(change)
    if errors or change.new is None:
        return errors
    topology = change.at("topology")
    if errors := fields.too_many(topology, 1):
        return errors
    found: Errors = []
    for index, item in enumerate(fields.as_list(topology.new)):
        key = Change(f"{topology.path}[{index}].key", fields.as_object(item).get("key"))
        found += fields.text(key, formats.qualified_name, required=True)
    return found


def disruption_mode(change: Change) -> Errors:
    if change.same:
        return []
    if errors := fields.frozen(change):
        return errors
    return fields.union(change, MODE_MEMBERS) if change.new is not None else []


def priority(holder: Change, feature_gates: FeatureGates) -> Errors:
    """priorityClassName, priority and preemptionPolicy: all fixed at creation."""
    name, value, policy_ = (holder.at(field) for field in ("priorityClassName", "priority", "preemptionPolicy"))
    errors = fields.frozen(_unset(name)) or fields.text(name, formats.dns_subdomain)
    errors += fields.frozen(value) or fields.at_most(value, MAX_PRIORITY)
    allowed = feature_gates.enabled(gates.PREEMPTION_POLICY)
    refused = fields.gated(policy_, allowed) + fields.frozen(policy_)
    return errors + (refused or fields.one_of(policy_, POLICIES))


def _unset(change: Change) -> Change:
    # An empty class name and an absent one are the same value.
    old = change.old if change.old is fields.MISSING else (change.old or None)
    return Change(change.path, change.new or None, old)


def resource_claims(change: Change) -> Errors:
    """Up to four claims, each naming exactly one source; the list may not change."""
    if change.same:
        return []
    if errors := fields.frozen(change) + fields.too_many(change, MAX_RESOURCE_CLAIMS):
        return errors
    items, errors = fields.items_by_name(change)
    for item in items:
        errors += fields.union(item, CLAIM_MEMBERS)
        errors += fields.text(item.at("name"), formats.dns_label, required=True)
        for member in CLAIM_MEMBERS:
            errors += fields.text(item.at(member), formats.dns_subdomain)
    return errors


def workload_ref(change: Change, *, required: bool) -> Errors:
    """The template a group was made from: both names are needed, neither may change."""
    if change.same:
        return []
    errors = fields.frozen(change)
    if change.new is None and required:
        errors.append(fields.FieldError(fields.REQUIRED, change.path))
    if errors or change.new is None:
        return errors
    errors = fields.text(change.at("workloadName"), formats.dns_subdomain, required=True)
    return errors + fields.text(change.at("templateName"), formats.dns_label, required=True)


def parent(change: Change, enabled: bool) -> Errors:
    """The name of the group above; it may not change."""
    refused = fields.gated(change, enabled) + fields.frozen(change)
    return refused or fields.text(change, formats.dns_subdomain)


# --- before validation -----------------------------------------------------------------------------


def keep_status(new: Obj, old: Obj | None) -> None:
    """A write to the object itself never writes its status: empty at first, afterwards the stored one."""
    new["status"] = {} if old is None else old.get("status", {})


_RESET_BY_STATUS = ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp", "generation")


def keep_all_but_status(new: Obj, old: Obj) -> None:
    """A write to the status subresource changes nothing else."""
    new["spec"] = old.get("spec", {})
    mine, stored = fields.as_object(new.setdefault("metadata", {})), fields.as_object(old.get("metadata"))
    for field in _RESET_BY_STATUS:
        if field in stored:
            mine[field] = stored[field]
        else:
            mine.pop(field, None)


def drop(holder: Any, field: str, *, enabled: bool, in_use: bool) -> None:
    """Take a gated field away, as if it were unknown, unless its gate is on or the stored object uses it."""
    if not enabled and not in_use and isinstance(holder, dict):
        cast("Obj", holder).pop(field, None)


def default_mode(obj: Obj) -> None:
    """A group that says nothing is disrupted pod by pod."""
    spec = obj.setdefault("spec", {})
    if isinstance(spec, dict) and cast("Obj", spec).get("disruptionMode") is None:
        spec["disruptionMode"] = {"single": {}}


def keep_preemption_policy(new: Obj, old: Obj | None) -> None:
    """An update that leaves the preemption policy out keeps the one that admission filled in."""
    if old is None:
        return
    stored = fields.as_object(old.get("spec")).get("preemptionPolicy")
    spec = fields.as_object(new.get("spec"))
    if stored is not None and spec.get("preemptionPolicy") is None:
        spec["preemptionPolicy"] = stored
