"""What built-in kinds default, prepare and refuse: one `Rules` value a kind, found by group and plural.

The registry takes a kind's hooks from `rules_for(group, plural)`; a kind without rules of its own gets
those that keep spec and status apart. All functions work on plain JSON dicts whose types the server
has already checked, and whose metadata it checks itself. The group
kinds (Workload, PodGroup, CompositePodGroup) have their rules in `muster.api`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from muster.api.gates import DEFAULT, FeatureGates
from muster.server.resources.kind import Defaulter, Preparer, Validator
from muster.server.resources.rules import apps, cluster, gated, job, objects, pod
from muster.server.resources.rules.status import initial_status, keep_status

__all__ = ["RULES", "Rules", "rules_for"]


class Rules(NamedTuple):
    """The hooks of one kind, in the signatures of `muster.server.resources.kind`."""

    default: Defaulter | None = None
    prepare: Preparer | None = keep_status
    validate: Validator | None = None


_NO_STATUS: Preparer | None = None
_PENDING = initial_status(lambda obj: {"phase": "Pending"})
_EMPTY = initial_status(lambda obj: {})

RULES: Mapping[tuple[str, str], Rules] = {
    ("", "pods"): Rules(pod.default, pod.prepare, pod.validate),
    ("", "nodes"): Rules(cluster.default_node, cluster.prepare_node, cluster.validate_node),
    ("", "namespaces"): Rules(cluster.default_namespace, cluster.prepare_namespace),
    ("", "services"): Rules(
        objects.default_service, initial_status(lambda obj: {"loadBalancer": {}}), objects.validate_service
    ),
    ("", "configmaps"): Rules(None, _NO_STATUS, objects.validate_config_map),
    ("", "secrets"): Rules(objects.default_secret, _NO_STATUS, objects.validate_secret),
    ("", "persistentvolumes"): Rules(objects.default_volume, _PENDING, objects.validate_volume),
    ("", "persistentvolumeclaims"): Rules(objects.default_claim, _PENDING, objects.validate_claim),
    ("", "replicationcontrollers"): Rules(
        apps.default_replication_controller,
        initial_status(lambda obj: {"replicas": 0}),
        apps.validate_replication_controller,
    ),
    ("apps", "deployments"): Rules(apps.default_deployment, _EMPTY, apps.validate_deployment),
    ("apps", "replicasets"): Rules(
        apps.default_replica_set, initial_status(lambda obj: {"replicas": 0}), apps.validate_workload
    ),
    ("apps", "statefulsets"): Rules(
        apps.default_stateful_set,
        initial_status(lambda obj: {"replicas": 0, "availableReplicas": 0}),
        apps.validate_stateful_set,
    ),
    ("apps", "daemonsets"): Rules(
        apps.default_daemon_set,
        initial_status(
            lambda obj: {
                "currentNumberScheduled": 0,
                "desiredNumberScheduled": 0,
                "numberMisscheduled": 0,
                "numberReady": 0,
            }
        ),
        apps.validate_workload,
    ),
    ("batch", "jobs"): Rules(job.default, job.prepare, job.validate),
    ("batch", "cronjobs"): Rules(job.default_cron_job, _EMPTY, job.validate_cron_job),
    ("policy", "poddisruptionbudgets"): Rules(None, _EMPTY, objects.validate_budget),
    ("scheduling.k8s.io", "priorityclasses"): Rules(
        cluster.default_priority_class, _NO_STATUS, cluster.validate_priority_class
    ),
    ("coordination.k8s.io", "leases"): Rules(None, _NO_STATUS, objects.validate_lease),
    ("storage.k8s.io", "storageclasses"): Rules(
        objects.default_storage_class, _NO_STATUS, objects.validate_storage_class
    ),
}

_GATED: Mapping[tuple[str, str], gated.Dropper] = {
    ("", "pods"): gated.drop_from_pod,
    ("", "replicationcontrollers"): gated.drop_from_template,
    ("apps", "deployments"): gated.drop_from_template,
    ("apps", "replicasets"): gated.drop_from_template,
    ("apps", "statefulsets"): gated.drop_from_template,
    ("apps", "daemonsets"): gated.drop_from_template,
    ("batch", "jobs"): gated.drop_from_job,
    ("batch", "cronjobs"): gated.drop_from_cron_job,
}


def rules_for(group: str, plural: str, gates: FeatureGates = DEFAULT) -> Rules:
    """The rules of a kind; those that every kind with a status has when it has none of its own.

    Fields whose feature gate is off are dropped before anything else looks at them.
    """
    rules = RULES.get((group, plural), Rules())
    drop = _GATED.get((group, plural))
    if drop is None:
        return rules
    return rules._replace(prepare=gated.dropping(drop, gates, rules.prepare))
