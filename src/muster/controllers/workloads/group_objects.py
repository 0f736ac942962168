"""The objects of a tree, as JSON: Workload, CompositePodGroups, PodGroups, in the order in which they are created.

A Workload describes shapes: equal siblings share one template. Where there are more shapes than a list of templates may
have, the last template of equal kind stands for the rest; the groups themselves are never merged. Every object is
controlled by the workload it was made for and carries labels that lead back to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muster.api import kueue
from muster.api.expected_members import EXPECTED_MEMBERS, encode, expected_of
from muster.api.groups import MAX_TEMPLATES
from muster.api.membership import OWNER_KIND, OWNER_NAME, OWNER_UID, PREFIX
from muster.api.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, WORKLOADS, Resource
from muster.api.validation import formats
from muster.controllers.workloads.tree import JSON, Branch, Expected, Leaf, Node, Remark, Tree, is_all_gangs

MADE_FOR_PODS = f"{PREFIX}made-for"  # on groups that no workload explains
PODS_VALUE = "pods"

# Whoever is looked for by name is the object that a person submitted.
TOP_KINDS = ("TrainJob", "RayJob", "RayService", "Deployment")


class GroupSet:
    """The objects of one tree."""

    def __init__(self, owner: JSON, resource: Resource, tree: Tree) -> None:
        self._owner, self._resource, self._tree = owner, resource, tree
        self.workloads: list[JSON] = []
        self.composites: list[JSON] = []  # parents first
        self.groups: list[JSON] = []
        self.remarks: list[Remark] = []
        for root in tree.roots:
            self._add_root(root)

    def _add_root(self, root: Node) -> None:
        whole = self._tree.whole and is_all_gangs(root)
        if isinstance(root, Leaf):
            self.groups.append(self._object(POD_GROUPS, root, None, None, whole))
            return
        templates = _Templates(root, self._fields(whole))
        self.workloads.append(self._workload(root, templates.spec))
        self._add(root, None, templates, root.name, whole)

    def _add(self, node: Node, parent: Branch | None, templates: _Templates, workload: str, whole: bool) -> None:
        reference = {"workloadName": workload, "templateName": templates.names[node.name]}
        kind = POD_GROUPS if isinstance(node, Leaf) else COMPOSITE_POD_GROUPS
        made = self._object(kind, node, parent, reference, whole)
        if isinstance(node, Leaf):
            self.groups.append(made)
            return
        self.composites.append(made)
        for child in node.children:
            self._add(child, node, templates, workload, whole)

    def _fields(self, whole: bool) -> JSON:
        """What every group of the tree has in common."""
        made: JSON = {}
        if whole:
            made["disruptionMode"] = {"all": {}}
        if self._tree.priority_class:
            made["priorityClassName"] = self._tree.priority_class
        return made

    def _object(self, kind: Resource, node: Node, parent: Branch | None, reference: JSON | None, whole: bool) -> JSON:
        spec: JSON = {**_form(node), **self._fields(whole)}
        if reference is not None:
            spec["workloadRef"] = reference
        if parent is not None:
            spec["parentCompositePodGroupName"] = parent.name
        meta = self._metadata(node.name, node.role)
        notes: dict[str, str] = {}
        if kueue.may_preempt(self._owner["metadata"].get("annotations")):
            notes[kueue.PREEMPTION] = kueue.ALLOWED
        if isinstance(node, Leaf) and node.expected and (text := self._expected(node.expected)):
            notes[EXPECTED_MEMBERS] = text
        if notes:
            meta["annotations"] = notes
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}

    def _expected(self, listed: Iterable[Expected]) -> str:
        found: list[Any] = []
        for each in listed:
            entry, errors = expected_of(each.template, each.count, each.after)
            if entry is None:
                text = f"no room is held for members to come: {'; '.join(map(str, errors))}"
                self.remarks.append(Remark("ExpectedMembersUnreadable", text))
                return ""
            found.append(entry)
        return encode(found)

    def _metadata(self, name: str, role: Any) -> JSON:
        meta = self._owner["metadata"]
        labels = {**_labels_of_owner(self._owner), **{f"{PREFIX}{key}": value for key, value in role.items()}}
        return {
            "name": name,
            "namespace": meta["namespace"],
            "labels": {key: value for key, value in labels.items() if not formats.label_value(value)},
            "ownerReferences": [
                {
                    "apiVersion": self._resource.api_version,
                    "kind": self._resource.kind,
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                }
            ],
        }

    def _workload(self, root: Branch, templates: JSON) -> JSON:
        reference = {
            "apiGroup": self._resource.group,
            "kind": self._resource.kind,
            "name": self._owner["metadata"]["name"],
        }
        return {
            "apiVersion": WORKLOADS.api_version,
            "kind": WORKLOADS.kind,
            "metadata": self._metadata(root.name, {}),
            "spec": {"controllerRef": reference, **templates},
        }


def _labels_of_owner(owner: JSON) -> dict[str, str]:
    meta = owner["metadata"]
    kind, name = str(owner["kind"]), str(meta["name"])
    for above in meta.get("ownerReferences") or ():
        if above.get("controller") and above.get("kind") in TOP_KINDS:
            kind, name = str(above["kind"]), str(above["name"])
    return {OWNER_KIND: kind, OWNER_NAME: name, OWNER_UID: str(meta["uid"])}


def _form(node: Node) -> JSON:
    """The part of a group's spec that its node decides."""
    word = "minCount" if isinstance(node, Leaf) else "minGroupCount"
    policy: JSON = {"basic": {}} if node.minimum is None else {"gang": {word: node.minimum}}
    made: JSON = {"schedulingPolicy": policy}
    if node.topology:
        made["schedulingConstraints"] = {"topology": [{"key": node.topology}]}
    return made


