"""Workloads of all kinds as JSON, for the tests of trees and of their controller."""

from __future__ import annotations

from typing import Any

from muster.api.membership import JOB_SETS, LEADER_WORKER_SETS, LWS, RAY_CLUSTERS, Facts
from muster.api.resources import Resource

JSON = dict[str, Any]
UID = "0123456789ab"


def a_template(priority: str = "", cpu: str = "1", **annotations: str) -> JSON:
    spec: JSON = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "resources": {}}]}
    spec["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    if priority:
        spec["priorityClassName"] = priority
    made: JSON = {"spec": spec}
    if annotations:
        made["metadata"] = {"annotations": {f"scheduling.muster.dev/{key}": text for key, text in annotations.items()}}
    return made


def an_owner(
    resource: Resource,
    name: str,
    spec: JSON,
    *,
    annotations: JSON | None = None,
    labels: JSON | None = None,
    **more: Any,
) -> JSON:
    meta: JSON = {"name": name, "namespace": "default", "uid": UID}
    if annotations:
        meta["annotations"] = annotations
    if labels:
        meta["labels"] = labels
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec, **more}


def ours(**annotations: str) -> JSON:
    """Annotations with our prefix; a double underscore stands for a dot."""
    return {
        f"scheduling.muster.dev/{key.replace('__', '.').replace('_', '-')}": text for key, text in annotations.items()
    }


def a_replicated_job(name: str, replicas: int = 1, pods: int = 1, template: JSON | None = None, **more: Any) -> JSON:
    spec = {"parallelism": pods, "completions": pods, "template": template or a_template()}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}, **more}


def a_jobset(*jobs: JSON, annotations: JSON | None = None, status: JSON | None = None, **spec: Any) -> JSON:
    body = {"replicatedJobs": list(jobs), **spec}
    return an_owner(JOB_SETS, "train", body, annotations=annotations, status=status or {})


def an_lws(
    size: int = 3, replicas: int = 2, *, annotations: JSON | None = None, subgroup: JSON | None = None, **spec: Any
) -> JSON:
    template: JSON = {"size": size, "workerTemplate": a_template()}
    if subgroup:
        template["subGroupPolicy"] = subgroup
    template.update(spec.pop("template", {}))
    body = {"replicas": replicas, "leaderWorkerTemplate": template, **spec}
    return an_owner(LEADER_WORKER_SETS, "serve", body, annotations=annotations)


def lws_pods(*replicas: tuple[int, str], size: int = 0) -> dict[str, Facts]:
    """What pods of these replicas (index, revision) show."""
    annotations = {f"{LWS}size": str(size)} if size else {}
    return {
        f"serve-{index}-{revision}": Facts(
            {f"{LWS}name": "serve", f"{LWS}group-index": str(index), f"{LWS}template-revision-hash": revision},
            annotations,
        )
        for index, revision in replicas
    }


def a_ray_cluster(*groups: JSON, labels: JSON | None = None, annotations: JSON | None = None, **spec: Any) -> JSON:
    body = {"headGroupSpec": {"template": a_template()}, "workerGroupSpecs": list(groups), **spec}
    return an_owner(RAY_CLUSTERS, "ray", body, labels=labels, annotations=annotations)
