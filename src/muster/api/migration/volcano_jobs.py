"""Jobs of Volcano: one Kubernetes Job for each task, and the group that holds their pods together.

Task `worker` of job `train` becomes the Indexed Job `train-worker`, whose pods have the host names that Volcano gives
them (`train-worker-0`). A job that starts with a number of pods, of whichever tasks, becomes one gang; one whose tasks
have minimums of their own becomes a tree with a gang for each task.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from muster.api.groups import GROUP
from muster.api.migration.notes import Note, name, title
from muster.api.migration.other_groups import NO_QUEUE, gang, lost_fields, member, topology_lost
from muster.api.validation import fields
from muster.api.validation.fields import Obj

_VERSION = f"{GROUP}/v1beta1"
_TREE_VERSION = f"{GROUP}/v1alpha3"
_DURATION = "scheduling.muster.dev/expected-duration"
_LABEL = "volcano.sh/job-name"
_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_LOST = {
    "queue": NO_QUEUE,
    "policies": "a Kubernetes Job has podFailurePolicy and backoffLimit instead",
    "minSuccess": "a Kubernetes Job has successPolicy instead",
}
_LOST_OF_TASK = {
    "policies": _LOST["policies"],
    "dependsOn": "its pods are made at once; JobSet's dependsOn starts them later",
    "topologyPolicy": "alignment inside a node is the kubelet's",
}
_KNOWN_PLUGINS = ("svc", "env")


class _Task(NamedTuple):
    """One task: its name, its pods, how many of them must start, and what it was read from."""

    name: str
    replicas: int
    minimum: int
    source: Obj
    path: str


def is_job(obj: Obj) -> bool:
    return obj.get("kind") == "Job" and fields.as_text(obj.get("apiVersion")).startswith("batch.volcano.sh/")


def converted(obj: Obj, notes: list[Note]) -> list[Obj]:
    """The objects that take a job's place."""
    spec = fields.as_object(obj.get("spec"))
    about = title(obj)
    notes += lost_fields(spec, "spec", _LOST, about)
    topology_lost(spec, about, notes)
    tasks = list(_tasks(spec))
    plugins = fields.as_object(spec.get("plugins"))
    for plugin in (plugin for plugin in plugins if plugin not in _KNOWN_PLUGINS):
        words = f"plugin {plugin}: Kubeflow Trainer and JobSet set up what frameworks need"
        notes.append(Note(about, words, lost=True, path=f"spec.plugins.{plugin}"))
    groups, group_of = _groups(obj, spec, tasks, notes)
    made = [*groups]
    if "svc" in plugins:
        made.append(_service(obj))
        words = "plugin svc: the pods have the same names in DNS; lists of hosts in files and variables are not made"
        notes.append(Note(about, words, lost=True, path="spec.plugins.svc"))
    made += [_job(obj, spec, task, group_of[task.name], notes) for task in tasks]
    words = ", ".join(f"job/{name(obj)}-{task.name}" for task in tasks) or "nothing: it has no tasks"
    notes.append(Note(about, f"became {words}"))
    return made


def _tasks(spec: Obj) -> Iterator[_Task]:
    for index, item in enumerate(fields.as_list(spec.get("tasks"))):
        task = fields.as_object(item)
        replicas = _count(task.get("replicas"), 1)
        minimum = _count(task.get("minAvailable"), replicas)
        called = fields.as_text(task.get("name")) or f"default{index}"
        yield _Task(called, replicas, min(minimum, replicas), task, f"spec.tasks[{index}]")


