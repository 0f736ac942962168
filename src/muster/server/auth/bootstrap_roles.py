"""The roles that exist from the first start, as Kubernetes 1.37 has them, for the kinds that are served here.

Data only: `ROLES` and `BINDINGS`. The user-facing roles admin, edit and view gather the `aggregate-to-*` roles.
Controller roles are in `bootstrap_controllers`.
"""

from __future__ import annotations

from typing import NamedTuple

from muster.server.auth.rules import Rule

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
READ_WRITE = "create delete deletecollection get list patch update watch"

SCHEDULING = "scheduling.k8s.io"
COORDINATION = "coordination.k8s.io"
STORAGE = "storage.k8s.io"
DEVICES = "resource.k8s.io"
RBAC = "rbac.authorization.k8s.io"
EVENTS = "events.k8s.io"


class BootstrapRole(NamedTuple):
    """A ClusterRole, or a Role when it has a namespace."""

    name: str
    rules: tuple[Rule, ...] = ()
    namespace: str = ""
    labels: tuple[str, ...] = ()  # label keys that are "true"
    gathers: str = ""  # the label key that an aggregated role selects


class BootstrapBinding(NamedTuple):
    """A ClusterRoleBinding, or a RoleBinding when it has a namespace."""

    name: str
    role: str
    subjects: tuple[tuple[str, str], ...]  # (kind, name); service accounts live in kube-system
    namespace: str = ""


def rule(verbs: str, group: str, resources: str, names: str = "") -> Rule:
    """One rule in one line; `group` may list several, with `core` for the unnamed one."""
    groups = tuple("" if word == "core" else word for word in group.split()) or ("",)
    return Rule(tuple(verbs.split()), groups, tuple(resources.split()), tuple(names.split()))


def pages(verbs: str, urls: str) -> Rule:
    return Rule(tuple(verbs.split()), non_resource_urls=tuple(urls.split()))


EMIT_EVENTS = rule("create patch update", f"core {EVENTS}", "events")
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"

_WORKLOADS = (
    "daemonsets deployments deployments/rollback deployments/scale "
    "replicasets replicasets/scale statefulsets statefulsets/scale"
)
_GROUPS = "workloads podgroups compositepodgroups"

