"""Workloads that hold their groups themselves: the first draft and Kubernetes 1.35.

Both become a Workload with templates and one PodGroup for each group; a replicated group becomes one PodGroup a
replica. Which replicas there are is known from the Workload, or from the pods that came with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from muster.api.groups import GROUP
from muster.api.migration.notes import Note, name, namespace, title
from muster.api.validation import fields
from muster.api.validation.fields import Obj

TARGET = f"{GROUP}/v1beta1"
MOST_REPLICAS = 1000

_LABEL_PATH = re.compile(r"metadata\.labels\['([^']+)'\]")
_DRAFT_FIELDS = frozenset(
    (
        "name",
        "gangMode",
        "minCount",
        "schedulingTimeoutSeconds",
        "podGroupSelector",
        "replicatedGangKey",
        "replicas",
        "policy",
        "gangSchedulingPolicy",
    )
)


@dataclass(slots=True)
class OldGroup:
    """One entry of `spec.podGroups`."""

    name: str
    gang: bool
    min_count: int | None
    replicated: bool = False
    replicas: int = 0
    replica_label: str = ""
    selector: dict[str, str] = field(default_factory=dict[str, str])
    members: int = 0
    seen_replicas: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class OldWorkload:
    """A Workload of an older kind, read; its groups by the names that pods know them by."""

    source: Obj
    groups: dict[str, OldGroup]
    controller: tuple[str, str]


def is_embedded(obj: Obj) -> bool:
    """Whether an object is a Workload of the kind that holds its groups."""
    group, _, version = fields.as_text(obj.get("apiVersion")).rpartition("/")
    return obj.get("kind") == "Workload" and version == "v1alpha1" and group in ("scheduling", GROUP)


def read(obj: Obj, notes: list[Note]) -> OldWorkload:
    """The groups of an old Workload, with notes about what cannot be carried over."""
    spec = fields.as_object(obj.get("spec"))
    reference = fields.as_object(spec.get("controllerRef"))
    found: dict[str, OldGroup] = {}
    for index, item in enumerate(fields.as_list(spec.get("podGroups"))):
        entry = fields.as_object(item)
        group = _read_group(entry, index, title(obj), notes)
        written = fields.as_text(entry.get("name"))
        if written in found:
            notes.append(Note(title(obj), f"a second group named {written!r} is left out", lost=True))
        else:
            found[written] = group
    return OldWorkload(obj, found, (fields.as_text(reference.get("kind")), fields.as_text(reference.get("name"))))


def _read_group(entry: Obj, index: int, about: str, notes: list[Note]) -> OldGroup:
    group_name = _label(fields.as_text(entry.get("name")) or f"group-{index}", about, notes)
    policy = entry.get("policy")
    if isinstance(policy, dict):
        gang = fields.as_object(policy).get("gang")
        return OldGroup(group_name, gang is not None, _count(fields.as_object(gang).get("minCount")))
    mode = fields.as_text(entry.get("gangMode")) or "Single"
    if mode not in ("Single", "Off", "Replicated"):
        notes.append(Note(about, f"gangMode {mode!r} of {group_name} is unknown; it is taken as Single"))
    options = fields.as_object(entry.get("gangSchedulingPolicy"))
    for holder in (entry, options):
        for timeout in ("schedulingTimeoutSeconds", "shedulingTimeoutSeconds"):
            if holder.get(timeout) is not None:
                words = (
                    f"{timeout}: {holder[timeout]} of {group_name} (a group now waits until it can start as a whole)"
                )
                notes.append(Note(about, words, lost=True))
    unknown = sorted(set(entry) - _DRAFT_FIELDS)
    notes += [Note(about, f"{gone} of {group_name}", lost=True) for gone in unknown]
    return OldGroup(
        group_name,
        mode != "Off",
        _count(entry.get("minCount")) or _count(options.get("minCount")),
        replicated=mode == "Replicated",
        replicas=min(_count(entry.get("replicas")) or 0, MOST_REPLICAS),
        replica_label=_label_key(entry.get("replicatedGangKey")),
        selector=_selector(entry.get("podGroupSelector")),
    )


def _label(text: str, about: str, notes: list[Note]) -> str:
    """Template names are DNS labels now; older ones could be longer names with dots and capitals."""
    fixed = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:63].rstrip("-") or "group"
    if fixed != text:
        notes.append(Note(about, f"group {text!r} is now called {fixed!r}, because template names are DNS labels"))
    return fixed


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _label_key(value: Any) -> str:
    text = fields.as_text(fields.as_object(value).get("fieldPath")) or fields.as_text(value)
    matched = _LABEL_PATH.fullmatch(text)
    return matched.group(1) if matched else ""


def _selector(value: Any) -> dict[str, str]:
    holder = fields.as_object(value)
    inner = fields.as_object(holder.get("selector")) or holder
    labels = fields.as_object(inner.get("matchLabels")) or inner
    return {key: wanted for key, wanted in labels.items() if isinstance(wanted, str)}


def group_name(workload: str, group: str, replica: str = "") -> str:
    """What the PodGroup of a group, or of one of its replicas, is called."""
    parts = [workload, group, replica]
    return re.sub(r"[^a-z0-9.-]+", "-", "-".join(part for part in parts if part).lower()).strip("-.")


def rewritten(old: OldWorkload, notes: list[Note]) -> Iterator[Obj]:
    """The Workload with templates, then its PodGroups."""
    about, source = title(old.source), old.source
    if isinstance(source.get("status"), dict) and source["status"]:
        notes.append(Note(about, "status", lost=True))
    spec: Obj = {}
    reference = _controller(fields.as_object(source.get("spec")).get("controllerRef"), about, notes)
    if reference:
        spec["controllerRef"] = reference
    policies = [_policy(group, about, notes) for group in old.groups.values()]
    templates = [
        {"name": group.name, "schedulingPolicy": policy}
        for group, policy in zip(old.groups.values(), policies, strict=True)
    ]
    spec["podGroupTemplates"] = templates
    yield {"apiVersion": TARGET, "kind": "Workload", "metadata": source.get("metadata", {}), "spec": spec}
    notes.append(Note(about, f"{source.get('apiVersion')} became {TARGET} with {len(templates)} podGroupTemplates"))
    for group, policy in zip(old.groups.values(), policies, strict=True):
        for replica in _replicas(group, about, notes):
            yield _pod_group(source, group, replica, policy)


def _controller(reference: Any, about: str, notes: list[Note]) -> Obj:
    old = fields.as_object(reference)
    if not old:
        return {}
    group = fields.as_text(old.get("apiGroup")) or fields.as_text(old.get("apiVersion")).rpartition("/")[0]
    extra = sorted(set(old) - {"apiGroup", "apiVersion", "kind", "name"})
    notes += [Note(about, f"controllerRef.{gone}", lost=True) for gone in extra]
    new: Obj = {"apiGroup": group} if group else {}
    return {**new, "kind": old.get("kind"), "name": old.get("name")}


def _policy(group: OldGroup, about: str, notes: list[Note]) -> Obj:
    if not group.gang:
        return {"basic": {}}
    count = group.min_count
    if count is None:
        count = max(1, group.members // max(1, len(group.seen_replicas)))
        notes.append(Note(about, f"{group.name} had no minCount; it is now {count}, the pods seen in the input"))
    return {"gang": {"minCount": count}}


def _replicas(group: OldGroup, about: str, notes: list[Note]) -> list[str]:
    if not group.replicated and not group.seen_replicas:
        return [""]
    declared = [str(index) for index in range(group.replicas)]
    found = declared + [replica for replica in group.seen_replicas if replica not in declared]
    if not found:
        notes.append(Note(about, f"how many replicas {group.name} has is not known; one PodGroup was made, copy it"))
        return ["0"]
    return found


def _pod_group(workload: Obj, group: OldGroup, replica: str, policy: Obj) -> Obj:
    metadata: Obj = {"name": group_name(name(workload), group.name, replica)}
    if namespace(workload):
        metadata["namespace"] = namespace(workload)
    reference = {"workloadName": name(workload), "templateName": group.name}
    spec = {"workloadRef": reference, "schedulingPolicy": policy}
    return {"apiVersion": TARGET, "kind": "PodGroup", "metadata": metadata, "spec": spec}
