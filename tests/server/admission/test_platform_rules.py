"""Networking, autoscaling, flow control and runtime classes: what is filled in and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from muster.server.resources.rules import rules_for

Obj = dict[str, Any]


def complaints(group: str, plural: str, obj: Obj, old: Obj | None = None) -> list[str]:
    rules = rules_for(group, plural)
    obj = {"metadata": {"name": "x"}, **obj}
    if rules.default is not None:
        rules.default(obj)
    assert rules.validate is not None
    return [f"{each.field}: {each.detail}" for each in rules.validate(obj, old, "")]


SERVICE = {"service": {"name": "s", "port": {"number": 80}}}


def an_ingress(path: Obj) -> Obj:
    return {"spec": {"rules": [{"host": "a.example", "http": {"paths": [{"backend": SERVICE, **path}]}}]}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (an_ingress({"path": "/", "pathType": "Prefix"}), []),
        ({"spec": {}}, ["spec: either `defaultBackend` or `rules` must be specified"]),
        (an_ingress({"path": "/"}), ["spec.rules[0].http.paths[0].pathType: pathType must be specified"]),
        (
            an_ingress({"path": "x", "pathType": "Exact"}),
            ["spec.rules[0].http.paths[0].path: must be an absolute path"],
        ),
        (
            an_ingress({"path": "/a//b", "pathType": "Exact"}),
            ["spec.rules[0].http.paths[0].path: must not contain '//'"],
        ),
        ({"spec": {"rules": [{"host": "10.0.0.1"}]}}, ["spec.rules[0].host: must be a DNS name, not an IP address"]),
        ({"spec": {"rules": [{"host": "*.example.com"}]}}, []),
        ({"spec": {"defaultBackend": {}}}, ["spec.defaultBackend: resource or service backend is required"]),
        (
            {"spec": {"defaultBackend": {"service": {"name": "s"}}}},
            ["spec.defaultBackend: port name or number is required"],
        ),
    ],
)
def test_ingresses(obj: Obj, expected: list[str]):
    assert complaints("networking.k8s.io", "ingresses", obj) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"podSelector": {}}, []),
        ({"ingress": [{"from": [{}]}]}, ["spec.ingress[0].from[0]: must specify a peer"]),
        (
            {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}}]}]},
            ["spec.egress[0].to[0].ipBlock.except[0]: must be a strict subset of `cidr`"],
        ),
        (
            {"ingress": [{"ports": [{"port": 80, "endPort": 70}]}]},
            ["spec.ingress[0].ports[0].endPort: must be greater than or equal to `port`"],
        ),
        (
            {"ingress": [{"from": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
            ["spec.ingress[0].from[0]: may not specify both ipBlock and another peer"],
        ),
    ],
)
def test_network_policies(spec: Obj, expected: list[str]):
    assert complaints("networking.k8s.io", "networkpolicies", {"spec": spec}) == expected


def test_a_policy_with_egress_rules_is_about_both_directions():
    policy: Obj = {"spec": {"egress": [{}]}}
    default = rules_for("networking.k8s.io", "networkpolicies").default
    assert default is not None
    default(policy)
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]


TARGET = {"kind": "Deployment", "name": "d"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"scaleTargetRef": TARGET, "maxReplicas": 3}, []),
        (
            {"scaleTargetRef": TARGET},
            [
                "spec.maxReplicas: must be set and greater than 0",
                "spec.maxReplicas: must be greater than or equal to `minReplicas`",
            ],
        ),
        (
            {"scaleTargetRef": TARGET, "minReplicas": 5, "maxReplicas": 3},
            ["spec.maxReplicas: must be greater than or equal to `minReplicas`"],
        ),
        ({"scaleTargetRef": {"kind": "X"}, "maxReplicas": 3}, ["spec.scaleTargetRef.name: "]),
        (
            {"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": [{"type": "Resource"}]},
            ["spec.metrics[0].resource: must populate information for the given metric source"],
        ),
    ],
)
def test_autoscalers(spec: Obj, expected: list[str]):
    assert complaints("autoscaling", "horizontalpodautoscalers", {"spec": spec}) == expected


def test_flow_schemas_and_priority_levels():
    group = "flowcontrol.apiserver.k8s.io"
    assert complaints(group, "flowschemas", {"spec": {}}) == [
        "spec.priorityLevelConfiguration.name: must reference a priority level"
    ]
    assert complaints(group, "prioritylevelconfigurations", {"spec": {"type": "Limited"}}) == [
        "spec.limited: must not be empty when type is Limited"
    ]
    limited = {"limitResponse": {"type": "Queue", "queuing": {"handSize": 9, "queues": 8}}}
    found = complaints(group, "prioritylevelconfigurations", {"spec": {"type": "Limited", "limited": limited}})
    assert found == ["spec.limited.limitResponse.queuing.handSize: should not be greater than queues (8)"]


def test_runtime_classes():
    assert complaints("node.k8s.io", "runtimeclasses", {}) == ["handler: "]
    assert complaints("node.k8s.io", "runtimeclasses", {"handler": "h"}, {"handler": "g"}) == [
        "handler: field is immutable"
    ]


def test_addresses():
    parent = {"spec": {"parentRef": {"resource": "services", "name": "s"}}}
    assert complaints("networking.k8s.io", "ipaddresses", {**parent, "metadata": {"name": "10.0.0.1"}}) == []
    assert complaints("networking.k8s.io", "ipaddresses", parent) != []
    assert complaints("networking.k8s.io", "servicecidrs", {"spec": {"cidrs": ["10.0.0.0/8"]}}) == []
    assert complaints("networking.k8s.io", "servicecidrs", {"spec": {"cidrs": ["10.0.0.0"]}}) != []
