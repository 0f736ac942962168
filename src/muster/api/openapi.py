"""OpenAPI v3 schemas of the group kinds, made from their types: what `kubectl explain` and `kubectl apply` read.

The structs in `muster.api.groups` give the fields, `muster.api.descriptions` the words; only what JSON
cannot say (list keys, required fields, formats) is listed here. Metadata and conditions are referred to
under their Kubernetes names; `META_SCHEMAS` has short definitions for servers that define none.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from muster.api import groups, types
from muster.api.descriptions import TEXTS
from muster.api.groups import GROUP, MAX_RESOURCE_CLAIMS, MAX_TEMPLATES
from muster.api.versions import SERVED

Schema = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_KINDS: dict[str, type[msgspec.Struct]] = {
    "Workload": groups.Workload,
    "PodGroup": groups.PodGroup,
    "CompositePodGroup": groups.CompositePodGroup,
}
# The names that Kubernetes gives these types where ours are shorter.
_NAMES = {
    "Empty": "BasicSchedulingPolicy",
    "GangPolicy": "GangSchedulingPolicy",
    "SchedulingPolicy": "PodGroupSchedulingPolicy",
    "CompositeGangPolicy": "CompositeGangSchedulingPolicy",
    "CompositeSchedulingPolicy": "CompositePodGroupSchedulingPolicy",
    "SchedulingConstraints": "PodGroupSchedulingConstraints",
    "GroupResourceClaim": "PodGroupResourceClaim",
    "GroupResourceClaimStatus": "PodGroupResourceClaimStatus",
    "TypedReference": "TypedLocalObjectReference",
}
_REQUIRED: dict[str, list[str]] = {
    "PodGroup": ["spec"],
    "CompositePodGroup": ["spec"],
    "Workload": ["spec"],
    "PodGroupSpec": ["schedulingPolicy"],
    "CompositePodGroupSpec": ["workloadRef", "schedulingPolicy"],
    "PodGroupTemplate": ["name", "schedulingPolicy"],
    "CompositePodGroupTemplate": ["name", "schedulingPolicy"],
    "GangPolicy": ["minCount"],
    "CompositeGangPolicy": ["minGroupCount"],
    "TopologyConstraint": ["key"],
    "WorkloadReference": ["workloadName", "templateName"],
    "GroupResourceClaim": ["name"],
    "GroupResourceClaimStatus": ["name"],
    "TypedReference": ["kind", "name"],
}
_LISTS: dict[str, tuple[str, int | None]] = {
    "podGroupTemplates": ("name", MAX_TEMPLATES),
    "compositePodGroupTemplates": ("name", MAX_TEMPLATES),
    "resourceClaims": ("name", MAX_RESOURCE_CLAIMS),
    "resourceClaimStatuses": ("name", MAX_RESOURCE_CLAIMS),
    "conditions": ("type", None),
    "topology": ("", 1),
}
_EXTRA: dict[str, Schema] = {
    "minCount": {"minimum": 1},
    "minGroupCount": {"minimum": 1},
    "priority": {"maximum": groups.MAX_PRIORITY},
    "preemptionPolicy": {"enum": [groups.NEVER, groups.PREEMPT_LOWER_PRIORITY]},
}

META_SCHEMAS: dict[str, Schema] = {
    f"{_META}.ObjectMeta": {
        "description": "ObjectMeta is what all objects have: names, labels, owners and their history.",
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the object, unique in its namespace."},
            "generateName": {"type": "string", "description": "A prefix to make a name from, where none is given."},
            "namespace": {"type": "string", "description": "The namespace of the object."},
            "uid": {"type": "string", "description": "What tells this object from others of the same name over time."},
            "resourceVersion": {"type": "string", "description": "The revision of the stored object."},
            "generation": {"type": "integer", "format": "int64", "description": "How often the spec changed."},
            "creationTimestamp": {
                "type": "string",
                "format": "date-time",
                "description": "CreationTimestamp is a timestamp of the server: when it created the object.",
            },
            "deletionTimestamp": {"type": "string", "format": "date-time", "description": "When it was deleted."},
            "deletionGracePeriodSeconds": {"type": "integer", "format": "int64", "description": "Time left to end."},
            "selfLink": {"type": "string", "description": "Not used any more."},
            "labels": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Keys and values to select objects by.",
            },
            "annotations": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Keys and values that tools keep with the object.",
            },
            "finalizers": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
                "description": "Who must agree before a deleted object goes away.",
            },
            "ownerReferences": {
                "type": "array",
                "items": {"type": "object", "additionalProperties": True},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "description": "The objects that this one belongs to; it is deleted with the last of them.",
            },
            "managedFields": {
                "type": "array",
                "items": {"type": "object", "additionalProperties": True},
                "x-kubernetes-list-type": "atomic",
                "description": "Who set which fields.",
            },
        },
    },
    f"{_META}.ListMeta": {
        "description": "ListMeta is what all lists have.",
        "type": "object",
        "properties": {
            "resourceVersion": {"type": "string", "description": "The revision that the list shows."},
            "continue": {"type": "string", "description": "What to ask for the next part of the list with."},
            "remainingItemCount": {"type": "integer", "format": "int64", "description": "How many items follow."},
            "selfLink": {"type": "string", "description": "Not used any more."},
        },
    },
}


def schema_name(version: str, struct: str) -> str:
    """The name of a type's schema in the documents of a version."""
    if struct == "Condition":
        return f"{_META}.Condition"
    return f"io.k8s.api.scheduling.{version}.{_NAMES.get(struct, struct)}"