_EDIT = (
    rule("get list watch", "", "pods/attach pods/proxy pods/exec pods/portforward secrets services/proxy"),
    rule("impersonate", "", "serviceaccounts"),
    rule(WRITE, "", "pods pods/attach pods/proxy pods/exec pods/portforward"),
    rule("create", "", "pods/eviction"),
    rule(
        WRITE,
        "",
        "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
        "serviceaccounts services services/proxy podtemplates",
    ),
    rule("create", "", "serviceaccounts/token"),
    rule("get", "", "serviceaccounts"),
    rule(WRITE, "apps", _WORKLOADS),
    rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
    rule(WRITE, "batch", "cronjobs jobs"),
    rule(WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    rule(WRITE, "policy", "poddisruptionbudgets"),
    rule(WRITE, SCHEDULING, _GROUPS),
    rule(WRITE, DEVICES, "resourceclaims resourceclaimtemplates"),
    rule("create delete deletecollection get list patch update watch", COORDINATION, "leases"),
)
_VIEW = (
    rule(
        READ,
        "",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
        "replicationcontrollers/scale serviceaccounts services services/status podtemplates",
    ),
    rule(
        READ,
        "",
        "bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
        "resourcequotas resourcequotas/status",
    ),
    rule(READ, "", "namespaces"),
    rule(READ, EVENTS, "events"),
    rule(READ, "discovery.k8s.io", "endpointslices"),
    rule(
        READ,
        "apps",
        f"controllerrevisions daemonsets/status deployments/status replicasets/status statefulsets/status {_WORKLOADS}",
    ),
    rule(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    rule(READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    rule(READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
    rule(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    rule(READ, SCHEDULING, f"{_GROUPS} podgroups/status compositepodgroups/status"),
    rule(READ, DEVICES, "resourceclaims resourceclaims/status resourceclaimtemplates"),
)

SCHEDULER_RULES = (
    rule("create patch update", f"core {EVENTS}", "events"),
    rule("create", COORDINATION, "leases"),
    rule("get list patch update watch", COORDINATION, "leases", "kube-scheduler muster"),
    rule(READ, "", "nodes"),
    rule("delete get list watch", "", "pods"),
    rule("create", "", "bindings pods/binding"),
    rule("patch update", "", "pods/status"),
    rule(READ, "", "replicationcontrollers services namespaces"),
    rule(READ, "apps", "replicasets statefulsets"),
    rule(READ, "policy", "poddisruptionbudgets"),
    rule("get list patch update watch", "", "persistentvolumeclaims persistentvolumes"),
    rule("create", "authentication.k8s.io", "tokenreviews"),
    rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    rule(READ, STORAGE, "csinodes csidrivers csistoragecapacities storageclasses volumeattachments"),
    rule(READ, DEVICES, "deviceclasses devicetaintrules resourceclaims resourceslices"),
    rule("patch update", DEVICES, "resourceclaims resourceclaims/status"),
    rule(READ, SCHEDULING, f"{_GROUPS} priorityclasses"),
    rule("patch update", SCHEDULING, "podgroups/status compositepodgroups/status"),
    rule("create", "", "pods/eviction"),
)
_MANAGER_RULES = (
    EMIT_EVENTS,
    rule("create", COORDINATION, "leases"),
    rule("get update", COORDINATION, "leases", "kube-controller-manager"),
    rule("create", "", "secrets serviceaccounts"),
    rule("delete", "", "secrets"),
    rule("get", "", "configmaps namespaces secrets serviceaccounts"),
    rule("update", "", "secrets serviceaccounts"),
    rule("create", "authentication.k8s.io", "tokenreviews"),
    rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    rule("list watch", "*", "*"),
    rule("create", "", "serviceaccounts/token"),
)
NODE_RULES = (
    rule("create", "authentication.k8s.io", "tokenreviews"),
    rule("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
    rule(READ, "", "services"),
    rule("create get list watch", "", "nodes"),
    rule("patch update", "", "nodes/status nodes"),
    EMIT_EVENTS,
    rule(READ, "", "pods"),
    rule("create delete", "", "pods"),
    rule("patch update", "", "pods/status"),
    rule("create", "", "pods/eviction"),
    rule(READ, "", "configmaps secrets"),
    rule("get", "", "persistentvolumeclaims persistentvolumes"),
    rule("create", "", "serviceaccounts/token"),
    rule("create delete get patch update", COORDINATION, "leases"),
    rule("create delete get patch update", STORAGE, "csinodes"),
    rule("get", STORAGE, "volumeattachments"),
    rule(READ, STORAGE, "csidrivers"),
    rule(READ, "node.k8s.io", "runtimeclasses"),
    rule("get", "resource.k8s.io", "resourceclaims"),
    rule("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
)
_DISCOVERY = "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"

ROLES: tuple[BootstrapRole, ...] = (
    BootstrapRole("cluster-admin", (rule("*", "*", "*"), pages("*", "*"))),
    BootstrapRole("system:discovery", (pages("get", _DISCOVERY),)),
    BootstrapRole(
        "system:monitoring",
        (pages("get", "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),),
    ),
    BootstrapRole(
        "system:basic-user",
        (
            rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
            rule("create", "authentication.k8s.io", "selfsubjectreviews"),
        ),
    ),
    BootstrapRole("system:public-info-viewer", (pages("get", "/healthz /livez /readyz /version /version/"),)),
    BootstrapRole("admin", gathers=f"{_AGGREGATE}admin"),
    BootstrapRole("edit", labels=(f"{_AGGREGATE}admin",), gathers=f"{_AGGREGATE}edit"),
    BootstrapRole("view", labels=(f"{_AGGREGATE}edit",), gathers=f"{_AGGREGATE}view"),
    BootstrapRole(
        "system:aggregate-to-admin",
        (
            rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
            rule(READ_WRITE, RBAC, "rolebindings roles"),
        ),
        labels=(f"{_AGGREGATE}admin",),
    ),
    BootstrapRole("system:aggregate-to-edit", _EDIT, labels=(f"{_AGGREGATE}edit",)),
    BootstrapRole("system:aggregate-to-view", _VIEW, labels=(f"{_AGGREGATE}view",)),
    BootstrapRole("system:kube-scheduler", SCHEDULER_RULES),
    BootstrapRole(
        "system:volume-scheduler",
        (
            rule("get list patch update watch", "", "persistentvolumes"),
            rule(READ, STORAGE, "storageclasses"),
            rule("get list patch update watch", "", "persistentvolumeclaims"),
        ),
    ),
    BootstrapRole("system:kube-controller-manager", _MANAGER_RULES),
    BootstrapRole("system:node", NODE_RULES),
    *(
        BootstrapRole(
            f"system:certificates.k8s.io:{signer}-approver",
            (rule("approve", "certificates.k8s.io", "signers", f"kubernetes.io/{signer}"),),
        )
        for signer in ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving", "legacy-unknown")
    ),
    BootstrapRole(
        "system:node-proxier",
        (
            rule("list watch", "", "services endpoints"),
            rule(READ, "", "nodes"),
            EMIT_EVENTS,
            rule("list watch", "discovery.k8s.io", "endpointslices"),
        ),
    ),
    BootstrapRole(
        "system:auth-delegator",
        (
            rule("create", "authentication.k8s.io", "tokenreviews"),
            rule("create", "authorization.k8s.io", "subjectaccessreviews"),
        ),
    ),
    BootstrapRole(
        "system:service-account-issuer-discovery",
        (pages("get", "/.well-known/openid-configuration /openid/v1/jwks"),),
    ),
    BootstrapRole(
        "extension-apiserver-authentication-reader",
        (rule(READ, "", "configmaps", "extension-apiserver-authentication"),),
        namespace="kube-system",
    ),
    BootstrapRole(
        "system::leader-locking-kube-scheduler",
        (rule("watch", "", "configmaps"), rule("get update", "", "configmaps", "kube-scheduler")),
        namespace="kube-system",
    ),
    BootstrapRole(
        "system::leader-locking-kube-controller-manager",
        (rule("watch", "", "configmaps"), rule("get update", "", "configmaps", "kube-controller-manager")),
        namespace="kube-system",
    ),
    BootstrapRole("muster:scheduler", SCHEDULER_RULES),
)

_EVERYBODY = (("Group", "system:authenticated"),)
_SCHEDULER = (("User", "system:kube-scheduler"),)
_MANAGER = (("User", "system:kube-controller-manager"),)

BINDINGS: tuple[BootstrapBinding, ...] = (
    BootstrapBinding("cluster-admin", "cluster-admin", (("Group", "system:masters"),)),
    BootstrapBinding("system:discovery", "system:discovery", _EVERYBODY),
    BootstrapBinding("system:basic-user", "system:basic-user", _EVERYBODY),
    BootstrapBinding(
        "system:public-info-viewer",
        "system:public-info-viewer",
        (("Group", "system:authenticated"), ("Group", "system:unauthenticated")),
    ),
    BootstrapBinding("system:monitoring", "system:monitoring", (("Group", "system:monitoring"),)),
    BootstrapBinding("system:kube-scheduler", "system:kube-scheduler", _SCHEDULER),
    BootstrapBinding("system:volume-scheduler", "system:volume-scheduler", _SCHEDULER),
    BootstrapBinding("system:kube-controller-manager", "system:kube-controller-manager", _MANAGER),
    BootstrapBinding("system:node", "system:node", ()),
    BootstrapBinding("system:node-proxier", "system:node-proxier", (("User", "system:kube-proxy"),)),
    BootstrapBinding(
        "system:service-account-issuer-discovery",
        "system:service-account-issuer-discovery",
        (("Group", "system:serviceaccounts"),),
    ),
    BootstrapBinding(
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        (*_SCHEDULER, *_MANAGER),
        namespace="kube-system",
    ),
    BootstrapBinding(
        "system::leader-locking-kube-scheduler", "system::leader-locking-kube-scheduler", _SCHEDULER, "kube-system"
    ),
    BootstrapBinding(
        "system::leader-locking-kube-controller-manager",
        "system::leader-locking-kube-controller-manager",
        _MANAGER,
        "kube-system",
    ),
    BootstrapBinding("muster:scheduler", "muster:scheduler", (("User", "muster:scheduler"),)),
)
