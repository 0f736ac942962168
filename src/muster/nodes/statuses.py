"""The status patches a kubelet writes, as strategic merges: conditions merge by type, containers by name."""

from __future__ import annotations

from typing import Any

from muster.api.types import Container
from muster.client.clock import timestamp
from muster.nodes.views import KubeletPod

JSON = dict[str, Any]


def running(pod: KubeletPod, now: float, host: str, address: str, restarts: int) -> JSON:
    when = timestamp(now)
    started = {"running": {"startedAt": when}, "terminated": None, "waiting": None}
    return _patch(
        pod,
        {
            "phase": "Running",
            "startTime": pod.status.start_time or when,
            "hostIP": host,
            "hostIPs": [{"ip": host}],
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": _conditions("True", when),
            "containerStatuses": [
                _container(pod, each, restarts, started, ready=True) for each in pod.spec.containers or ()
            ],
        },
    )


def ended(pod: KubeletPod, started_at: float, now: float, exit_code: int, restarts: int) -> JSON:
    when = timestamp(now)
    reason = "Error" if exit_code else "Completed"
    state = {
        "running": None,
        "terminated": {
            "exitCode": exit_code,
            "reason": reason,
            "startedAt": timestamp(started_at),
            "finishedAt": when,
        },
    }
    why = "PodFailed" if exit_code else "PodCompleted"
    return _patch(
        pod,
        {
            "phase": "Failed" if exit_code else "Succeeded",
            "conditions": _conditions("False", when, why),
            "containerStatuses": [
                _container(pod, each, restarts, state, ready=False) for each in pod.spec.containers or ()
            ],
        },
    )


def deadline_exceeded(pod: KubeletPod, started_at: float, now: float, restarts: int) -> JSON:
    """The status of a pod that its kubelet stopped when `activeDeadlineSeconds` were over."""
    patch = ended(pod, started_at, now, 137, restarts)
    message = "Pod was active on the node longer than the specified deadline"
    patch["status"] |= {"reason": "DeadlineExceeded", "message": message}
    return patch


def rejected(pod: KubeletPod, now: float, reason: str, message: str) -> JSON:
    when = timestamp(now)
    return _patch(
        pod, {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}", "startTime": when}
    )


def _patch(pod: KubeletPod, status: JSON) -> JSON:
    # The uid keeps a patch meant for one pod from reaching its successor of the same name.
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


def _conditions(ready: str, when: str, reason: str | None = None) -> list[JSON]:
    states = {"PodReadyToStartContainers": "True", "Initialized": "True", "Ready": ready, "ContainersReady": ready}
    if reason is not None:
        states["PodReadyToStartContainers"] = "False"
    return [
        {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": when, "reason": reason}
        for kind, status in states.items()
    ]


def _container(pod: KubeletPod, container: Container, restarts: int, state: JSON, *, ready: bool) -> JSON:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": f"simulated://{container.image}",
        "containerID": f"simulated://{pod.metadata.uid}/{container.name}",
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
    }