@cache
def schemas(version: str) -> dict[str, Schema]:
    """All schemas of the group kinds that a version serves, by name. Treat the result as read-only."""
    found: dict[str, Schema] = {}
    for kind, served in SERVED.items():
        if version in served:
            _collect(inspect.type_info(_KINDS[kind]), version, found)
            found[schema_name(version, f"{kind}List")] = _list_schema(kind, version)
    if version == "v1alpha2":
        _as_v1alpha2(found)
    return dict(sorted(found.items()))


def _collect(root: inspect.Type, version: str, found: dict[str, Schema]) -> None:
    pending = [root]
    while pending:
        struct = _bare(pending.pop())
        if not isinstance(struct, inspect.StructType) or issubclass(struct.cls, types.ObjectMeta):
            continue
        name = schema_name(version, struct.cls.__name__)
        if name not in found:
            found[name] = _object(struct, version)
            for field in struct.fields:
                inner = _bare(field.type)
                pending.append(inner.item_type if isinstance(inner, inspect.VarTupleType) else inner)


def _bare(kind: inspect.Type) -> inspect.Type:
    if isinstance(kind, inspect.UnionType):
        return next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    return kind


def _object(struct: inspect.StructType, version: str) -> Schema:
    name = struct.cls.__name__
    schema: Schema = {"description": TEXTS[name], "type": "object"}
    properties = {
        field.encode_name: _property(name, field, version)
        for field in sorted(struct.fields, key=lambda each: each.encode_name)
    }
    if properties:
        schema["properties"] = properties
    required = (
        ["lastTransitionTime", "message", "reason", "status", "type"] if name == "Condition" else _REQUIRED.get(name)
    )
    if required:
        schema["required"] = sorted(required)
    if name in _KINDS:
        schema["x-kubernetes-group-version-kind"] = [{"group": GROUP, "kind": name, "version": version}]
    return schema


def _property(holder: str, field: inspect.Field, version: str) -> Schema:
    schema = _value(_bare(field.type), version)
    schema["description"] = TEXTS.get(f"{holder}.{field.encode_name}", "")
    schema.update(_EXTRA.get(field.encode_name, {}))
    if field.encode_name in _LISTS:
        key, limit = _LISTS[field.encode_name]
        schema["x-kubernetes-list-type"] = "map" if key else "atomic"
        if key:
            schema["x-kubernetes-list-map-keys"] = [key]
        if limit is not None:
            schema["maxItems"] = limit
        if field.encode_name == "conditions":
            schema |= {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "type"}
    if field.encode_name == "lastTransitionTime":
        schema["format"] = "date-time"
    return schema


def _value(kind: inspect.Type, version: str) -> Schema:
    match kind:
        case inspect.StructType(cls=cls) if issubclass(cls, types.ObjectMeta):
            return _reference(f"{_META}.ObjectMeta")
        case inspect.StructType(cls=cls):
            return _reference(schema_name(version, cls.__name__))
        case inspect.VarTupleType(item_type=item):
            return {"type": "array", "items": _value(_bare(item), version)}
        case inspect.IntType(le=limit):
            return {"type": "integer", "format": "int64" if limit is None else "int32"}
        case inspect.StrType():
            return {"type": "string"}
        case _:
            raise TypeError(f"no schema for {kind}")


def _reference(name: str) -> Schema:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def _list_schema(kind: str, version: str) -> Schema:
    item = _reference(schema_name(version, kind))
    return {
        "description": f"{kind}List is a list of {kind}s.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": TEXTS[f"{kind}.apiVersion"]},
            "items": {"type": "array", "items": item, "description": "The objects."},
            "kind": {"type": "string", "description": TEXTS[f"{kind}.kind"]},
            "metadata": {**_reference(f"{_META}.ListMeta"), "description": "The revision that the list shows."},
        },
        "x-kubernetes-group-version-kind": [{"group": GROUP, "kind": f"{kind}List", "version": version}],
    }


def _as_v1alpha2(found: dict[str, Schema]) -> None:
    """Rename and remove what Kubernetes 1.36 knew differently."""
    prefix = "io.k8s.api.scheduling.v1alpha2"
    mode: Schema = {"type": "string", "enum": ["Pod", "PodGroup"]}
    for name in (f"{prefix}.PodGroupSpec", f"{prefix}.PodGroupTemplate"):
        properties = found[name]["properties"]
        words = properties["disruptionMode"]["description"].replace("(single,", "(Pod,").replace("(all)", "(PodGroup)")
        properties["disruptionMode"] = {**mode, "description": words}
        properties.pop("preemptionPolicy")
    spec = found[f"{prefix}.PodGroupSpec"]["properties"]
    for gone in ("parentCompositePodGroupName", "workloadRef"):
        spec.pop(gone)
    reference = f"{prefix}.PodGroupTemplateReference"
    words = TEXTS["PodGroupSpec.podGroupTemplateRef"]
    spec["podGroupTemplateRef"] = {**_reference(reference), "description": words}
    inner = found.pop(f"{prefix}.WorkloadReference")
    inner["properties"]["podGroupTemplateName"] = inner["properties"].pop("templateName")
    inner["required"] = ["podGroupTemplateName", "workloadName"]
    found[f"{prefix}.WorkloadPodGroupTemplateReference"] = inner
    workload = _reference(f"{prefix}.WorkloadPodGroupTemplateReference")
    found[reference] = {
        "description": "PodGroupTemplateReference names one template.",
        "type": "object",
        "properties": {"workload": {**workload, "description": inner["description"]}},
    }
    found[f"{prefix}.WorkloadSpec"]["properties"].pop("compositePodGroupTemplates")
    found[f"{prefix}.WorkloadSpec"]["required"] = ["podGroupTemplates"]
    for name in [
        name for name in found if name.startswith(f"{prefix}.Composite") or name == f"{prefix}.DisruptionMode"
    ]:
        del found[name]
