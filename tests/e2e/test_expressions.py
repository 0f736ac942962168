"""The table of expressions that Muster is tested with has the answers of a real kube-apiserver."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.kube.cluster import RealCluster

from tests.cel.expressions import FAILING, REFUSED, TRUE
from tests.e2e.processes import Kubectl, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe", "namespace": "default"}}


@pytest.fixture(scope="module")
def kubectl(kube: Path) -> Iterator[Kubectl]:
    with RealCluster(kube, native=False) as cluster:
        yield Kubectl(kube, cluster.kubeconfig)


def a_policy(name: str, *validations: dict[str, str]) -> list[dict[str, Any]]:
    """A policy for the probe alone, and its binding."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule | {"resourceNames": ["probe"]}]},
        "validations": list(validations),
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    return [
        head | {"kind": "ValidatingAdmissionPolicy", "spec": spec},
        head | {"kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    ]


def answer(kubectl: Kubectl, *validations: dict[str, str]) -> str:
    """What the server says when it creates the probe under a policy with these validations."""
    try:
        kubectl.create(*a_policy("probe", *validations))
        return eventually(lambda: _refusal(kubectl))
    finally:
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            kubectl("delete", "--ignore-not-found", kind, "probe")
        eventually(lambda: not _refusal(kubectl))


def _refusal(kubectl: Kubectl) -> str:
    try:
        kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(_CONFIG_MAP))
    except AssertionError as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("start", range(0, len(TRUE), 20))
def test_what_the_table_calls_true_is_true(kubectl: Kubectl, start: int) -> None:
    shown = ", ".join(f"({text}) ? 'T' : 'F'" for text in TRUE[start : start + 20])
    said = answer(kubectl, {"expression": "false", "messageExpression": f"['answers:', {shown}].join('')"})
    answers = said.partition("answers:")[2].strip()
    wrong = [text for text, value in zip(TRUE[start:], answers, strict=False) if value != "T"]
    assert len(answers) == len(TRUE[start : start + 20]), said
    assert not wrong


@pytest.mark.parametrize(("text", "complaint"), FAILING.items())
def test_what_the_table_says_of_failures_is_said(kubectl: Kubectl, text: str, complaint: str) -> None:
    assert complaint in answer(kubectl, {"expression": text})


@pytest.mark.parametrize(("text", "complaint"), REFUSED.items())
def test_what_the_table_calls_wrong_is_refused(kubectl: Kubectl, text: str, complaint: str) -> None:
    policy, _ = a_policy("wrong", {"expression": text})
    said = kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(policy), refused=True)
    assert complaint in said