def _count(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


# Groups


def _groups(obj: Obj, spec: Obj, tasks: list[_Task], notes: list[Note]) -> tuple[list[Obj], dict[str, str]]:
    """The group objects, and the group of each task by its name."""
    pods = sum(task.replicas for task in tasks)
    needed = sum(task.minimum for task in tasks)
    minimum = _count(spec.get("minAvailable"), needed)
    # Volcano looks at the minimums of tasks only where that of the job is not below their sum.
    if len(tasks) < 2 or minimum >= pods or minimum < needed or needed == pods:
        one = _group("PodGroup", _VERSION, obj, name(obj), {**_priority(spec), "schedulingPolicy": gang(minimum)})
        return [one], {task.name: name(obj) for task in tasks}
    if minimum > needed:
        words = f"minAvailable {minimum} is more than its tasks' minimums together ({needed}): the tasks' count"
        notes.append(Note(title(obj), words, lost=True, path="spec.minAvailable"))
    return _tree(obj, spec, tasks)


def _tree(obj: Obj, spec: Obj, tasks: list[_Task]) -> tuple[list[Obj], dict[str, str]]:
    root = name(obj)
    names = {task.name: f"{root}-{task.name}" for task in tasks}
    whole = {**_priority(spec), "schedulingPolicy": {"gang": {"minGroupCount": len(tasks)}}}
    parts = {task.name: {**_priority(spec), "schedulingPolicy": gang(task.minimum)} for task in tasks}
    templates = [{"name": task, **part} for task, part in parts.items()]
    template = {"name": root, **whole, "podGroupTemplates": templates}
    made = [
        _group("Workload", _TREE_VERSION, obj, root, {"compositePodGroupTemplates": [template]}),
        _group("CompositePodGroup", _TREE_VERSION, obj, root, {"workloadRef": _reference(root, root), **whole}),
    ]
    for task, part in parts.items():
        child = {"parentCompositePodGroupName": root, "workloadRef": _reference(root, task), **part}
        made.append(_group("PodGroup", _TREE_VERSION, obj, names[task], child))
    return made, names


def _reference(workload: str, template: str) -> Obj:
    return {"workloadName": workload, "templateName": template}


def _priority(spec: Obj) -> Obj:
    named = fields.as_text(spec.get("priorityClassName"))
    return {"priorityClassName": named} if named else {}


def _group(kind: str, version: str, obj: Obj, called: str, spec: Obj) -> Obj:
    return {"apiVersion": version, "kind": kind, "metadata": _metadata(obj, called), "spec": spec}


def _metadata(obj: Obj, called: str) -> Obj:
    space = fields.as_text(fields.as_object(obj.get("metadata")).get("namespace"))
    return {"name": called, **({"namespace": space} if space else {})}


# Jobs


def _job(obj: Obj, spec: Obj, task: _Task, group: str, notes: list[Note]) -> Obj:
    notes += lost_fields(task.source, task.path, _LOST_OF_TASK, title(obj))
    job: Obj = {"completionMode": "Indexed", "completions": task.replicas, "parallelism": task.replicas}
    retries = task.source.get("maxRetry", spec.get("maxRetry"))
    job["backoffLimit"] = _count(retries, 3)  # Volcano's default
    if "ttlSecondsAfterFinished" in spec:
        job["ttlSecondsAfterFinished"] = spec["ttlSecondsAfterFinished"]
    job["template"] = _template(obj, spec, task, group, notes)
    source = fields.as_object(obj.get("metadata"))
    kept = {key: source[key] for key in ("labels", "annotations") if key in source}
    metadata = {**_metadata(obj, f"{name(obj)}-{task.name}"), **kept}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job}


def _template(obj: Obj, spec: Obj, task: _Task, group: str, notes: list[Note]) -> Obj:
    template = fields.as_object(task.source.get("template"))
    plugins = fields.as_object(spec.get("plugins"))
    pod = {**_priority(spec), **fields.as_object(template.get("spec"))}
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        pod["restartPolicy"] = "OnFailure"
    metadata = {**fields.as_object(template.get("metadata"))}
    metadata.pop("name", None)
    if "svc" in plugins:
        pod["subdomain"] = name(obj)
        metadata["labels"] = {**fields.as_object(metadata.get("labels")), _LABEL: name(obj)}
    if "env" in plugins:
        pod["containers"] = [_with_index(fields.as_object(each)) for each in fields.as_list(pod.get("containers"))]
    estimate = fields.as_text(spec.get("runningEstimate"))
    if estimate:
        metadata["annotations"] = {**fields.as_object(metadata.get("annotations")), _DURATION: estimate}
    _mount(obj, spec, pod, notes)
    return member({**({"metadata": metadata} if metadata else {}), "spec": pod}, group)


def _with_index(container: Obj) -> Obj:
    """A container with the two variables in which Volcano tells a pod its number."""
    source = {"fieldRef": {"fieldPath": _INDEX}}
    own = [{"name": variable, "valueFrom": source} for variable in ("VC_TASK_INDEX", "VK_TASK_INDEX")]
    return {**container, "env": [*own, *fields.as_list(container.get("env"))]}


def _mount(obj: Obj, spec: Obj, pod: Obj, notes: list[Note]) -> None:
    """Mount the job's volumes, in place: those whose claims exist."""
    for index, item in enumerate(fields.as_list(spec.get("volumes"))):
        volume = fields.as_object(item)
        claim, path = fields.as_text(volume.get("volumeClaimName")), fields.as_text(volume.get("mountPath"))
        if not claim or not path:
            words = f"volume {index}: make its PersistentVolumeClaim yourself and name it in volumeClaimName"
            note = Note(title(obj), words, lost=True, path=f"spec.volumes[{index}]")
            notes += [] if note in notes else [note]
            continue
        source = {"name": f"volume-{index}", "persistentVolumeClaim": {"claimName": claim}}
        mount = {"name": f"volume-{index}", "mountPath": path}
        pod["volumes"] = [*fields.as_list(pod.get("volumes")), source]
        containers = [fields.as_object(each) for each in fields.as_list(pod.get("containers"))]
        pod["containers"] = [
            {**each, "volumeMounts": [*fields.as_list(each.get("volumeMounts")), mount]} for each in containers
        ]


def _service(obj: Obj) -> Obj:
    """The headless Service in which the pods have their names."""
    spec = {"clusterIP": "None", "selector": {_LABEL: name(obj)}, "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(obj, name(obj)), "spec": spec}
