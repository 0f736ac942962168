"""The road of a migration: read the old Workloads, find their members, write everything anew, in the input's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from muster.api import versions
from muster.api.groups import GROUP, HUB
from muster.api.manifests import CRD_GROUP, CRD_LABEL
from muster.api.migration import embedded, members, other_groups, volcano_jobs
from muster.api.migration.notes import Note, name, namespace, title
from muster.api.migration.templates import changed_at, pod_templates
from muster.api.validation import fields
from muster.api.validation.fields import Obj

_NEWEST = "v1beta1"


class Migrated(NamedTuple):
    """The new objects, and what there is to say about them. `places` has the input of each note, by its index."""

    objects: list[Obj]
    notes: list[Note]
    places: dict[Note, int]


def migrate(objects: Iterable[Obj], *, to_crd: bool = False) -> Migrated:
    """Objects of any age as current ones: for the native API, or for Muster's own CRDs."""
    given = list(objects)
    notes: list[Note] = []
    old = {(namespace(obj), name(obj)): embedded.read(obj, notes) for obj in given if embedded.is_embedded(obj)}
    # Members first: they tell how many replicas a group has, and how many pods.
    places: dict[Note, int] = {}
    found: list[list[members.Membership]] = []
    for index, obj in enumerate(given):
        found.append([] if _is_group(obj) else members.find(obj, old, notes))
        notes += [] if _is_group(obj) else members.left_alone(obj)
        places |= {note: index for note in notes if note.path and note not in places}
    result: list[Obj] = []
    for index, (obj, memberships) in enumerate(zip(given, found, strict=True)):
        if embedded.is_embedded(obj):
            result += embedded.rewritten(old[(namespace(obj), name(obj))], notes)
        elif volcano_jobs.is_job(obj):
            result += volcano_jobs.converted(obj, notes)
        elif other_groups.is_group(obj):
            result.append(other_groups.converted(obj, notes))
        elif other_groups.is_queue(obj):
            other_groups.without_queue(obj, notes)
        elif _is_group(obj):
            result.append(_current(obj, notes))
        else:
            result.append(_with_members(obj, memberships, notes))
        places |= {note: index for note in notes if note.path and note not in places}
    if to_crd:
        result = [_as_crd(obj, notes) for obj in result]
    return Migrated(result, notes, places)


def _is_group(obj: Obj) -> bool:
    """Whether an object is one of the group kinds, of any age: their own `workloadRef` means something else."""
    group = fields.as_text(obj.get("apiVersion")).rpartition("/")[0]
    return obj.get("kind") in versions.KINDS and group in (GROUP, CRD_GROUP, "scheduling")


def _with_members(obj: Obj, memberships: list[members.Membership], notes: list[Note]) -> Obj:
    """An object whose pod templates name their groups as they do today."""
    new = other_groups.with_group_named(obj, notes)
    renamed = new is not obj
    for membership in memberships:
        new = members.rewritten(new, membership, notes)
    if (memberships or renamed) and not _is_built_in(obj):
        words = f"schedulingGroup is new: where the CRD of {obj.get('kind')} does not know it, the server drops it"
        notes.append(Note(title(obj), words))
    return members.without_links(new)


def _is_built_in(obj: Obj) -> bool:
    """Whether a kind that has pod templates is one of Kubernetes' own: their API groups have no dot."""
    group = fields.as_text(obj.get("apiVersion")).rpartition("/")[0]
    return "." not in group


def _current(obj: Obj, notes: list[Note]) -> Obj:
    """A group object in the newest version that serves its kind."""
    group, _, version = fields.as_text(obj.get("apiVersion")).rpartition("/")
    kind = fields.as_text(obj.get("kind"))
    if group != GROUP or kind not in versions.KINDS or version not in versions.VERSIONS:
        return obj
    obj = _nested_reference(obj, notes)
    if version != "v1alpha2":
        return obj
    converted = versions.convert(obj, _NEWEST)
    notes.append(Note(title(obj), f"{obj['apiVersion']} became {converted['apiVersion']}"))
    notes += [Note(title(obj), f"{before} became {after}") for before, after in _renames(obj)]
    return converted


