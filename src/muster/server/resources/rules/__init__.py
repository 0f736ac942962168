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
from muster.server.resources.rules import (
    admission_policy,
    api_service,
    apps,
    autoscaling,
    certificates,
    cluster,
    cron_job,
    flowcontrol,
    gated,
    job,
    networking,
    objects,
    pod,
    quotas,
    runtime_class,
    webhook,
)
from muster.server.resources.rules.devices import claim_status, device_claims, device_classes, device_slices
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
    ("", "resourcequotas"): Rules(None, _EMPTY, quotas.validate_quota),
    ("", "limitranges"): Rules(quotas.default_limit_range, _NO_STATUS, quotas.validate_limit_range),
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
    ("batch", "cronjobs"): Rules(cron_job.default, _EMPTY, cron_job.validate),
    ("policy", "poddisruptionbudgets"): Rules(None, _EMPTY, objects.validate_budget),
    ("scheduling.k8s.io", "priorityclasses"): Rules(
        cluster.default_priority_class, _NO_STATUS, cluster.validate_priority_class
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): Rules(
        webhook.default_mutating, _NO_STATUS, webhook.validate
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): Rules(
        webhook.default_validating, _NO_STATUS, webhook.validate
    ),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): Rules(
        admission_policy.default, _NO_STATUS, admission_policy.validate_mutating
    ),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): Rules(
        admission_policy.default_binding, _NO_STATUS, admission_policy.validate_binding
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): Rules(
        admission_policy.default, keep_status, admission_policy.validate_validating
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): Rules(
        admission_policy.default_binding, _NO_STATUS, admission_policy.validate_validating_binding
    ),
    ("apiregistration.k8s.io", "apiservices"): Rules(
        api_service.default, initial_status(api_service.status_of), api_service.validate
    ),
    ("coordination.k8s.io", "leases"): Rules(None, _NO_STATUS, objects.validate_lease),
    ("storage.k8s.io", "storageclasses"): Rules(
        objects.default_storage_class, _NO_STATUS, objects.validate_storage_class
    ),
    ("resource.k8s.io", "resourceclaims"): Rules(
        device_claims.default_claim, claim_status.prepare, device_claims.validate_claim
    ),
    ("resource.k8s.io", "resourceclaimtemplates"): Rules(
        device_claims.default_template, _NO_STATUS, device_claims.validate_template
    ),
    ("resource.k8s.io", "resourceslices"): Rules(None, _NO_STATUS, device_slices.validate_slice),
    ("resource.k8s.io", "deviceclasses"): Rules(None, _NO_STATUS, device_classes.validate_class),
    ("resource.k8s.io", "devicetaintrules"): Rules(None, _EMPTY, device_classes.validate_taint_rule),
    ("autoscaling", "horizontalpodautoscalers"): Rules(autoscaling.default, _EMPTY, autoscaling.validate),
    ("certificates.k8s.io", "certificatesigningrequests"): Rules(
        None, certificates.prepare_request, certificates.validate_request
    ),
    ("certificates.k8s.io", "clustertrustbundles"): Rules(None, _NO_STATUS, certificates.validate_trust_bundle),
    ("networking.k8s.io", "ingresses"): Rules(
        None, initial_status(lambda obj: {"loadBalancer": {}}), networking.validate_ingress
    ),
    ("networking.k8s.io", "ingressclasses"): Rules(
        networking.default_ingress_class, _NO_STATUS, networking.validate_ingress_class
    ),
    ("networking.k8s.io", "networkpolicies"): Rules(
        networking.default_network_policy, _NO_STATUS, networking.validate_network_policy
    ),
    ("networking.k8s.io", "ipaddresses"): Rules(None, _NO_STATUS, networking.validate_ip_address),
    ("networking.k8s.io", "servicecidrs"): Rules(None, _EMPTY, networking.validate_service_cidr),
    ("node.k8s.io", "runtimeclasses"): Rules(None, _NO_STATUS, runtime_class.validate),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): Rules(
        flowcontrol.default_flow_schema, _EMPTY, flowcontrol.validate_flow_schema
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): Rules(
        flowcontrol.default_priority_level, _EMPTY, flowcontrol.validate_priority_level
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