# --- templates -------------------------------------------------------------------------------------

Form = tuple[Any, ...]


def _shape(node: Node) -> Form:
    """What makes two groups equal."""
    below = tuple(sorted({_shape(child) for child in node.children}, key=repr)) if isinstance(node, Branch) else ()
    return (isinstance(node, Leaf), node.minimum, node.topology, below)


class _Templates:
    """The templates of one Workload, and which of them each group was made from."""

    def __init__(self, root: Branch, shared: JSON) -> None:
        self._shared = shared
        self._taken: set[str] = set()
        self.names: dict[str, str] = {}  # of templates, by the name of the group
        self.spec = self._lists([root])

    def _lists(self, nodes: list[Node]) -> JSON:
        """The templates of siblings."""
        made: JSON = {}
        for listed, kind in (("podGroupTemplates", Leaf), ("compositePodGroupTemplates", Branch)):
            alike: dict[Form, list[Node]] = {}
            for node in nodes:
                if isinstance(node, kind):
                    alike.setdefault(_shape(node), []).append(node)
            bundles = list(alike.values())
            if len(bundles) > MAX_TEMPLATES:
                rest = [node for bundle in bundles[MAX_TEMPLATES - 1 :] for node in bundle]
                bundles = [*bundles[: MAX_TEMPLATES - 1], rest]
            if bundles:
                made[listed] = [self._template(bundle) for bundle in bundles]
        return made

    def _template(self, alike: list[Node]) -> JSON:
        first = alike[0]
        name = self._name(first)
        for node in alike:
            self.names[node.name] = name
        template: JSON = {"name": name, **_form(first), **self._shared}
        if isinstance(first, Branch):
            template.update(
                self._lists([child for node in alike if isinstance(node, Branch) for child in node.children])
            )
        return template

    def _name(self, node: Node) -> str:
        base = node.shape if node.shape and not formats.dns_label(node.shape) else "group"
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base[:58]}-{count}"
        self._taken.add(name)
        return name
