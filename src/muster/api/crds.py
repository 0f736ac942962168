"""The group kinds as custom resources, for clusters whose server does not have them.

The schemas are the ones of `muster.api.openapi` with everything referred to written out; what Kubernetes says in
code is said here as CEL rules: one member of a union, what may not change, what belongs together. Priority
fields may be filled in once, because no admission step does it before the object is stored. `deploy/crds`
holds the result as files.
"""

from __future__ import annotations

from typing import Any

from muster.api.groups import HUB, MAX_DEPTH, MAX_TEMPLATES
from muster.api.manifests import CRD_GROUP
from muster.api.openapi import schema_name, schemas

Schema = dict[str, Any]

LONGEST_POD_GROUP_NAME = 63  # a pod's label names its group, and a label's value is no longer than this

_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_QUALIFIED = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"

_TEXTS: dict[str, Schema] = {
    **{
        f"{holder}.priorityClassName": {"maxLength": 253}
        for holder in ("PodGroupSpec", "CompositePodGroupSpec", "PodGroupTemplate", "CompositePodGroupTemplate")
    },
    "PodGroupTemplate.name": {"maxLength": 63, "pattern": _LABEL},
    "CompositePodGroupTemplate.name": {"maxLength": 63, "pattern": _LABEL},
    "WorkloadReference.workloadName": {"maxLength": 253, "pattern": _SUBDOMAIN},
    "WorkloadReference.templateName": {"maxLength": 63, "pattern": _LABEL},
    "PodGroupSpec.parentCompositePodGroupName": {"maxLength": 253, "pattern": _SUBDOMAIN},
    "CompositePodGroupSpec.parentCompositePodGroupName": {"maxLength": 253, "pattern": _SUBDOMAIN},
    "TopologyConstraint.key": {"maxLength": 317, "pattern": _QUALIFIED},
    "GroupResourceClaim.name": {"maxLength": 63, "pattern": _LABEL},
    "GroupResourceClaim.resourceClaimName": {"maxLength": 253, "pattern": _SUBDOMAIN},
    "GroupResourceClaim.resourceClaimTemplateName": {"maxLength": 253, "pattern": _SUBDOMAIN},
}
_UNIONS = {
    "SchedulingPolicy": ("basic", "gang"),
    "CompositeSchedulingPolicy": ("basic", "gang"),
    "DisruptionMode": ("single", "all"),
    "GroupResourceClaim": ("resourceClaimName", "resourceClaimTemplateName"),
    "WorkloadSpec": ("podGroupTemplates", "compositePodGroupTemplates"),
}
_FIXED = {
    "PodGroupSpec": (
        "parentCompositePodGroupName",
        "workloadRef",
        "schedulingConstraints",
        "resourceClaims",
        "disruptionMode",
    ),
    "CompositePodGroupSpec": (
        "parentCompositePodGroupName",
        "workloadRef",
        "schedulingConstraints",
        "disruptionMode",
    ),
    "PodGroupTemplate": ("schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority"),
    "CompositePodGroupTemplate": ("schedulingConstraints", "disruptionMode", "priorityClassName", "priority"),
    "WorkloadSpec": ("controllerRef",),
}
_FILLED_ONCE = ("priorityClassName", "priority", "preemptionPolicy")
_TEMPLATE_LISTS = ("podGroupTemplates", "compositePodGroupTemplates")

