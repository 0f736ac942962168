"""What a webhook configuration must be: the defaults and refusals of kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any

import pytest
from webhook_server import a_configuration

from muster.server.resources.rules import webhook

Obj = dict[str, Any]
_RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
_NO_CONFIG = "webhooks[0].clientConfig: Required value: exactly one of url or service is required"


def a_hook(**fields: Any) -> Obj:
    made: Obj = {
        "name": "a.b.c",
        "clientConfig": {"url": "https://localhost:1/x"},
        "rules": [dict(_RULE)],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {name: value for name, value in (made | fields).items() if value is not None}


def complaints(*hooks: Obj) -> list[str]:
    made = a_configuration("Mutating", *hooks)
    webhook.default_mutating(made)
    return [str(error) for error in webhook.validate(made, None, "")]


def test_a_hook_is_completed() -> None:
    made = a_configuration("Mutating", a_hook(clientConfig={"service": {"namespace": "a", "name": "b"}}))
    webhook.default_mutating(made)
    (hook,) = made["webhooks"]
    assert hook["clientConfig"]["service"]["port"] == 443
    assert hook["rules"][0]["scope"] == "*"
    assert hook["failurePolicy"] == "Fail"
    assert hook["matchPolicy"] == "Equivalent"
    assert hook["namespaceSelector"] == hook["objectSelector"] == {}
    assert hook["timeoutSeconds"] == 10
    assert hook["reinvocationPolicy"] == "Never"
    assert webhook.validate(made, None, "") == []


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"name": "a"}, 'name: Invalid value: "a": should be a domain with at least three segments separated by dots'),
        ({"name": ""}, "name: Required value"),
        ({"admissionReviewVersions": []}, "admissionReviewVersions: Required value: must specify one of v1, v1beta1"),
        (
            {"admissionReviewVersions": ["v9"]},
            'admissionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1',
        ),
        (
            {"admissionReviewVersions": ["v1", "v1"]},
            'admissionReviewVersions[1]: Invalid value: "v1": duplicate version',
        ),
        ({"sideEffects": "Some"}, 'sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'),
        ({"sideEffects": None}, "sideEffects: Required value: must specify one of None, NoneOnDryRun"),
        (
            {"timeoutSeconds": 31},
            "timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        ),
        ({"timeoutSeconds": 0}, "timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds"),
        ({"failurePolicy": "X"}, 'failurePolicy: Unsupported value: "X": supported values: "Fail", "Ignore"'),
        ({"matchPolicy": "X"}, 'matchPolicy: Unsupported value: "X": supported values: "Equivalent", "Exact"'),
        (
            {"reinvocationPolicy": "X"},
            'reinvocationPolicy: Unsupported value: "X": supported values: "IfNeeded", "Never"',
        ),
        ({"clientConfig": {}}, "clientConfig: Required value: exactly one of url or service is required"),
        (
            {"clientConfig": {"url": "http://a"}},
            "clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; "
            "desired format: https://host[/path]",
        ),
        (
            {"clientConfig": {"url": "https://u@a"}},
            'clientConfig.url: Invalid value: "u": user information is not permitted in the URL',
        ),
        (
            {"clientConfig": {"url": "https://a/?x=1"}},
            'clientConfig.url: Invalid value: "x=1": query parameters are not permitted in the URL',
        ),
        (
            {"clientConfig": {"url": "https://a/#x"}},
            'clientConfig.url: Invalid value: "x": fragments are not permitted in the URL',
        ),
        (
            {"clientConfig": {"url": "https:///x"}},
            'clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[/path]',
        ),
        (
            {"clientConfig": {"service": {"namespace": "a", "name": "b", "port": 70000}}},
            "clientConfig.service.port: Invalid value: 70000: port is not valid: must be between 1 and 65535, "
            "inclusive",
        ),
        (
            {"clientConfig": {"service": {"namespace": "a", "name": "b", "path": "//x"}}},
            'clientConfig.service.path: Invalid value: "//x": segment[0] may not be empty',
        ),
        ({"rules": [_RULE | {"operations": []}]}, "rules[0].operations: Required value"),
        (
            {"rules": [_RULE | {"operations": ["X"]}]},
            'rules[0].operations[0]: Unsupported value: "X": supported values: '
            '"*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
        ),
        (
            {"rules": [_RULE | {"operations": ["*", "CREATE"]}]},
            'rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify '
            "other operations",
        ),
        ({"rules": [_RULE | {"apiGroups": []}]}, "rules[0].apiGroups: Required value"),
        ({"rules": [_RULE | {"apiVersions": [""]}]}, "rules[0].apiVersions[0]: Required value"),
        (
            {"rules": [_RULE | {"resources": ["*", "pods"]}]},
            'rules[0].resources: Invalid value: ["*","pods"]: if \'*\' is present, must not specify other resources '
            "without subresources",
        ),
        (
            {"rules": [_RULE | {"resources": ["pods/*", "pods/status"]}]},
            "rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify "
            "pods/status",
        ),
        (
            {"rules": [_RULE | {"resources": ["*/*", "pods"]}]},
            'rules[0].resources: Invalid value: ["*/*","pods"]: if \'*/*\' is present, must not specify '
            "other resources",
        ),
        (
            {"rules": [_RULE | {"scope": "X"}]},
            'rules[0].scope: Unsupported value: "X": supported values: "*", "Cluster", "Namespaced"',
        ),
        (
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]}},
            'namespaceSelector.matchExpressions[0].operator: Invalid value: "X": not a valid selector operator',
        ),
        (
            {"matchConditions": [{"name": "a", "expression": "nope"}]},
            'matchConditions[0].expression: Invalid value: "nope": compilation failed: ERROR: <input>:1:1: undeclared '
            "reference to 'nope' (in container '')\n | nope\n | ^",
        ),
        (
            {"matchConditions": [{"name": "a", "expression": "1"}]},
            'matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int',
        ),
    ],
)
def test_what_kubernetes_refuses_is_refused_in_its_words(fields: Obj, complaint: str) -> None:
    assert complaints(a_hook(**fields)) == [f"webhooks[0].{complaint}"]


def test_names_are_unique() -> None:
    assert complaints(a_hook(), a_hook()) == ['webhooks[1].name: Duplicate value: "a.b.c"']


def test_where_no_expression_can_be_evaluated_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "CEL expressions cannot be evaluated here: the package cel-expr-python is missing (no wheel)"
    monkeypatch.setattr("muster.server.resources.rules.admission_matching.missing", lambda: words)
    (complaint,) = complaints(a_hook(matchConditions=[{"name": "a", "expression": "true"}]))
    assert complaint == f"webhooks[0].matchConditions[0].expression: Forbidden: {words}"
    assert complaints(a_hook()) == []
