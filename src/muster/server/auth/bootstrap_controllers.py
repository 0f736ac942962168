"""The roles of the controllers, one each, bound to the service account that the controller manager uses for it."""

from __future__ import annotations

from muster.server.auth.bootstrap_roles import (
    COORDINATION,
    DEVICES,
    EMIT_EVENTS,
    READ,
    SCHEDULING,
    STORAGE,
    BootstrapBinding,
    BootstrapRole,
    rule,
)
from muster.server.auth.rules import Rule

_SIGNERS = (
    "kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving "
    "kubernetes.io/legacy-unknown"
)
_CONTROLLERS: dict[str, tuple[Rule, ...]] = {
    "clusterrole-aggregation-controller": (
        rule("escalate get list patch update watch", "rbac.authorization.k8s.io", "clusterroles"),
    ),
    "certificate-controller": (
        rule("delete get list watch", "certificates.k8s.io", "certificatesigningrequests"),
        rule(
            "update",
            "certificates.k8s.io",
            "certificatesigningrequests/approval certificatesigningrequests/status",
        ),
        rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
        rule("sign", "certificates.k8s.io", "signers", _SIGNERS),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    ),
    "cronjob-controller": (
        rule("get list update watch", "batch", "cronjobs"),
        rule("create delete get list patch update watch", "batch", "jobs"),
        rule("update", "batch", "cronjobs/status cronjobs/finalizers"),
        rule("delete list", "", "pods"),
    ),
    "daemon-set-controller": (
        rule(READ, "apps", "daemonsets"),
        rule("update", "apps", "daemonsets/status daemonsets/finalizers"),
        rule("list watch", "", "nodes"),
        rule("create delete list patch watch", "", "pods"),
        rule("create delete get list patch update watch", "apps", "controllerrevisions"),
    ),
    "deployment-controller": (
        rule("get list update watch", "apps", "deployments"),
        rule("update", "apps", "deployments/status deployments/finalizers"),
        rule("create delete get list patch update watch", "apps", "replicasets"),
        rule("get list update watch", "", "pods"),
    ),
    "disruption-controller": (
        rule(READ, "apps", "deployments replicasets statefulsets"),
        rule(READ, "", "replicationcontrollers"),
        rule(READ, "policy", "poddisruptionbudgets"),
        rule("update", "policy", "poddisruptionbudgets/status"),
        rule("patch update", "", "pods/status"),
        rule(READ, "", "pods"),
        rule("get", "*", "*/scale"),
    ),
    "endpoint-controller": (
        rule(READ, "", "pods services"),
        rule("create delete get list update", "", "endpoints"),
        rule("create", "", "endpoints/restricted"),
    ),
    "endpointslice-controller": (
        rule(READ, "", "nodes pods services"),
        rule("update", "", "services/finalizers"),
        rule("create delete get list update", "discovery.k8s.io", "endpointslices"),
    ),
    "ephemeral-volume-controller": (
        rule("update", "", "pods/finalizers"),
        rule(READ, "", "pods"),
        rule("create get list watch", "", "persistentvolumeclaims"),
    ),
    "expand-controller": (
        rule("get list patch update watch", "", "persistentvolumes"),
        rule("patch update", "", "persistentvolumeclaims/status"),
        rule(READ, "", "persistentvolumeclaims"),
    ),
    "generic-garbage-collector": (rule("delete get list patch update watch", "*", "*"),),
    "horizontal-pod-autoscaler": (
        rule(READ, "autoscaling", "horizontalpodautoscalers"),
        rule("update", "autoscaling", "horizontalpodautoscalers/status"),
        rule("get update", "*", "*/scale"),
        rule("list watch", "", "pods"),
        rule("list watch", "metrics.k8s.io", "pods"),
        rule(READ, "custom.metrics.k8s.io external.metrics.k8s.io", "*"),
    ),
    "job-controller": (
        rule("get list patch update watch", "batch", "jobs"),
        rule("update", "batch", "jobs/status jobs/finalizers"),
        rule("create delete list patch watch", "", "pods"),
        rule("create get list patch update watch", SCHEDULING, "workloads podgroups"),
    ),
    "legacy-service-account-token-cleaner": (
        rule("get", "", "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
        rule("delete patch", "", "secrets"),
    ),
    "namespace-controller": (
        rule("delete get list watch", "", "namespaces"),
        rule("update", "", "namespaces/finalize namespaces/status"),
        rule("delete deletecollection get list", "*", "*"),
    ),
    "node-controller": (
        rule("delete get list patch update", "", "nodes"),
        rule("patch update", "", "nodes/status"),
        rule("patch update", "", "pods/status"),
        rule("delete list", "", "pods"),
        rule("get list", COORDINATION, "leases"),
    ),
    "persistent-volume-binder": (
        rule("create delete get list update watch", "", "persistentvolumes"),
        rule("update", "", "persistentvolumes/status persistentvolumeclaims/status"),
        rule("get list update watch", "", "persistentvolumeclaims"),
        rule("create delete get list watch", "", "pods"),
        rule(READ, STORAGE, "storageclasses"),
        rule("get list", "", "nodes"),
        rule(READ, STORAGE, "csinodes csidrivers"),
    ),
    "pod-garbage-collector": (
        rule("delete list watch", "", "pods"),
        rule("get list", "", "nodes"),
        rule("patch", "", "pods/status"),
    ),
    "podgroup-protection-controller": (
        rule("get list update watch", SCHEDULING, "podgroups compositepodgroups"),
        rule(READ, "", "pods"),
    ),
    "pv-protection-controller": (rule("get list update watch", "", "persistentvolumes"),),
    "pvc-protection-controller": (
        rule("get list update watch", "", "persistentvolumeclaims"),
        rule(READ, "", "pods"),
    ),
    "replicaset-controller": (
        rule("get list update watch", "apps", "replicasets"),
        rule("update", "apps", "replicasets/status replicasets/finalizers"),
        rule("create delete list patch watch", "", "pods"),
    ),
    "replication-controller": (
        rule("get list update watch", "", "replicationcontrollers"),
        rule("update", "", "replicationcontrollers/status replicationcontrollers/finalizers"),
        rule("create delete list patch watch", "", "pods"),
    ),
    "resource-claim-controller": (
        rule(READ, "", "pods"),
        rule("update", "", "pods/finalizers"),
        rule("create delete get list watch", DEVICES, "resourceclaims"),
        rule("update patch", DEVICES, "resourceclaims resourceclaims/status"),
        rule("update patch", "", "pods/status"),
        rule(READ, DEVICES, "resourceclaimtemplates"),
        rule(READ, SCHEDULING, "podgroups"),
        rule("update patch", SCHEDULING, "podgroups/status"),
    ),
    "resourcequota-controller": (
        rule("list watch", "*", "*"),
        rule("update", "", "resourcequotas/status"),
    ),
    "root-ca-cert-publisher": (rule("create update", "", "configmaps"),),
    "service-account-controller": (rule("create", "", "serviceaccounts"),),
    "statefulset-controller": (
        rule("list watch", "", "pods"),
        rule(READ, "apps", "statefulsets"),
        rule("update", "apps", "statefulsets/status statefulsets/finalizers"),
        rule("create delete get patch update", "", "pods"),
        rule("create delete get list patch update watch", "apps", "controllerrevisions"),
        rule("create get", "", "persistentvolumeclaims"),
    ),
    "taint-eviction-controller": (
        rule("delete get list watch", "", "pods"),
        rule("patch update", "", "pods/status"),
        rule(READ, "", "nodes"),
    ),
    "ttl-after-finished-controller": (rule("delete get list watch", "batch", "jobs"),),
    "ttl-controller": (rule("list patch update watch", "", "nodes"),),
    "validatingadmissionpolicy-status-controller": (rule(READ, "admissionregistration.k8s.io", "*"),),
}

CONTROLLER_ROLES = tuple(
    BootstrapRole(f"system:controller:{name}", (*rules, EMIT_EVENTS)) for name, rules in _CONTROLLERS.items()
)
CONTROLLER_BINDINGS = tuple(
    BootstrapBinding(f"system:controller:{name}", f"system:controller:{name}", (("ServiceAccount", name),))
    for name in _CONTROLLERS
)
