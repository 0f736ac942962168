"""The kinds of workloads that get groups, each with its `tree_of`. Adding one is its file, its test and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from muster.api.membership import COSCHEDULING_GROUPS, JOB_SETS, LEADER_WORKER_SETS, RAY_CLUSTERS
from muster.api.resources import JOBS, REPLICA_SETS, STATEFUL_SETS, Resource
from muster.controllers.workloads import by_annotation, coscheduling, job, jobset, kubeflow, leader_worker_set, ray
from muster.controllers.workloads.tree import JSON, Sight, Tree

TREE_OF = Callable[[JSON, Sight], Tree]

TRAIN_JOBS = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob", True)
RAY_JOBS = Resource("ray.io", "v1", "rayjobs", "RayJob", True)

# Whose objects an owner may be controlled by, so that its annotations count as well.
PARENTS: tuple[Resource, ...] = (TRAIN_JOBS, RAY_JOBS)

# The managers that this is about. An object that names another one gets its pods in another cluster.
OWN_MANAGERS = frozenset(
    (
        "kubernetes.io/job-controller",
        "jobset.sigs.k8s.io/jobset-controller",
        "ray.io/kuberay-operator",
        "trainer.kubeflow.org/trainjob-controller",
        "kubeflow.org/training-operator",
        "kubeflow.org/mpi-operator",
    )
)


class WorkloadKind(NamedTuple):
    """One kind, in the version that its manager recommends; a server may have another."""

    resource: Resource
    tree_of: TREE_OF
    built_in: bool = False


def _kubeflow(plural: str, kind: str) -> WorkloadKind:
    return WorkloadKind(Resource("kubeflow.org", "v1", plural, kind, True), kubeflow.tree_of)


KINDS: tuple[WorkloadKind, ...] = (
    WorkloadKind(JOBS, job.tree_of, built_in=True),
    WorkloadKind(STATEFUL_SETS, by_annotation.tree_of, built_in=True),
    WorkloadKind(REPLICA_SETS, by_annotation.tree_of, built_in=True),
    WorkloadKind(JOB_SETS, jobset.tree_of),
    WorkloadKind(LEADER_WORKER_SETS, leader_worker_set.tree_of),
    WorkloadKind(RAY_CLUSTERS, ray.tree_of),
    _kubeflow("pytorchjobs", "PyTorchJob"),
    _kubeflow("tfjobs", "TFJob"),
    _kubeflow("xgboostjobs", "XGBoostJob"),
    _kubeflow("paddlejobs", "PaddleJob"),
    _kubeflow("mpijobs", "MPIJob"),
    _kubeflow("jaxjobs", "JAXJob"),
    WorkloadKind(COSCHEDULING_GROUPS, coscheduling.tree_of),
)

WATCHED: tuple[Resource, ...] = (*(each.resource for each in KINDS), *PARENTS)