def _renames(obj: Obj) -> Iterator[tuple[str, str]]:
    spec = fields.as_object(obj.get("spec"))
    if spec.get("podGroupTemplateRef") is not None:
        yield "spec.podGroupTemplateRef.workload", "spec.workloadRef"
    holders = [("spec", spec)]
    holders += [
        (f"spec.podGroupTemplates[{index}]", fields.as_object(item))
        for index, item in enumerate(fields.as_list(spec.get("podGroupTemplates")))
    ]
    for path, holder in holders:
        mode = holder.get("disruptionMode")
        if mode in ("Pod", "PodGroup"):
            yield f'{path}.disruptionMode "{mode}"', "{single: {}}" if mode == "Pod" else "{all: {}}"


def _nested_reference(obj: Obj, notes: list[Note]) -> Obj:
    """A reference written flat, as some articles show it, in the form of its version."""
    spec = fields.as_object(obj.get("spec"))
    reference = fields.as_object(spec.get("podGroupTemplateRef"))
    flat = "workloadName" in reference or "podGroupTemplateName" in reference
    nested = fields.as_object(reference.get("workload"))
    is_old = fields.as_text(obj.get("apiVersion")).endswith("/v1alpha2")
    if not flat and (is_old or not nested):
        return obj
    workload = reference if flat else nested
    if is_old:
        return {**obj, "spec": {**spec, "podGroupTemplateRef": {"workload": workload}}}
    rest = {key: value for key, value in spec.items() if key != "podGroupTemplateRef"}
    notes.append(Note(title(obj), "spec.podGroupTemplateRef became spec.workloadRef"))
    renamed = {"workloadName": workload.get("workloadName"), "templateName": workload.get("podGroupTemplateName")}
    return {**obj, "spec": {"workloadRef": renamed, **rest}}


# --- Muster's own CRDs -----------------------------------------------------------------------------


def _as_crd(obj: Obj, notes: list[Note]) -> Obj:
    group, _, version = fields.as_text(obj.get("apiVersion")).rpartition("/")
    kind = fields.as_text(obj.get("kind"))
    if group == GROUP and kind in versions.KINDS and version in versions.VERSIONS:
        hub = versions.convert(obj, HUB)
        notes.append(Note(title(obj), f"{obj['apiVersion']} became {CRD_GROUP}/{HUB}"))
        if kind == "PodGroup" and len(name(obj)) > 63:
            notes.append(Note(title(obj), "its name is longer than a label may be (63): no pod can name it"))
        return {**hub, "apiVersion": f"{CRD_GROUP}/{HUB}"}
    new = obj
    for at in pod_templates(obj):
        spec = fields.as_object(at.holder.get("spec"))
        group_named = fields.as_object(spec.get("schedulingGroup")).get("podGroupName")
        if isinstance(group_named, str):
            words = f"{at.spec_path}.schedulingGroup became the label {CRD_LABEL}: {group_named}"
            notes.append(Note(title(obj), words))
            new = changed_at(new, at.steps, _labelled)
    return new


def _labelled(holder: Obj) -> Obj:
    spec = fields.as_object(holder["spec"])
    group = fields.as_object(spec.get("schedulingGroup")).get("podGroupName")
    metadata = fields.as_object(holder.get("metadata"))
    labels = {**fields.as_object(metadata.get("labels")), CRD_LABEL: group}
    rest = {key: value for key, value in spec.items() if key != "schedulingGroup"}
    # On a cluster without the group API only Muster knows what the label means.
    return {**holder, "metadata": {**metadata, "labels": labels}, "spec": {"schedulerName": "muster", **rest}}