_COLUMNS: dict[str, list[tuple[str, str]]] = {
    "PodGroup": [
        ("Gang", ".spec.schedulingPolicy.gang.minCount"),
        ("Parent", ".spec.parentCompositePodGroupName"),
        ("Workload", ".spec.workloadRef.workloadName"),
        ("Status", '.status.conditions[?(@.type=="PodGroupInitiallyScheduled")].reason'),
    ],
    "CompositePodGroup": [
        ("Gang", ".spec.schedulingPolicy.gang.minGroupCount"),
        ("Parent", ".spec.parentCompositePodGroupName"),
        ("Workload", ".spec.workloadRef.workloadName"),
        ("Status", '.status.conditions[?(@.type=="CompositePodGroupInitiallyScheduled")].reason'),
    ],
    "Workload": [("Controller", ".spec.controllerRef.name")],
}
_NAMES = {
    "PodGroup": ("podgroups", "podgroup", "pg"),
    "CompositePodGroup": ("compositepodgroups", "compositepodgroup", "cpg"),
    "Workload": ("workloads", "workload", "wl"),
}
# As in Kubernetes 1.37; what is written is the same in both, so nothing has to be converted.
_VERSIONS = {"PodGroup": (HUB, "v1beta1"), "CompositePodGroup": (HUB,), "Workload": (HUB, "v1beta1")}


def crds() -> list[Schema]:
    """The three definitions, as manifests."""
    return [_definition(kind) for kind in sorted(_NAMES)]


def _definition(kind: str) -> Schema:
    plural, singular, short = _NAMES[kind]
    columns = [
        {"name": name, "type": "integer" if name == "Gang" else "string", "jsonPath": path}
        for name, path in _COLUMNS[kind]
    ]
    columns.append({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"})
    version: Schema = {
        "served": True,
        "schema": {"openAPIV3Schema": _root(kind)},
        "additionalPrinterColumns": columns,
    }
    if kind != "Workload":
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{CRD_GROUP}"},
        "spec": {
            "group": CRD_GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": singular,
                "kind": kind,
                "listKind": f"{kind}List",
                "shortNames": [short],
            },
            "versions": [{"name": name, "storage": name == HUB, **version} for name in _VERSIONS[kind]],
        },
    }


def _root(kind: str) -> Schema:
    whole = schemas(HUB)[schema_name(HUB, kind)]
    properties: Schema = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    if kind == "PodGroup":
        properties["metadata"]["properties"] = {"name": {"type": "string", "maxLength": LONGEST_POD_GROUP_NAME}}
    for part in ("spec", "status"):
        if part in whole["properties"]:
            properties[part] = _written_out(kind, part, whole["properties"][part], 0)
    return {"type": "object", "description": whole["description"], "required": ["spec"], "properties": properties}


def _written_out(holder: str, name: str, schema: Schema, depth: int) -> Schema:
    """A property with what it refers to put in its place."""
    if "allOf" in schema:
        struct = _struct(schema["allOf"][0]["$ref"])
        body = _object(struct, depth)
        body["description"] = schema.get("description") or body["description"]
        if name == "disruptionMode" and holder.endswith("Spec"):
            body["default"] = {"single": {}}
        return body
    result: Schema = {
        key: value for key, value in schema.items() if not key.startswith("x-kubernetes-patch") and value != ""
    }
    if schema.get("type") == "array":
        result["items"] = _written_out(holder, name, schema["items"], depth + (name == "compositePodGroupTemplates"))
    result.update(_TEXTS.get(f"{holder}.{name}", {}))
    if name in _TEMPLATE_LISTS:
        result["x-kubernetes-validations"] = [_same_items()]
    return result


def _object(struct: str, depth: int) -> Schema:
    whole = schemas(HUB)[_by_name()[struct]]
    schema: Schema = {"type": "object", "description": whole["description"]}
    properties = {
        name: _written_out(struct, name, each, depth)
        for name, each in whole.get("properties", {}).items()
        if not (name == "compositePodGroupTemplates" and depth >= MAX_DEPTH - 1)
    }
    if struct == "CompositePodGroupTemplate" and "compositePodGroupTemplates" not in properties:
        # A tree of templates has a depth, so the schema that repeats itself ends here. What is written deeper is kept
        # for the rule at the top that refuses it: left out, it would be dropped in silence.
        items = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        properties["compositePodGroupTemplates"] = {"type": "array", "maxItems": MAX_TEMPLATES, "items": items}
    if properties:
        schema["properties"] = properties
    if whole.get("required"):
        schema["required"] = whole["required"]
    rules = _rules(struct, properties) + ([_no_deeper()] if _is_top(struct, depth) else [])
    if rules:
        schema["x-kubernetes-validations"] = rules
    return schema


