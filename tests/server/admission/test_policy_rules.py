"""What a policy and a binding must be: the defaults and refusals of kube-apiserver 1.37."""

from __future__ import annotations

from typing import Any

import pytest

from muster.server.resources.rules import admission_policy

Obj = dict[str, Any]
_MATCH = {
    "resourceRules": [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"], "scope": "*"}
    ]
}
_APPLY = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}


def _object(base: Obj, fields: Obj) -> Obj:
    spec = {name: value for name, value in (base | fields).items() if value is not None}
    return {"metadata": {"name": "p"}, "spec": spec}


def validating(**fields: Any) -> list[str]:
    base = {"matchConstraints": _MATCH, "validations": [{"expression": "true"}]}
    return [str(error) for error in admission_policy.validate_validating(_object(base, fields), None, "")]


def mutating(**fields: Any) -> list[str]:
    base = {"matchConstraints": _MATCH, "mutations": [_APPLY], "reinvocationPolicy": "Never"}
    return [str(error) for error in admission_policy.validate_mutating(_object(base, fields), None, "")]


def binding(**fields: Any) -> list[str]:
    base = {"policyName": "p", "validationActions": ["Deny"]}
    return [str(error) for error in admission_policy.validate_validating_binding(_object(base, fields), None, "")]


def test_good_ones_are_fine() -> None:
    assert validating() == mutating() == binding() == []


def test_what_is_left_out_is_filled_in() -> None:
    policy: Obj = {"spec": {"matchConstraints": {"resourceRules": [{}]}}}
    admission_policy.default(policy)
    assert policy["spec"] == {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [{"scope": "*"}],
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
        },
    }


_ONE = "validations or auditAnnotations must contain at least one item"


@pytest.mark.parametrize(
    ("fields", "complaints"),
    [
        ({"matchConstraints": None}, ["matchConstraints: Required value"]),
        ({"matchConstraints": {}}, ["matchConstraints.resourceRules: Required value"]),
        (
            {"validations": None},
            [f"validations: Required value: {_ONE}", f"auditAnnotations: Required value: {_ONE}"],
        ),
        (
            {"validations": [{"expression": ""}]},
            ["validations[0].expression: Required value: expression is not specified"],
        ),
        (
            {"validations": [{"expression": "1"}]},
            ['validations[0].expression: Invalid value: "1": must evaluate to bool but got int'],
        ),
        (
            {"validations": [{"expression": "true", "reason": "X"}]},
            [
                'validations[0].reason: Unsupported value: "X": supported values: "Forbidden", "Invalid", '
                '"RequestEntityTooLarge"'
            ],
        ),
        (
            {"validations": [{"expression": "true", "message": " "}]},
            ['validations[0].message: Invalid value: " ": must be non-empty if specified'],
        ),
        (
            {"validations": [{"expression": "true", "messageExpression": "1"}]},
            ['validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int'],
        ),
        ({"failurePolicy": "X"}, ['failurePolicy: Unsupported value: "X": supported values: "Fail", "Ignore"']),
        (
            {"paramKind": {"apiVersion": "", "kind": ""}},
            ["paramKind.apiVersion: Required value", "paramKind.kind: Required value"],
        ),
        (
            {"variables": [{"name": "a-b", "expression": "1"}]},
            ['variables[0].name: Invalid value: "a-b": must be a valid CEL identifier'],
        ),
        (
            {"matchConstraints": {**_MATCH, "matchPolicy": "X"}},
            ['matchConstraints.matchPolicy: Unsupported value: "X": supported values: "Equivalent", "Exact"'],
        ),
    ],
)
def test_a_wrong_policy_is_refused_in_the_words_of_kubernetes(fields: Obj, complaints: list[str]) -> None:
    assert validating(**fields) == [f"spec.{each}" for each in complaints]


def test_parameters_must_be_declared_and_variables_come_in_order() -> None:
    (complaint,) = validating(validations=[{"expression": "params.x == 1"}])
    assert "undeclared reference to 'params" in complaint
    variables = [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]
    (complaint,) = validating(variables=variables)
    assert complaint.startswith('spec.variables[0].expression: Invalid value: "variables.b": compilation failed')


@pytest.mark.parametrize(
    ("fields", "complaints"),
    [
        ({"policyName": None}, ["policyName: Required value"]),
        ({"validationActions": None}, ["validationActions: Required value"]),
        (
            {"validationActions": ["X"]},
            ['validationActions[0]: Unsupported value: "X": supported values: "Audit", "Deny", "Warn"'],
        ),
        ({"validationActions": ["Deny", "Deny"]}, ['validationActions[1]: Duplicate value: "Deny"']),
        (
            {"paramRef": {}},
            [
                "paramRef: Required value: one of name or selector must be specified",
                "paramRef.parameterNotFoundAction: Required value",
            ],
        ),
        (
            {"paramRef": {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"}},
            [
                "paramRef.name: Forbidden: name and selector are mutually exclusive",
                "paramRef.selector: Forbidden: name and selector are mutually exclusive",
            ],
        ),
    ],
)
def test_a_wrong_binding_is_refused_in_the_words_of_kubernetes(fields: Obj, complaints: list[str]) -> None:
    assert binding(**fields) == [f"spec.{each}" for each in complaints]


def a_mutation(kind: str, text: str) -> Obj:
    field = "applyConfiguration" if kind == "ApplyConfiguration" else "jsonPatch"
    return {"patchType": kind, field: {"expression": text}}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"mutations": None}, "mutations: Required value: mutations must contain at least one item"),
        (
            {"mutations": [{"patchType": "X"}]},
            'mutations[0].patchType: Unsupported value: "X": supported values: "ApplyConfiguration", "JSONPatch"',
        ),
        (
            {"mutations": [{"patchType": "JSONPatch"}]},
            "mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
        ),
        (
            {"mutations": [a_mutation("ApplyConfiguration", "1")]},
            'mutations[0].applyConfiguration.expression: Invalid value: "1": must evaluate to Object but got int',
        ),
        (
            {"mutations": [a_mutation("JSONPatch", "[1]")]},
            'mutations[0].jsonPatch.expression: Invalid value: "[1]": must evaluate to list(JSONPatch) but '
            "got list(int)",
        ),
        (
            {"mutations": [a_mutation("JSONPatch", "JSONPatch{op: 'add'}")]},
            "mutations[0].jsonPatch.expression: Invalid value: \"JSONPatch{op: 'add'}\": must evaluate to "
            "list(JSONPatch) but got JSONPatch",
        ),
        ({"reinvocationPolicy": None}, "reinvocationPolicy: Required value"),
    ],
)
def test_a_wrong_mutation_is_refused_in_the_words_of_kubernetes(fields: Obj, complaint: str) -> None:
    assert mutating(**fields) == [f"spec.{complaint}"]
