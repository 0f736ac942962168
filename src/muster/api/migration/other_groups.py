"""Groups written for other gang schedulers: PodGroups of Volcano and of the coscheduling plugin, and who names them.

Both say `minMember`; the pods of Volcano name their group in an annotation, those of coscheduling in a label. Queues
have no equivalent: an order with quotas is what Kueue is for.
"""

from __future__ import annotations

from functools import partial

from muster.api.groups import GROUP
from muster.api.migration.notes import Note, title
from muster.api.migration.templates import TemplateAt, changed_at, pod_templates
from muster.api.validation import fields
from muster.api.validation.fields import Obj

TARGET = f"{GROUP}/v1beta1"
SCHEDULER = "muster"
VOLCANO = "scheduling.volcano.sh"
COSCHEDULING = ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")
VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
COSCHEDULING_LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
_LINKS = (("annotations", VOLCANO_ANNOTATION), *(("labels", label) for label in COSCHEDULING_LABELS))
_KEPT = ("name", "namespace", "labels", "annotations")

NO_QUEUE = "there are no queues here: let Kueue decide when, and Muster where"
_LOST = {
    "queue": NO_QUEUE,
    "minResources": "what the members need is known from the members themselves",
    "minTaskMember": "give every task a PodGroup of its own below a CompositePodGroup",
    "scheduleTimeoutSeconds": "a group that waits holds nothing, so there is nothing to give up",
}


def gang(minimum: int) -> Obj:
    """The policy of a group that starts with so many members; with none, members are independent."""
    return {"gang": {"minCount": minimum}} if minimum > 0 else {"basic": {}}


def lost_fields(holder: Obj, path: str, lost: dict[str, str], about: str) -> list[Note]:
    """A note for each of the fields that have no equivalent here and are set."""
    set_here = [name for name in lost if holder.get(name)]
    return [Note(about, f"{name}: {lost[name]}", lost=True, path=f"{path}.{name}") for name in set_here]


def topology_lost(spec: Obj, about: str, notes: list[Note]) -> None:
    """Say that tiers of a network topology are not carried over."""
    if spec.get("networkTopology") is not None:
        words = "networkTopology: name the nodes' label of that tier in spec.schedulingConstraints.topology"
        notes.append(Note(about, words, lost=True, path="spec.networkTopology"))


def is_queue(obj: Obj) -> bool:
    return obj.get("kind") == "Queue" and _group(obj) == VOLCANO


def is_group(obj: Obj) -> bool:
    return obj.get("kind") == "PodGroup" and _group(obj) in (VOLCANO, *COSCHEDULING)


def without_queue(obj: Obj, notes: list[Note]) -> None:
    notes.append(Note(title(obj), NO_QUEUE, lost=True))


def converted(obj: Obj, notes: list[Note]) -> Obj:
    """The group in our words."""
    spec = fields.as_object(obj.get("spec"))
    about = title(obj)
    notes += lost_fields(spec, "spec", _LOST, about)
    topology_lost(spec, about, notes)
    minimum = spec.get("minMember")
    count = minimum if isinstance(minimum, int) and not isinstance(minimum, bool) else 1
    notes.append(Note(about, f"{obj.get('apiVersion')} became {TARGET}, minMember the gang's minCount: {count}"))
    new: Obj = {"schedulingPolicy": gang(count)}
    if fields.as_text(spec.get("priorityClassName")):
        new = {"priorityClassName": spec["priorityClassName"], **new}
    metadata = {key: value for key, value in fields.as_object(obj.get("metadata")).items() if key in _KEPT}
    return {"apiVersion": TARGET, "kind": "PodGroup", "metadata": metadata, "spec": new}


def with_group_named(obj: Obj, notes: list[Note]) -> Obj:
    """An object whose pods name their groups by our field, where they named them for another scheduler.

    The label or annotation stays, because selectors may ask for it.
    """
    for at in pod_templates(obj):
        key, group = _named(at)
        if group:
            notes.append(Note(title(obj), f"{key} became schedulingGroup.podGroupName: {group}"))
            obj = changed_at(obj, at.steps, partial(member, group=group))
    return obj


def _named(at: TemplateAt) -> tuple[str, str]:
    """By which key a pod template names which group; empty where it names none, or names it by our field."""
    metadata = fields.as_object(at.holder.get("metadata"))
    if fields.as_object(at.holder.get("spec")).get("schedulingGroup") is None:
        for part, key in _LINKS:
            group = fields.as_text(fields.as_object(metadata.get(part)).get(key))
            if group:
                return key, group
    return "", ""


def member(holder: Obj, group: str) -> Obj:
    """A pod or pod template as a member of a group, scheduled by Muster."""
    spec = {**fields.as_object(holder.get("spec")), "schedulerName": SCHEDULER}
    return {**holder, "spec": {**spec, "schedulingGroup": {"podGroupName": group}}}


def _group(obj: Obj) -> str:
    return fields.as_text(obj.get("apiVersion")).rpartition("/")[0]