def _rules(struct: str, properties: Schema) -> list[Schema]:
    found: list[Schema] = []
    if struct in _UNIONS:
        one, other = _UNIONS[struct]
        found.append(_rule(f"has(self.{one}) != has(self.{other})", f"must specify exactly one of: {one}, {other}"))
    if struct in ("SchedulingPolicy", "CompositeSchedulingPolicy"):
        found.append(_rule("has(self.gang) == has(oldSelf.gang)", "the policy of a group may not change"))
    found += [
        _rule(
            f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
            "field is immutable",
            field,
        )
        for field in _FIXED.get(struct, ())
    ]
    if struct.endswith("Spec") and "priority" in properties:
        found += [_rule(_filled_once(field), "field is immutable once it is set", field) for field in _FILLED_ONCE]
    if struct == "PodGroupSpec":
        found.append(
            _rule(
                "!has(self.parentCompositePodGroupName) || has(self.workloadRef)",
                "must be set when parentCompositePodGroupName is set",
                "workloadRef",
            )
        )
    if struct == "CompositePodGroupTemplate":
        lists = [name for name in _TEMPLATE_LISTS if name in properties]
        has_child = " || ".join(f"(has(self.{name}) && size(self.{name}) > 0)" for name in lists)
        found.append(_rule(has_child, "must have at least one child template"))
        found += [
            _rule(_whole_children(name), "must be `all` below a template of mode `all`", name)
            for name in lists
            if "properties" in properties[name]["items"]
        ]
    return found


def _whole_children(children: str) -> str:
    """What is disrupted as a whole has no part that is disrupted alone."""
    whole = "has({0}.disruptionMode) && has({0}.disruptionMode.all)"
    all_whole = f"self.{children}.all(child, {whole.format('child')})"
    return f"!({whole.format('self')}) || !has(self.{children}) || {all_whole}"


def _is_top(struct: str, depth: int) -> bool:
    return struct == "CompositePodGroupTemplate" and depth == 1


def _no_deeper() -> Schema:
    """For the templates at the top: below the last level of composites there are only pod groups."""
    return _rule(_ends_below("self", MAX_DEPTH - 2), f"a hierarchy may have at most {MAX_DEPTH} levels")


def _ends_below(template: str, levels: int) -> str:
    """A rule that a template has at most so many levels of composite templates below it."""
    children, child = f"{template}.compositePodGroupTemplates", f"child{levels}"
    below = f"{children}.all({child}, {_ends_below(child, levels - 1)})" if levels else f"size({children}) == 0"
    return f"!has({children}) || {below}"


def _filled_once(field: str) -> str:
    """It stays as it is; who fills in the priority may fill in what is missing beside it.

    A group that came with a priority of its own still gets the preemption policy that it lacks.
    """
    unchanged = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    with_priority = "!has(oldSelf.priority) && has(self.priority)"
    if field == "preemptionPolicy":
        with_priority = f"(has(oldSelf.priority) || ({with_priority}))"
    return f"({unchanged}) || (!has(oldSelf.{field}) && {with_priority})"


def _same_items() -> Schema:
    same = "size(self) == size(oldSelf) && self.all(each, oldSelf.exists(old, old.name == each.name))"
    return _rule(same, "templates may neither be added nor removed")


def _rule(rule: str, message: str, field: str = "") -> Schema:
    made = {"rule": rule, "message": message}
    if field:
        made["fieldPath"] = f".{field}"
    return made


def _struct(reference: str) -> str:
    """The name that our types have for what a reference points to."""
    target = reference.rpartition("/")[2]
    return next(struct for struct, name in _by_name().items() if name == target)


def _by_name() -> dict[str, str]:
    from muster.api import groups

    ours = [name for name, value in vars(groups).items() if isinstance(value, type)]
    return {struct: schema_name(HUB, struct) for struct in (*ours, "Condition")}
