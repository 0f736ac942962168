"""The same group object in another version of scheduling.k8s.io, without loss in either direction.

v1alpha3 is the hub; v1beta1 has the same fields; v1alpha2 (Kubernetes 1.36) names some of them
differently and lacks others. What v1alpha2 cannot express travels in an annotation and comes back
from there, so there-and-back always gives the object one started with; a value that a v1alpha2 client
sets itself wins over the remembered one. Unknown fields are kept. Objects are plain JSON dicts; the
result shares the parts that did not change with the argument.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from muster.api.groups import GROUP, HUB, POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED

Obj = dict[str, Any]

KINDS = ("Workload", "PodGroup", "CompositePodGroup")
VERSIONS = ("v1beta1", "v1alpha3", "v1alpha2")
SERVED: dict[str, tuple[str, ...]] = {"Workload": VERSIONS, "PodGroup": VERSIONS, "CompositePodGroup": (HUB,)}
"""Which versions serve a kind, in order of preference."""

KEPT = "scheduling.muster.dev/kept-from-v1alpha3"
"""The annotation of a v1alpha2 object that holds what the version has no field for."""

_ABSENT_IN_V1ALPHA2 = {
    "Workload": ("compositePodGroupTemplates",),
    "PodGroup": ("parentCompositePodGroupName", "preemptionPolicy"),
}
_ABSENT_IN_TEMPLATES = ("preemptionPolicy",)
_MODE_TO_TEXT: tuple[tuple[Obj, str], ...] = (({"single": {}}, "Pod"), ({"all": {}}, "PodGroup"))
_CONDITION_SWAP = {
    POD_GROUP_INITIALLY_SCHEDULED: POD_GROUP_SCHEDULED,
    POD_GROUP_SCHEDULED: POD_GROUP_INITIALLY_SCHEDULED,
}


def convert(obj: Obj, version: str) -> Obj:
    """The object in another version: v1alpha2, v1alpha3 or v1beta1. ValueError for a kind or version it has not."""
    kind = str(obj.get("kind") or "")
    group, _, current = str(obj.get("apiVersion") or "").partition("/")
    if kind not in KINDS or group != GROUP:
        raise ValueError(f"{obj.get('apiVersion')} {kind} is not a kind of {GROUP} that has versions")
    for wanted in (current, version):
        if wanted not in VERSIONS:
            raise ValueError(f"{GROUP}/{wanted} is not served (served: {', '.join(VERSIONS)})")
    if current == version:
        return obj
    result = {**obj, "apiVersion": f"{GROUP}/{version}"}
    if kind in _ABSENT_IN_V1ALPHA2:
        if current == "v1alpha2":
            _to_hub(result, kind)
        elif version == "v1alpha2":
            _from_hub(result, kind)
    return result


# --- hub to v1alpha2 -------------------------------------------------------------------------------


def _from_hub(obj: Obj, kind: str) -> None:
    kept: Obj = {}
    spec = _copied(obj, "spec")
    if spec is not None:
        for field in _ABSENT_IN_V1ALPHA2[kind]:
            if field in spec:
                kept[field] = spec.pop(field)
        if kind == "PodGroup":
            _reference_from_hub(spec, kept)
            _mode_from_hub(spec, kept)
        else:
            _templates_from_hub(spec, kept)
    if kind == "PodGroup":
        _swap_conditions(obj)
    _remember(obj, kept)


def _templates_from_hub(spec: Obj, kept: Obj) -> None:
    templates = spec.get("podGroupTemplates")
    if not isinstance(templates, list):
        return
    converted: list[Any] = []
    remembered: Obj = {}
    for index, template in enumerate(cast("list[Any]", templates)):
        if isinstance(template, dict):
            copy: Obj = dict(cast("Obj", template))
            lost: Obj = {field: copy.pop(field) for field in _ABSENT_IN_TEMPLATES if field in copy}
            _mode_from_hub(copy, lost)
            if lost:
                remembered[str(index)] = lost
            converted.append(copy)
        else:
            converted.append(template)
    spec["podGroupTemplates"] = converted
    if remembered:
        kept["podGroupTemplates"] = remembered


def _reference_from_hub(spec: Obj, kept: Obj) -> None:
    if "podGroupTemplateRef" in spec:  # unknown to the hub, but it would be taken for our own
        kept["podGroupTemplateRef"] = spec.pop("podGroupTemplateRef")
    reference = spec.get("workloadRef")
    if isinstance(reference, dict):
        del spec["workloadRef"]
        spec["podGroupTemplateRef"] = {"workload": _swap_keys(cast("Obj", reference))}
    elif "workloadRef" in spec:
        kept["workloadRef"] = spec.pop("workloadRef")


def _mode_from_hub(holder: Obj, kept: Obj) -> None:
    mode = holder.get("disruptionMode")
    if mode is None:
        return
    for form, text in _MODE_TO_TEXT:
        if mode == form:
            holder["disruptionMode"] = text
            return
    kept["disruptionMode"] = holder.pop("disruptionMode")


def _remember(obj: Obj, kept: Obj) -> None:
    metadata = _copied(obj, "metadata")
    annotations = _copied(metadata, "annotations") if metadata is not None else None
    if annotations is not None and KEPT in annotations:
        kept["annotation"] = annotations[KEPT]
    if not kept:
        return
    if metadata is None:
        # Without metadata there is no place to remember anything: the object is malformed, say it with empty ones.
        metadata = obj["metadata"] = {}
    if annotations is None:
        kept["annotations"] = metadata.get("annotations", False)
        annotations = metadata["annotations"] = {}
    annotations[KEPT] = msgspec.json.encode(kept, order="sorted").decode()


# --- v1alpha2 to hub -------------------------------------------------------------------------------


def _to_hub(obj: Obj, kind: str) -> None:
    kept = _recall(obj)
    spec = _copied(obj, "spec")
    if spec is not None:
        if kind == "PodGroup":
            _reference_to_hub(spec, kept)
            _mode_to_hub(spec, kept)
        else:
            _templates_to_hub(spec, kept.pop("podGroupTemplates", None))
        for field in _ABSENT_IN_V1ALPHA2[kind]:
            if field in kept:
                spec.setdefault(field, kept[field])
    if kind == "PodGroup":
        _swap_conditions(obj)


def _templates_to_hub(spec: Obj, remembered: Any) -> None:
    templates = spec.get("podGroupTemplates")
    if not isinstance(templates, list):
        return
    converted: list[Any] = []
    for index, template in enumerate(cast("list[Any]", templates)):
        if isinstance(template, dict):
            copy: Obj = dict(cast("Obj", template))
            lost = cast("Obj", remembered).get(str(index)) if isinstance(remembered, dict) else None
            kept: Obj = cast("Obj", lost) if isinstance(lost, dict) else {}
            _mode_to_hub(copy, kept)
            for field in _ABSENT_IN_TEMPLATES:
                if field in kept:
                    copy.setdefault(field, kept[field])
            converted.append(copy)
        else:
            converted.append(template)
    spec["podGroupTemplates"] = converted


def _reference_to_hub(spec: Obj, kept: Obj) -> None:
    reference = spec.get("podGroupTemplateRef")
    workload = cast("Obj", reference).get("workload") if isinstance(reference, dict) else None
    if isinstance(workload, dict) and len(cast("Obj", reference)) == 1:
        del spec["podGroupTemplateRef"]
        spec["workloadRef"] = _swap_keys(cast("Obj", workload))
    elif "workloadRef" in kept:
        spec.setdefault("workloadRef", kept["workloadRef"])
    if "podGroupTemplateRef" in kept:
        spec.setdefault("podGroupTemplateRef", kept["podGroupTemplateRef"])


def _mode_to_hub(holder: Obj, kept: Obj) -> None:
    mode = holder.get("disruptionMode")
    for form, text in _MODE_TO_TEXT:
        if mode == text:
            holder["disruptionMode"] = {member: {} for member in form}
    if "disruptionMode" in kept:
        holder.setdefault("disruptionMode", kept["disruptionMode"])


def _recall(obj: Obj) -> Obj:
    """Take the remembered fields out of the annotation; a note that is not ours is left where it is."""
    metadata = obj.get("metadata")
    annotations = cast("Obj", metadata).get("annotations") if isinstance(metadata, dict) else None
    text = cast("Obj", annotations).get(KEPT) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return {}
    try:
        kept = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}
    fresh: Obj = _copied(obj, "metadata") or {}
    remaining: Obj = _copied(fresh, "annotations") or {}
    del remaining[KEPT]
    if "annotation" in kept:
        remaining[KEPT] = kept.pop("annotation")
    before = kept.pop("annotations", True)
    if not remaining and before is False:
        del fresh["annotations"]
    elif not remaining and before is None:
        fresh["annotations"] = None
    return kept


# --- both ways -------------------------------------------------------------------------------------


def _swap_conditions(obj: Obj) -> None:
    """Rename the group's condition. Both names are swapped, so that an object holding both loses neither."""
    status = obj.get("status")
    conditions = cast("Obj", status).get("conditions") if isinstance(status, dict) else None
    if not isinstance(conditions, list):
        return
    renamed = [_renamed(condition) for condition in cast("list[Any]", conditions)]
    obj["status"] = {**cast("Obj", status), "conditions": renamed}


def _renamed(condition: Any) -> Any:
    if not isinstance(condition, dict):
        return condition
    typed = cast("Obj", condition)
    name = typed.get("type")
    other = _CONDITION_SWAP.get(name) if isinstance(name, str) else None
    return {**typed, "type": other} if other else typed


def _swap_keys(reference: Obj) -> Obj:
    names = {"templateName": "podGroupTemplateName", "podGroupTemplateName": "templateName"}
    return {names.get(key, key): value for key, value in reference.items()}


def _copied(holder: Obj | None, field: str) -> Obj | None:
    """Replace a nested object by a copy of its own before it is changed; None where it is no object."""
    nested = holder.get(field) if holder is not None else None
    if holder is None or not isinstance(nested, dict):
        return None
    copy: Obj = dict(cast("Obj", nested))
    holder[field] = copy
    return copy
