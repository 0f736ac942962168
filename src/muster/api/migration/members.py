"""Which group a pod of an older manifest belongs to, and how it says so today.

The first draft had `spec.workload` (the group told by a label selector or by name), 1.35 had `spec.workloadRef`; both
become `spec.schedulingGroup.podGroupName`. Pod templates are treated like pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from muster.api.manifests import PodSpecAt, pod_specs
from muster.api.migration.embedded import OldGroup, OldWorkload, group_name
from muster.api.migration.notes import Note, name, namespace, title
from muster.api.validation import fields
from muster.api.validation.fields import Obj

_LINKS = ("workload", "workloadRef")

Workloads = dict[tuple[str, str], OldWorkload]


class Membership(NamedTuple):
    """A pod spec found to belong to a group."""

    at: PodSpecAt
    group: str
    link: str


def find(obj: Obj, workloads: Workloads, notes: list[Note]) -> Membership | None:
    """The membership that an object declares, counted in its Workload; None where it declares none."""
    for at in pod_specs(obj):
        spec = fields.as_object(at.holder["spec"])
        link = next((each for each in _LINKS if spec.get(each) is not None), "")
        reference = fields.as_object(spec.get(link)) if link else {}
        old = _workload(obj, reference, workloads)
        wanted = fields.as_text(reference.get("name")) or (name(old.source) if old else "")
        if not wanted:
            continue
        labels = fields.as_object(fields.as_object(at.holder.get("metadata")).get("labels"))
        group = _group(old, reference, labels)
        if group is None:
            notes.append(_undecided(obj, reference, old, wanted))
            if old is not None or not fields.as_text(reference.get("podGroup")):
                continue
        replica = _replica(group, reference, labels)
        if group is not None:
            group.members += _pods_of(obj)
            if replica not in group.seen_replicas:
                group.seen_replicas.append(replica)
        chosen = group.name if group is not None else fields.as_text(reference.get("podGroup"))
        return Membership(at, group_name(wanted, chosen, replica), link)
    return None


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


def _pods_of(obj: Obj) -> int:
    spec = fields.as_object(obj.get("spec"))
    for field in ("parallelism", "replicas"):
        count = spec.get(field)
        if isinstance(count, int) and count > 0:
            return count
    return 1


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

    where = f"{membership.at.spec_path}.{membership.link}" if membership.link else "its Workload's controllerRef"
    notes.append(Note(title(obj), f"{where} became schedulingGroup.podGroupName: {membership.group}"))
    return along(obj, membership.at.path.split(".") if membership.at.path else [], change)


def along(obj: Obj, path: list[str], change: Callable[[Obj], Obj]) -> Obj:
    """A copy of an object in which the part at a path is changed; everything else is shared."""
    if not path:
        return change(obj)
    return {**obj, path[0]: along(fields.as_object(obj.get(path[0])), path[1:], change)}


def without_links(obj: Obj) -> Obj:
    """The object without a link that leads nowhere."""
    for at in pod_specs(obj):
        if any(link in fields.as_object(at.holder["spec"]) for link in _LINKS):
            return along(obj, at.path.split(".") if at.path else [], lambda holder: _unlinked(holder, _LINKS))
    return obj


def _unlinked(holder: Obj, links: Iterable[str]) -> Obj:
    spec = fields.as_object(holder["spec"])
    return {**holder, "spec": {key: value for key, value in spec.items() if key not in tuple(links)}}
