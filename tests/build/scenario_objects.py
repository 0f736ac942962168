"""The short forms of scenario files as manifests: nodes, pods, groups, whole trees, priority classes.

`count: N` repeats an item with `{i}` = 0, 1, …; a tree makes its Workload and its groups from the root down.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

Obj = dict[str, Any]

API = "scheduling.k8s.io"
CRD_API = "scheduling.muster.dev"
GROUP_KINDS = ("Workload", "PodGroup", "CompositePodGroup")
LABEL = "scheduling.muster.dev/pod-group"
_INDEX = re.compile(r"\{i([%/+*]?)(\d*)\}")
_INHERITED = ("priorityClass", "preemptionPolicy")


def copies(item: Obj) -> list[Obj]:
    """An item with `count` as so many items."""
    if "count" not in item:
        return [item]
    plain = {key: value for key, value in item.items() if key not in ("count", "from")}
    first = item.get("from", 0)
    return [_indexed(plain, number) for number in range(first, first + item["count"])]


def _indexed(value: Any, i: int) -> Any:
    if isinstance(value, str):
        return _INDEX.sub(lambda found: str(_computed(i, found[1], int(found[2] or 1))), value)
    if isinstance(value, dict):
        return {_indexed(key, i): _indexed(each, i) for key, each in value.items()}
    return [_indexed(each, i) for each in value] if isinstance(value, list) else value


def _computed(i: int, operator: str, number: int) -> int:
    return {"": i, "%": i % number, "/": i // number, "+": i + number, "*": i * number}[operator]


def merged(base: Obj, more: Obj | None) -> Obj:
    """A copy with the fields of another object set, nested ones too."""
    result = dict(base)
    for key, value in (more or {}).items():
        held = result.get(key)
        result[key] = merged(held, value) if isinstance(value, dict) and isinstance(held, dict) else value
    return result


class ShortForms:
    """Manifests of one scenario: in its namespace, with its priority classes, for native groups or custom resources."""

    def __init__(self, namespace: str, *, crds: bool, scheduler: str | None = None) -> None:
        self.namespace = namespace
        self.crds = crds
        self.scheduler = scheduler

    def build(self, entry: Obj) -> list[Obj]:
        """The manifests of one entry of `create`."""
        ((kind, item),) = entry.items()
        made = [obj for one in copies(item) for obj in self._made(kind, one)]
        return [self._translated(obj) for obj in made]

    def _made(self, kind: str, item: Obj) -> Iterator[Obj]:
        match kind:
            case "pods" | "pod":
                yield self.pod(item)
            case "group":
                yield self.group(item)
            case "composite":
                yield self.composite(item)
            case "tree":
                yield from self.tree(item)
            case "node" | "nodes":
                yield self.node(item)
            case "priorityClass":
                yield self.priority_class(item)
            case "devices":
                yield from devices(item)
            case "claim":
                yield claim(item)
            case "claimTemplate":
                made = claim(item)
                yield {**made, "kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}}
            case "job":
                yield self.job(item)
            case "manifest":
                yield self._manifest(item)
            case _:
                raise ValueError(f"a scenario cannot create {kind!r}")

    def class_name(self, short: str) -> str:
        """Classes are cluster-wide: each scenario has its own."""
        return f"{short}-{self.namespace}"

    # --- single objects ----------------------------------------------------------------------------

    def _meta(self, item: Obj) -> Obj:
        meta: Obj = {"name": item["name"], "namespace": self.namespace, "labels": item.get("labels") or {}}
        return meta | ({"annotations": item["annotations"]} if item.get("annotations") else {})

    def node(self, item: Obj) -> Obj:
        room = {"pods": "110"} | {name: str(amount) for name, amount in item["allocatable"].items()}
        labels = {"kubernetes.io/hostname": item["name"]} | (item.get("labels") or {})
        spec = {"taints": item["taints"]} if item.get("taints") else {}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "a scenario's node"}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        meta = {"name": item["name"], "labels": labels}
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}

    def priority_class(self, item: Obj) -> Obj:
        more = {"preemptionPolicy": item["preemptionPolicy"]} if "preemptionPolicy" in item else {}
        meta = {"name": self.class_name(item["name"])}
        return {"apiVersion": f"{API}/v1", "kind": "PriorityClass", "metadata": meta, "value": item["value"], **more}

    def pod(self, item: Obj) -> Obj:
        requests = {"cpu": str(item["cpu"])} if "cpu" in item else {}
        container = {"name": "main", "image": "pause", "resources": {"requests": requests}}
        spec: Obj = {"containers": [container], "terminationGracePeriodSeconds": item.get("grace", 1)}
        for short, field in (("node", "nodeName"), ("nodeSelector", "nodeSelector"), ("affinity", "affinity")):
            if item.get(short):
                spec[field] = item[short]
        if item.get("group"):
            spec["schedulingGroup"] = {"podGroupName": item["group"]}
        if item.get("priorityClass"):
            spec["priorityClassName"] = self.class_name(item["priorityClass"])
        if item.get("gates"):
            spec["schedulingGates"] = [{"name": gate} for gate in item["gates"]]
        if scheduler := item.get("scheduler") or self.scheduler:
            spec["schedulerName"] = scheduler
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": self._meta(item)}
        return body | {"spec": merged(spec, item.get("spec"))}

    def job(self, item: Obj) -> Obj:
        """A Job of `pods` pods at once; `indexed`: it runs each index once, all of them together."""
        pod = self.pod({**item, "spec": {"restartPolicy": "Never"}})
        pod = self._translated(pod)
        labels = pod["metadata"]["labels"]
        spec: Obj = {"parallelism": item["pods"], "template": {"metadata": {"labels": labels}, "spec": pod["spec"]}}
        if item.get("indexed"):
            spec |= {"completionMode": "Indexed", "completions": item["pods"]}
        meta = self._meta(item) | {"annotations": item.get("annotations") or {}}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": merged(spec, item.get("spec"))}

    def group(self, item: Obj) -> Obj:
        body = {"apiVersion": f"{API}/v1beta1", "kind": "PodGroup", "metadata": self._meta(item)}
        return body | {"spec": merged(self._group_spec(item), item.get("spec"))}

    def composite(self, item: Obj) -> Obj:
        body = {"apiVersion": f"{API}/v1alpha3", "kind": "CompositePodGroup", "metadata": self._meta(item)}
        spec = {"workloadRef": {"workloadName": "wl", "templateName": item["name"]}} | self._group_spec(item)
        return body | {"spec": merged(spec, item.get("spec"))}

    def _group_spec(self, item: Obj) -> Obj:
        minimum = {"min": "minCount", "minGroups": "minGroupCount"}
        gang = {field: item[short] for short, field in minimum.items() if short in item}
        spec: Obj = {"schedulingPolicy": {"gang": gang} if gang else {"basic": {}}}
        if item.get("parent"):
            spec["parentCompositePodGroupName"] = item["parent"]
            spec["workloadRef"] = {"workloadName": "wl", "templateName": item["name"]}
        if item.get("topology"):
            spec["schedulingConstraints"] = {"topology": [{"key": item["topology"]}]}
        if item.get("mode"):
            spec["disruptionMode"] = {item["mode"]: {}}
        if item.get("priorityClass"):
            spec["priorityClassName"] = self.class_name(item["priorityClass"])
        if item.get("preemptionPolicy"):
            spec["preemptionPolicy"] = item["preemptionPolicy"]
        return spec

    # --- trees -------------------------------------------------------------------------------------

    def tree(self, item: Obj) -> Iterator[Obj]:
        """The Workload with its templates, then the groups from the root down; `later: true` leaves a group out."""
        root = _named(copy.deepcopy(item), {})
        meta = {"name": "wl", "namespace": self.namespace}
        templates = {"compositePodGroupTemplates": [self._template(root)]}
        yield {"apiVersion": f"{API}/v1beta1", "kind": "Workload", "metadata": meta, "spec": templates}
        for node in _walk(root):
            if not node.get("later"):
                yield self.composite(node) if "composite" in node else self.group(node)

    def _template(self, node: Obj) -> Obj:
        spec = self._group_spec(node)
        made = {key: value for key, value in spec.items() if not key.startswith(("parent", "workload"))}
        made["name"] = node["name"]
        for child in node.get("children", ()):
            kind = "compositePodGroupTemplates" if "composite" in child else "podGroupTemplates"
            made.setdefault(kind, []).append(self._template(child))
        return made

    # --- as custom resources -----------------------------------------------------------------------

    def _manifest(self, item: Obj) -> Obj:
        return merged(item, {"metadata": {"namespace": self.namespace}})

    def _translated(self, obj: Obj) -> Obj:
        if not self.crds:
            return obj
        if obj["kind"] in GROUP_KINDS:
            return {**obj, "apiVersion": f"{CRD_API}/v1alpha3"}
        if obj["kind"] == "Pod" and "schedulingGroup" in obj["spec"]:
            spec = dict(obj["spec"])
            name = spec.pop("schedulingGroup")["podGroupName"]
            return {**obj, "metadata": merged(obj["metadata"], {"labels": {LABEL: name}}), "spec": spec}
        return obj


def _named(node: Obj, above: Obj) -> Obj:
    node["name"] = node.get("composite") or node["group"]
    if above:
        node["parent"] = above["name"]
    for field in _INHERITED:
        if field in above:
            node.setdefault(field, above[field])
    node["children"] = [_named(child, node) for each in node.get("children", ()) for child in copies(each)]
    return node


def _walk(node: Obj) -> Iterator[Obj]:
    yield node
    for child in node["children"]:
        yield from _walk(child)


# --- devices ---------------------------------------------------------------------------------------


def devices(item: Obj) -> Iterator[Obj]:
    """A class, and so many devices for each of these nodes, or for all nodes of each of these racks."""
    name, api = item["class"], "resource.k8s.io/v1"
    selectors = [{"cel": {"expression": f"device.driver == '{name}'"}}]
    if item.get("newClass", True):
        yield {"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": selectors}}
    for place in (*item.get("nodes", ()), *item.get("racks", ())):
        where: Obj = {"nodeName": place}
        if place in item.get("racks", ()):
            term = {"key": "example.com/rack", "operator": "In", "values": [place]}
            where = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
        pool = {"name": place, "generation": 1, "resourceSliceCount": 1}
        listed = [{"name": f"d{number}"} for number in range(item.get("each", 1))]
        spec = {"driver": name, "pool": pool, **where, "devices": listed}
        meta = {"name": f"{place}-{name}"}
        yield {"apiVersion": api, "kind": "ResourceSlice", "metadata": meta, "spec": spec}


def claim(item: Obj) -> Obj:
    """A claim of so many devices of a class."""
    exactly = {"deviceClassName": item["class"], "count": item.get("count", 1)}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    meta = {"name": item["name"]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec}
