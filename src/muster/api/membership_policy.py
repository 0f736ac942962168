"""The table of leaf rules as admission policies, for clusters whose API server has the field `spec.schedulingGroup`.

Two MutatingAdmissionPolicies: one for pods that name our scheduler, one for namespaces that are labelled as managed,
where pods that name no scheduler are given ours. Neither needs a webhook server or certificates. They are looked at
again when something else has changed the pod (`reinvocationPolicy: IfNeeded`), because policies run before webhooks and
some managers write the labels of a pod in a webhook.
"""

from __future__ import annotations

from typing import Any

from muster.api.membership import LEGAL_NAME, LONGEST_NAME, MANAGED_LABEL, RULES, LeafRule

Obj = dict[str, Any]

MEMBERS, MANAGED = "muster-members", "muster-managed-namespaces"
NEVER = ("kube-system", "kube-public", "kube-node-lease")
_DEFAULT_SCHEDULER = "default-scheduler"
_GROUP = "Object{spec: Object.spec{schedulingGroup: Object.spec.schedulingGroup{podGroupName: variables.group}}}"


def variables() -> list[Obj]:
    """What the expressions of both policies are made of; `variables.group` is the leaf, or empty."""
    return [
        {"name": "labels", "expression": "has(object.metadata.labels) ? object.metadata.labels : {}"},
        {"name": "annotations", "expression": "has(object.metadata.annotations) ? object.metadata.annotations : {}"},
        {
            "name": "owners",
            "expression": "has(object.metadata.ownerReferences) ? "
            "object.metadata.ownerReferences.filter(o, has(o.controller) && o.controller) : []",
        },
        {"name": "named", "expression": _named(RULES)},
        {
            "name": "group",
            "expression": f"size(variables.named) <= {LONGEST_NAME} && "
            f"variables.named.matches(r'^{LEGAL_NAME}$') ? variables.named : ''",
        },
    ]


def _named(rules: tuple[LeafRule, ...]) -> str:
    """One question after the other; the first that is answered with yes gives the name."""
    lines = [f"{_conditions(rule)} ? {_name(rule)} :" for rule in rules]
    return "\n".join([*lines, "''"])


def _conditions(rule: LeafRule) -> str:
    return " && ".join(condition.expression() for condition in rule.conditions)


def _name(rule: LeafRule) -> str:
    return " + ".join(part.expression() for part in rule.parts) or "''"


def membership_policies(scheduler_name: str, namespace: str, *, native: bool = True) -> list[Obj]:
    """The policies and their bindings. Not `native`: groups are custom resources, and only the scheduler is named."""
    ours = f"object.spec.schedulerName == '{scheduler_name}'"
    free = f"object.spec.schedulerName in ['{_DEFAULT_SCHEDULER}', '{scheduler_name}']"
    take_over = f"Object{{spec: Object.spec{{schedulerName: '{scheduler_name}'}}}}"
    managed = {"matchExpressions": [_not_in(*NEVER, namespace)], "matchLabels": {MANAGED_LABEL: "true"}}
    if not native:
        return [_policy(MANAGED, free, [take_over], []), _binding(MANAGED, managed)]
    join = f"has(object.spec.schedulingGroup) || variables.group == '' ? Object{{}} : {_GROUP}"
    return [
        _policy(MEMBERS, ours, [join], variables()),
        _binding(MEMBERS, {"matchExpressions": [_not_in(*NEVER)]}),
        _policy(MANAGED, free, [take_over, join], variables()),
        _binding(MANAGED, managed),
    ]


def _not_in(*names: str) -> Obj:
    return {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": sorted(set(names))}


def _policy(name: str, condition: str, mutations: list[str], shared: list[Obj]) -> Obj:
    spec: Obj = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]
        },
        "matchConditions": [{"name": "scheduler", "expression": condition}],
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": each}} for each in mutations
        ],
    }
    if shared:
        spec["variables"] = shared
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def _binding(name: str, namespaces: Obj) -> Obj:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "matchResources": {"namespaceSelector": namespaces}},
    }
