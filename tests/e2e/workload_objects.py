"""Objects of the kinds that managers of workloads bring, as users write them."""

from typing import Any

Obj = dict[str, Any]

IMAGE = "registry.k8s.io/pause:3.10"
FOR_EVER = {"muster.dev/run-seconds": "100000"}


def template(cpu: str = "1", restart: str | None = None, **spec: Any) -> Obj:
    """A pod template of one container that runs until somebody stops it."""
    container = {"name": "main", "image": IMAGE, "resources": {"requests": {"cpu": cpu}}}
    policy = {"restartPolicy": restart} if restart else {}
    return {"metadata": {"annotations": FOR_EVER}, "spec": {"containers": [container], **policy, **spec}}


def replicated_job(name: str, replicas: int, pods: int, cpu: str = "1", **more: Any) -> Obj:
    job = {
        "parallelism": pods,
        "completions": pods,
        "backoffLimit": 0,
        "template": template(cpu, "Never", **more.pop("pod", {})),
    }
    return {"name": name, "replicas": replicas, "template": {"spec": job}, **more}


def jobset(name: str, *jobs: Obj, annotations: dict[str, str] | None = None, **spec: Any) -> Obj:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": {"replicatedJobs": list(jobs), **spec},
    }


def leader_worker_set(name: str, replicas: int, size: int, cpu: str = "1", **group: Any) -> Obj:
    spec = group.pop("spec", {})
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {"size": size, "workerTemplate": template(cpu), **group},
            **spec,
        },
    }


def kueue_queue(cpu: str, name: str = "queue", **flavor: Any) -> list[Obj]:
    """A queue of so much CPU, with all that Kueue wants for one."""
    api = "kueue.x-k8s.io/v1beta1"
    quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    return [
        {"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": flavor},
        {
            "apiVersion": api,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
            },
        },
        {
            "apiVersion": api,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"clusterQueue": name},
        },
    ]


def queued(obj: Obj, queue: str = "queue") -> Obj:
    """The same, for Kueue to admit."""
    labels = {**obj["metadata"].get("labels", {}), "kueue.x-k8s.io/queue-name": queue}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def job(name: str, pods: int, cpu: str = "1") -> Obj:
    spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template(cpu, "Never")}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def topology(name: str, *labels: str) -> Obj:
    """The levels of nodes that Kueue assigns."""
    levels = [{"nodeLabel": label} for label in labels]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Topology",
        "metadata": {"name": name},
        "spec": {"levels": levels},
    }


def ray_cluster(name: str, workers: int, cpu: str = "1") -> Obj:
    """A head and one group of workers."""
    pod = template(cpu)
    group = {"groupName": "small", "replicas": workers, "minReplicas": workers, "maxReplicas": workers}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "rayVersion": "2.40.0",
            "headGroupSpec": {"rayStartParams": {}, "template": pod},
            "workerGroupSpecs": [{**group, "rayStartParams": {}, "template": pod}],
        },
    }
