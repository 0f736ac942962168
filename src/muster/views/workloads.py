"""The workload that groups were made for, and the groups of a workload, by the labels that lead to and fro."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.api.membership import OWNER_KIND, OWNER_NAME

if TYPE_CHECKING:
    from muster.scheduler.cycle.view import SchedulerView
    from muster.scheduler.groups.group import Group

WORDS = {
    "job": "Job",
    "jobset": "JobSet",
    "leaderworkerset": "LeaderWorkerSet",
    "lws": "LeaderWorkerSet",
    "trainjob": "TrainJob",
    "raycluster": "RayCluster",
    "rayjob": "RayJob",
    "rayservice": "RayService",
    "pytorchjob": "PyTorchJob",
    "tfjob": "TFJob",
    "xgboostjob": "XGBoostJob",
    "paddlejob": "PaddleJob",
    "mpijob": "MPIJob",
    "jaxjob": "JAXJob",
    "statefulset": "StatefulSet",
    "sts": "StatefulSet",
    "deployment": "Deployment",
    "deploy": "Deployment",
    "replicaset": "ReplicaSet",
    "rs": "ReplicaSet",
}
"""How people name the kinds whose groups are made for them; plurals too."""


def kind_named(word: str) -> str:
    """The kind that a word means; empty if it means none of these."""
    word = word.lower()
    return WORDS.get(word) or WORDS.get(word.removesuffix("s"), "")


def workload_of(group: Group) -> str:
    """The workload of a group, as people name it (`jobset/train`); empty for a group that was made by hand."""
    labels = (group.obj.metadata.labels if group.obj is not None else None) or {}
    kind, name = labels.get(OWNER_KIND), labels.get(OWNER_NAME)
    return f"{kind.lower()}/{name}" if kind and name else ""


def roots_of(view: SchedulerView, kind: str, namespace: str | None, name: str) -> list[Group]:
    """The tops of the trees that were made for a workload, those that wait first."""
    wanted = f"{kind.lower()}/{name}"
    found = {
        group.root().key: group.root()
        for group in view.groups.values()
        if namespace in (None, group.key.namespace) and workload_of(group) == wanted
    }
    return sorted(found.values(), key=lambda group: (group.quorum_bound, group.key))
