"""Judging a manifest without a server: which rules apply to it, and everything that is wrong with it.

Group kinds are judged by all of their rules, in any served version. Of the other kinds only what gangs
depend on is judged: names, the shape of what the scheduler reads, quantities, and the membership of pods
and pod templates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from muster.api import decoding, quantity, versions
from muster.api.errors import FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED, TYPE_INVALID, FieldError
from muster.api.groups import GROUP, HUB
from muster.api.job_gangs import GANG_ANNOTATION, BadGangAnnotation, check_annotation, gang_annotation
from muster.api.validation import composite, fields, meta, pod, podgroup, workload
from muster.api.validation.fields import Errors, Obj

CRD_GROUP = "scheduling.muster.dev"
CRD_LABEL = "scheduling.muster.dev/pod-group"

_RULES = {"Workload": workload, "PodGroup": podgroup, "CompositePodGroup": composite}
_TEMPLATES = {
    "Job": "spec.template",
    "Deployment": "spec.template",
    "ReplicaSet": "spec.template",
    "StatefulSet": "spec.template",
    "DaemonSet": "spec.template",
    "ReplicationController": "spec.template",
    "PodTemplate": "template",
    "CronJob": "spec.jobTemplate.spec.template",
}
_CLUSTER_SCOPED = ("Node", "PriorityClass")
_OLD_GROUPS = ("scheduling", GROUP)


class PodSpecAt(NamedTuple):
    """A pod spec inside a manifest: the object that holds it and its metadata, and the path of that object."""

    holder: Obj
    path: str

    @property
    def spec_path(self) -> str:
        return f"{self.path}.spec" if self.path else "spec"


def pod_specs(obj: Obj) -> Iterator[PodSpecAt]:
    """The pod, or the pod template, that a manifest contains."""
    kind = fields.as_text(obj.get("kind"))
    if kind == "Pod" and isinstance(obj.get("spec"), dict):
        yield PodSpecAt(obj, "")
    elif kind in _TEMPLATES:
        holder: Any = obj
        for step in _TEMPLATES[kind].split("."):
            holder = fields.as_object(holder).get(step)
        if isinstance(fields.as_object(holder).get("spec"), dict):
            yield PodSpecAt(fields.as_object(holder), _TEMPLATES[kind])


def check(manifest: Any) -> Errors | None:
    """Everything wrong with a manifest; None when its kind is one that there are no rules for."""
    if not isinstance(manifest, dict):
        return [FieldError(TYPE_INVALID, "", None, "a manifest must be an object")]
    obj = fields.as_object(manifest)
    missing = [FieldError(REQUIRED, name) for name in ("apiVersion", "kind") if not fields.as_text(obj.get(name))]
    if missing:
        return missing
    kind, (group, _, version) = fields.as_text(obj["kind"]), fields.as_text(obj["apiVersion"]).rpartition("/")
    if kind in _RULES and group in (*_OLD_GROUPS, CRD_GROUP):
        return _group(obj, kind, group, version)
    errors = meta.validate(obj, namespaced=kind not in _CLUSTER_SCOPED)
    if kind in ("Pod", *_CLUSTER_SCOPED, "PodDisruptionBudget"):
        errors += decoding.decode_errors(obj, kind)
        return _unique(errors + _membership(obj)) if kind == "Pod" else _unique(errors)
    if kind == "Job":
        errors += _gang_annotation(obj)
    return errors + _membership(obj) if kind in _TEMPLATES else None


def _gang_annotation(job: Obj) -> Errors:
    """What is wrong with the annotation that makes a Job a gang, or keeps it from being one."""
    spec = fields.as_object(job.get("spec"))
    numbers = all(isinstance(spec.get(key), int | None) for key in ("parallelism", "completions"))
    value = gang_annotation(fields.as_object(fields.as_object(job.get("metadata")).get("annotations")), spec)
    if value is None or not numbers:
        return []
    try:
        check_annotation(value, spec)
    except BadGangAnnotation as fault:
        return [FieldError(INVALID, f"metadata.annotations[{GANG_ANNOTATION}]", value, str(fault))]
    return []


def _group(obj: Obj, kind: str, group: str, version: str) -> Errors:
    if refusal := _refused_version(obj, kind, group, version):
        return [refusal]
    native = {**obj, "apiVersion": f"{GROUP}/{version}"}
    hub = versions.convert(native, HUB)
    errors = meta.validate(hub)
    errors += [FieldError(FORBIDDEN, path, None, "unknown field") for path in decoding.unknown_fields(hub, kind)]
    errors += decoding.decode_errors(hub, kind)
    errors += _RULES[kind].validate(hub, None, "")
    if version == "v1alpha2":
        errors = [error._replace(field=_in_v1alpha2(error.field)) for error in errors]
    return _unique(errors)


def _in_v1alpha2(path: str) -> str:
    """The path that an author of a v1alpha2 manifest wrote."""
    path = path.replace("spec.workloadRef.templateName", "spec.podGroupTemplateRef.workload.podGroupTemplateName")
    return path.replace("spec.workloadRef", "spec.podGroupTemplateRef.workload")


def _unique(errors: Errors) -> Errors:
    """Two rules may find the same fault in a label; it is said once."""
    return list({(error.field, error.body()): error for error in errors}.values())


def _refused_version(obj: Obj, kind: str, group: str, version: str) -> FieldError | None:
    served = (HUB,) if group == CRD_GROUP else versions.SERVED[kind]
    if group != "scheduling" and version in served:
        return None
    names = ", ".join(f"{CRD_GROUP if group == CRD_GROUP else GROUP}/{each}" for each in served)
    hint = "; `muster migrate` rewrites older manifests" if version == "v1alpha1" else ""
    return FieldError(NOT_SUPPORTED, "apiVersion", obj["apiVersion"], f"{kind} is served as {names}{hint}")


def _membership(obj: Obj) -> Errors:
    errors: Errors = []
    for found_at in pod_specs(obj):
        spec_path, spec = found_at.spec_path, fields.as_object(found_at.holder["spec"])
        if found_at.path:
            found = decoding.decode_errors(spec, "PodSpec")
            errors += [error._replace(field=f"{spec_path}.{error.field}") for error in found]
        errors += pod.validate_scheduling_group(spec, spec_path) + _quantities(spec, spec_path)
    return errors


def _quantities(spec: Obj, path: str) -> Errors:
    errors: Errors = []
    for listed in ("initContainers", "containers"):
        for index, container in enumerate(fields.as_list(spec.get(listed))):
            resources = fields.as_object(fields.as_object(container).get("resources"))
            for part in ("limits", "requests"):
                where = f"{path}.{listed}[{index}].resources.{part}"
                errors += _amounts(fields.as_object(resources.get(part)), where)
    return errors


def _amounts(amounts: Obj, path: str) -> Errors:
    errors: Errors = []
    for name, amount in amounts.items():
        try:
            if quantity.parse(amount).nanos < 0:
                errors.append(FieldError(INVALID, f"{path}[{name}]", amount, "must be greater than or equal to 0"))
        except (ValueError, TypeError) as error:
            errors.append(FieldError(INVALID, f"{path}[{name}]", str(amount)[:100], str(error)[:300]))
    return errors
