"""Admission policies and webhooks with kubectl: on `muster up` as on a real kube-apiserver, word for word."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.kube.cluster import RealCluster

from tests.e2e.processes import Kubectl, eventually, up

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

Obj = dict[str, Any]
_PATIENCE = 15.0
_API = "admissionregistration.k8s.io/v1"
_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


@pytest.fixture(scope="module")
def clusters(kube: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Kubectl]]:
    log = tmp_path_factory.mktemp("admission") / "muster.log"
    with RealCluster(kube, native=False) as cluster, up(log) as kubeconfig:
        yield {"kube-apiserver": Kubectl(kube, cluster.kubeconfig), "muster up": Kubectl(kube, kubeconfig)}


def a_policy(**spec: Any) -> list[Obj]:
    binding = {"policyName": "probe", "validationActions": ["Deny"], **spec.pop("binding", {})}
    match = {"resourceRules": [{**_RULE, "resourceNames": ["probe"]}]}
    return [
        {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "probe"},
            "spec": {"matchConstraints": match, **spec},
        },
        {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "probe"},
            "spec": binding,
        },
    ]


def a_mutation(*mutations: Obj) -> list[Obj]:
    match = {"resourceRules": [{**_RULE, "resourceNames": ["probe"]}]}
    spec = {"matchConstraints": match, "mutations": list(mutations), "reinvocationPolicy": "Never"}
    head = {"apiVersion": _API, "metadata": {"name": "probe"}}
    return [
        head | {"kind": "MutatingAdmissionPolicy", "spec": spec},
        head | {"kind": "MutatingAdmissionPolicyBinding", "spec": {"policyName": "probe"}},
    ]


def a_webhook(**fields: Any) -> list[Obj]:
    hook = {
        "name": "probe.example.com",
        "clientConfig": {"service": {"namespace": "default", "name": "absent"}},
        "rules": [_RULE],
        "matchConditions": [{"name": "probe", "expression": "object.metadata.name == 'probe'"}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }
    meta = {"name": "probe"}
    return [
        {"apiVersion": _API, "kind": "ValidatingWebhookConfiguration", "metadata": meta, "webhooks": [hook]},
    ]


def outcome(kubectl: Kubectl, configuration: list[Obj], data: dict[str, str]) -> str:
    """What a server says and stores when the probe is created under a configuration, once that is in force."""
    try:
        kubectl.create(*configuration)
        return eventually(lambda: _created(kubectl, data), _PATIENCE)
    finally:
        for obj in reversed(configuration):
            kubectl("delete", "--ignore-not-found", obj["kind"], "probe")
        eventually(lambda: not _created(kubectl, data), _PATIENCE)


def _created(kubectl: Kubectl, data: dict[str, str]) -> str:
    """Empty where the probe was created as it was sent."""
    meta = {"name": "probe", "namespace": "default"}
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    try:
        shown = kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(probe))
    except AssertionError as refused:
        return str(refused)
    made = json.loads(shown)
    changed = {"data": made["data"], "labels": made["metadata"].get("labels")}
    return "" if changed == {"data": data, "labels": None} else json.dumps(changed, sort_keys=True)


_CASES = {
    "default message": a_policy(validations=[{"expression": "object.data.size() < 2"}]),
    "own message and reason": a_policy(validations=[{"expression": "false", "message": "no", "reason": "Forbidden"}]),
    "message expression": a_policy(
        validations=[{"expression": "false", "messageExpression": "'got ' + string(object.data.size())"}]
    ),
    "run-time error": a_policy(validations=[{"expression": "object.nope == 1"}]),
    "variables": a_policy(
        variables=[{"name": "count", "expression": "object.data.size()"}],
        validations=[{"expression": "variables.count == 1", "messageExpression": "'got ' + string(variables.count)"}],
    ),
    "variable without a value": a_policy(
        variables=[{"name": "count", "expression": "object.nope"}],
        validations=[{"expression": "variables.count == 1"}],
    ),
    "missing parameters": a_policy(
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        validations=[{"expression": "params.data.a == 'b'"}],
        binding={"paramRef": {"name": "none", "namespace": "default", "parameterNotFoundAction": "Deny"}},
    ),
    "rights": a_policy(
        validations=[
            {
                "expression": "!authorizer.group('apps').resource('deployments').namespace('default').check('create')"
                ".allowed()"
            }
        ]
    ),
    "apply configuration": a_mutation(
        {
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {
                "expression": "Object{metadata: Object.metadata{labels: {'a': 'b'}}, "
                "data: {'added': request.operation}}"
            },
        }
    ),
    "JSON patch": a_mutation(
        {
            "patchType": "JSONPatch",
            "jsonPatch": {
                "expression": "[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('x.y'), value: 'z'}, "
                "JSONPatch{op: 'remove', path: '/data/a'}]"
            },
        }
    ),
    "JSON patch with a test that fails, and another": a_mutation(
        {
            "patchType": "JSONPatch",
            "jsonPatch": {
                "expression": "[JSONPatch{op: 'test', path: '/data/a', value: 'other'}, "
                "JSONPatch{op: 'remove', path: '/data/a'}]"
            },
        },
        {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/data/b'}]"}},
    ),
    "expression of a mutation without a value": a_mutation(
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{data: {'a': object.nope}}"}}
    ),
    "webhook without a service": a_webhook(),
    "webhook with a broken condition": a_webhook(
        matchConditions=[
            {"name": "probe", "expression": "object.metadata.name == 'probe'"},
            {"name": "broken", "expression": "object.nope == 1"},
        ]
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_what_is_said_and_stored_is_what_kubernetes_says_and_stores(clusters: dict[str, Kubectl], case: str) -> None:
    found = {name: outcome(kubectl, _CASES[case], {"a": "1", "b": "2"}) for name, kubectl in clusters.items()}
    assert found["muster up"] == found["kube-apiserver"]


def test_tables_are_those_of_kubernetes(clusters: dict[str, Kubectl]) -> None:
    shown: dict[str, list[str]] = {}
    configuration = [*_CASES["variables"], *_CASES["JSON patch"], *a_webhook()]
    for name, kubectl in clusters.items():
        kubectl.create(*configuration)
        tables = [kubectl("get", obj["kind"], "probe").rstrip().rpartition(" ")[0] for obj in configuration]
        shown[name] = [" ".join(table.split()) for table in tables]
        for obj in configuration:
            kubectl("delete", obj["kind"], "probe")
    assert shown["muster up"] == shown["kube-apiserver"]
