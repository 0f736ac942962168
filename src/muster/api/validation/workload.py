"""What happens to a Workload on a write: preparation and the rules of its tree of templates.

The rules of each template come first, level by level; then those of the tree as a whole: names, depth,
children, one priority, and that a part of something disrupted as a whole is never disrupted alone. The
tree is walked without recursion past its allowed depth, so that absurd input costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from muster.api import gates
from muster.api.errors import DUPLICATE, INVALID, FieldError
from muster.api.gates import FeatureGates
from muster.api.groups import MAX_DEPTH, MAX_TEMPLATES
from muster.api.validation import fields, formats, group_fields
from muster.api.validation.fields import MISSING, Change, Errors, Obj

LEAVES = "podGroupTemplates"
COMPOSITES = "compositePodGroupTemplates"


class Template(NamedTuple):
    """One template of the tree: where it is, in which list, what it says, and whether it may have children."""

    path: str
    listed_in: str
    body: Obj
    composite: bool
    parent: Obj | None


def default(obj: Obj) -> None:
    """Print what Kubernetes prints: these two keys are there even when they say nothing."""
    spec = obj.setdefault("spec", {})
    if isinstance(spec, dict):
        cast("Obj", spec).setdefault(LEAVES, None)
    for template in templates(obj):
        if not template.composite:
            template.body.setdefault("schedulingConstraints", None)


def prepare(new: Obj, old: Obj | None, subresource: str, feature_gates: FeatureGates = gates.DEFAULT) -> None:
    """Drop the fields whose gate is off, unless the same template of the stored Workload uses them."""
    in_use = bool(fields.as_object((old or {}).get("spec")).get(COMPOSITES))
    group_fields.drop(new.get("spec"), COMPOSITES, enabled=feature_gates.enabled(gates.COMPOSITE), in_use=in_use)
    # Names are unique in the tree, so a name is enough to find a template again.
    stored = {fields.as_text(each.body.get("name")): each.body for each in templates(old or {})}
    for template in templates(new):
        before = stored.get(fields.as_text(template.body.get("name")), {})
        for field, gate in (
            ("schedulingConstraints", gates.TOPOLOGY),
            ("resourceClaims", gates.RESOURCE_CLAIMS),
            ("preemptionPolicy", gates.PREEMPTION_POLICY),
        ):
            # A composite template's constraint has no gate of its own: it comes and goes with its template.
            enabled = feature_gates.enabled(gate) or (template.composite and gate == gates.TOPOLOGY)
            group_fields.drop(template.body, field, enabled=enabled, in_use=bool(before.get(field)))


def validate(new: Obj, old: Obj | None, subresource: str, feature_gates: FeatureGates = gates.DEFAULT) -> Errors:
    """Every error of a Workload; `old` is None on a create."""
    spec = Change("spec", fields.as_object(new.get("spec")), MISSING if old is None else old.get("spec"))
    errors = fields.union(spec, (LEAVES, COMPOSITES))
    errors += _controller(spec.at("controllerRef"))
    errors += _leaves(spec.at(LEAVES), feature_gates)
    composites = spec.at(COMPOSITES)
    errors += fields.gated(composites, feature_gates.enabled(gates.COMPOSITE)) or _composites(
        composites, feature_gates, level=1
    )
    return errors + _tree(new, created=old is None)


def _controller(change: Change) -> Errors:
    if change.same:
        return []
    if errors := fields.frozen(change):
        return errors
    if change.new is None:
        return []
    errors = fields.text(change.at("apiGroup"), formats.dns_subdomain)
    errors += fields.text(change.at("kind"), formats.path_segment, required=True)
    return errors + fields.text(change.at("name"), formats.path_segment, required=True)


def _listed(change: Change) -> tuple[list[Change], Errors]:
    """The templates of one list, or none of them when the list itself is refused."""
    items, errors = fields.items_by_name(change)
    refused = fields.too_many(change, MAX_TEMPLATES) + fields.fixed_items(change, items)
    return ([], refused) if refused else (items, errors)


def _leaves(change: Change, feature_gates: FeatureGates) -> Errors:
    if change.same:
        return []
    items, errors = _listed(change)
    for item in items:
        if item.same:
            continue
        errors += fields.text(item.at("name"), formats.dns_label, required=True)
        errors += group_fields.policy(item.at("schedulingPolicy"), "minCount")
        topology_on = feature_gates.enabled(gates.TOPOLOGY)
        errors += group_fields.constraints(item.at("schedulingConstraints"), gate=topology_on)
        errors += group_fields.resource_claims(item.at("resourceClaims"))
        errors += group_fields.disruption_mode(item.at("disruptionMode"))
        errors += group_fields.priority(item, feature_gates)
    return errors


def _composites(change: Change, feature_gates: FeatureGates, level: int) -> Errors:
    if change.same or level >= MAX_DEPTH:
        return []
    items, errors = _listed(change)
    for item in items:
        if item.same:
            continue
        errors += fields.text(item.at("name"), formats.dns_label, required=True)
        errors += group_fields.policy(item.at("schedulingPolicy"), "minGroupCount")
        errors += group_fields.constraints(item.at("schedulingConstraints"))
        errors += group_fields.disruption_mode(item.at("disruptionMode"))
        errors += group_fields.priority(item, feature_gates)
        errors += _leaves(item.at(LEAVES), feature_gates)
        errors += _composites(item.at(COMPOSITES), feature_gates, level + 1)
    return errors


# --- the tree as a whole ---------------------------------------------------------------------------


def templates(workload: Obj) -> Iterator[Template]:
    """Every template down to the deepest level allowed, parents before children."""
    yield from _below(fields.as_object(workload.get("spec")), "spec", None, 1)


def _below(holder: Obj, path: str, parent: Obj | None, level: int) -> Iterator[Template]:
    leaves = list(_entries(holder, f"{path}.{LEAVES}", LEAVES, parent))
    composites = list(_entries(holder, f"{path}.{COMPOSITES}", COMPOSITES, parent)) if level < MAX_DEPTH else []
    yield from leaves
    yield from composites
    for composite in composites:
        yield from _below(composite.body, composite.path, composite.body, level + 1)


def _entries(holder: Obj, where: str, listed: str, parent: Obj | None) -> Iterator[Template]:
    # Lists past their limit are reported as such; what lies behind the limit is not looked at.
    for index, item in enumerate(fields.as_list(holder.get(listed))[: MAX_TEMPLATES * 2]):
        if isinstance(item, dict):
            yield Template(f"{where}[{index}]", where, cast("Obj", item), listed == COMPOSITES, parent)


def _tree(workload: Obj, *, created: bool) -> Errors:
    errors: Errors = []
    seen: dict[str, str] = {}
    for template in templates(workload):
        name = fields.as_text(template.body.get("name"))
        listed_in = seen.setdefault(name, template.listed_in)
        if name and listed_in != template.listed_in:
            errors.append(FieldError(DUPLICATE, f"{template.path}.name", name))
        if template.composite and not template.body.get(LEAVES) and not template.body.get(COMPOSITES):
            why = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
            errors.append(FieldError(INVALID, template.path, name, why))
        if created:
            errors += _mode_of_part(template)
    return errors + _depth(workload) + _one_priority(workload)


def _mode_of_part(template: Template) -> Errors:
    if template.parent is None or not _whole(template.parent) or _whole(template.body):
        return []
    whole = fields.as_text(template.parent.get("name"))
    why = f"must be `all`, because the template {whole!r} above it is disrupted as a whole (unset means `single`)"
    return [FieldError(INVALID, f"{template.path}.disruptionMode", template.body.get("disruptionMode"), why)]


def _whole(template: Obj) -> bool:
    return fields.as_object(template.get("disruptionMode")).get("all") is not None


def _depth(workload: Obj) -> Errors:
    errors: Errors = []
    for index, root in enumerate(fields.as_list(fields.as_object(workload.get("spec")).get(COMPOSITES))):
        level: list[Any] = [root]
        height = 0
        while level and height < MAX_DEPTH:
            height += 1
            level = [child for item in level for child in fields.as_list(fields.as_object(item).get(COMPOSITES))]
        if height >= MAX_DEPTH:
            path, name = f"spec.{COMPOSITES}[{index}]", fields.as_text(fields.as_object(root).get("name"))
            errors.append(FieldError(INVALID, path, name, f"maximum template hierarchy depth is {MAX_DEPTH}"))
    return errors


def _one_priority(workload: Obj) -> Errors:
    found = [(each.listed_in == f"spec.{LEAVES}", _priority(each.body)) for each in templates(workload)]
    if len({priority for _, priority in found}) < 2:
        return []
    if len({priority for flat, priority in found if flat}) > 1:
        return [FieldError(INVALID, "spec", None, "detected multiple priority configurations")]
    why = "all priority and priorityClassName values must be identical, detected multiple values"
    return [FieldError(INVALID, "spec", None, why)]


def _priority(template: Obj) -> tuple[str, str]:
    value = template.get("priority")
    return fields.as_text(template.get("priorityClassName")), "" if value is None else str(value)
