"""Which group a pod of an older manifest belongs to, and how it says so today.

The first draft had `spec.workload` (the group told by a label selector or by name), 1.35 had `spec.workloadRef`; both
become `spec.schedulingGroup.podGroupName`. Pod templates are treated like pods, wherever they are in an object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from muster.api.migration.embedded import OldGroup, OldWorkload, group_name
from muster.api.migration.notes import Note, name, namespace, title
from muster.api.migration.templates import TemplateAt, changed_at, links_elsewhere, path_of, pod_templates
from muster.api.validation import fields
from muster.api.validation.fields import Obj

_LINKS = ("workload", "workloadRef")

Workloads = dict[tuple[str, str], OldWorkload]


class Membership(NamedTuple):
    """A pod spec found to belong to a group."""

    at: TemplateAt
    group: str
    link: str


def find(obj: Obj, workloads: Workloads, notes: list[Note]) -> list[Membership]:
    """The memberships that an object declares, each counted in its Workload."""
    found = (_membership(obj, at, workloads, notes) for at in pod_templates(obj))
    return [membership for membership in found if membership is not None]


def _membership(obj: Obj, at: TemplateAt, workloads: Workloads, notes: list[Note]) -> Membership | None:
    spec = fields.as_object(at.holder.get("spec"))
    link = next((each for each in _LINKS if spec.get(each) is not None), "")
    reference = fields.as_object(spec.get(link)) if link else {}
    old = _workload(obj, reference, workloads)
    wanted = fields.as_text(reference.get("name")) or (name(old.source) if old else "")
    if not wanted:
        return None
    labels = fields.as_object(fields.as_object(at.holder.get("metadata")).get("labels"))
    group = _group(old, reference, labels)
    if group is None:
        note = _undecided(obj, reference, old, wanted)
        notes.append(note._replace(path=f"{at.spec_path}.{link}" if link else at.spec_path))
        if old is not None or not fields.as_text(reference.get("podGroup")):
            return None
    replica = _replica(group, reference, labels)
    if group is not None:
        group.members += at.pods
        if replica not in group.seen_replicas:
            group.seen_replicas.append(replica)
    chosen = group.name if group is not None else fields.as_text(reference.get("podGroup"))
    return Membership(at, group_name(wanted, chosen, replica), link)


def _workload(obj: Obj, reference: Obj, workloads: Workloads) -> OldWorkload | None:
    wanted = fields.as_text(reference.get("name"))
    if wanted:
        return workloads.get((namespace(obj), wanted))
    # The draft's own example has a Job without a link; its Workload names it as the controller.
    mine = (fields.as_text(obj.get("kind")), name(obj))
    for old in workloads.values():
        if old.controller == mine and namespace(old.source) == namespace(obj):
            return old
    return None


def _group(old: OldWorkload | None, reference: Obj, labels: Obj) -> OldGroup | None:
    if old is None:
        return None
    named = fields.as_text(reference.get("podGroup"))
    if named:
        return old.groups.get(named)
    selected = [each for each in old.groups.values() if each.selector and _selects(each.selector, labels)]
    if len(selected) == 1:
        return selected[0]
    return next(iter(old.groups.values())) if len(old.groups) == 1 else None


def _selects(selector: dict[str, str], labels: Obj) -> bool:
    return all(labels.get(key) == wanted for key, wanted in selector.items())


def _replica(group: OldGroup | None, reference: Obj, labels: Obj) -> str:
    for field in ("podGroupReplicaKey", "podGroupReplica"):
        value = reference.get(field)
        if value is not None:
            return str(value)
    if group is not None and group.replicated:
        return fields.as_text(labels.get(group.replica_label)) or "0"
    return ""


def _undecided(obj: Obj, reference: Obj, old: OldWorkload | None, wanted: str) -> Note:
    if old is None:
        return Note(
            title(obj), f"its Workload {wanted!r} is not among the input; create the PodGroup it names yourself"
        )
    known = ", ".join(old.groups) or "none"
    asked = fields.as_text(reference.get("podGroup"))
    return Note(title(obj), f"which group of {wanted!r} it belongs to is not clear ({asked or known})", lost=True)


def rewritten(obj: Obj, membership: Membership, notes: list[Note]) -> Obj:
    """The object with today's field in place of the old link."""

    def change(holder: Obj) -> Obj:
        old_spec = fields.as_object(holder["spec"])
        spec = {key: value for key, value in old_spec.items() if key != membership.link}
        return {**holder, "spec": {**spec, "schedulingGroup": {"podGroupName": membership.group}}}

    at = membership.at
    where = f"{at.spec_path}.{membership.link}" if membership.link else "its Workload's controllerRef"
    notes.append(Note(title(obj), f"{where} became schedulingGroup.podGroupName: {membership.group}"))
    return changed_at(obj, at.steps, change)


def without_links(obj: Obj) -> Obj:
    """The object without links that lead nowhere."""
    for at in pod_templates(obj):
        if any(link in fields.as_object(at.holder.get("spec")) for link in _LINKS):
            obj = changed_at(obj, at.steps, _unlinked)
    return obj


def _unlinked(holder: Obj) -> Obj:
    spec = fields.as_object(holder["spec"])
    return {**holder, "spec": {key: value for key, value in spec.items() if key not in _LINKS}}


def left_alone(obj: Obj) -> Iterator[Note]:
    """What speaks of a membership in a place that is no pod template: it is named, and not converted."""
    for steps in links_elsewhere(obj, "workloadRef"):
        path = path_of(steps)
        yield Note(title(obj), f"{path} is not in a pod template that is known here: it was left as it is", path=path)
