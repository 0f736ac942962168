"""Groups and workloads as JSON with a name that does not matter, for tests that look at one field of them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

Obj = dict[str, Any]


def a_pod_group(**spec: Any) -> Obj:
    return _object("PodGroup", {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec})


def a_composite(**spec: Any) -> Obj:
    base = {"schedulingPolicy": {"basic": {}}, "workloadRef": {"workloadName": "w", "templateName": "t"}}
    return _object("CompositePodGroup", {**base, **spec})


def a_template(name: str = "workers", **fields: Any) -> Obj:
    return {"name": name, "schedulingPolicy": {"gang": {"minCount": 2}}, **fields}


def a_composite_template(name: str, *children: Obj, **fields: Any) -> Obj:
    leaves = [
        child for child in children if "podGroupTemplates" not in child and "compositePodGroupTemplates" not in child
    ]
    composites = [child for child in children if child not in leaves]
    body: Obj = {"name": name, "schedulingPolicy": {"gang": {"minGroupCount": 1}}, **fields}
    if leaves:
        body["podGroupTemplates"] = leaves
    if composites:
        body["compositePodGroupTemplates"] = composites
    return body


def a_workload(*templates: Obj, composites: list[Obj] | None = None, **spec: Any) -> Obj:
    body: Obj = {**spec}
    if composites is not None:
        body["compositePodGroupTemplates"] = composites
    if templates or composites is None:
        body["podGroupTemplates"] = list(templates) or [a_template()]
    return _object("Workload", body)


def in_version(obj: Obj, version: str) -> Obj:
    """The object as a version of the scheduling API other than the builders'."""
    return {**obj, "apiVersion": f"scheduling.k8s.io/{version}"}


def changed(obj: Obj, path: str, value: Any) -> Obj:
    """A copy with one field set; a value of None removes it. Steps are dotted, list items are numbers."""
    copy = deepcopy(obj)
    holder: Any = copy
    steps: list[Any] = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps[:-1]:
        holder = holder[step]
    if value is None:
        del holder[steps[-1]]
    else:
        holder[steps[-1]] = value
    return copy


def _object(kind: str, spec: Obj) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": kind,
        "metadata": {"name": "x", "namespace": "ns"},
        "spec": spec,
    }
