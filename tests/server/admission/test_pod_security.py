"""The levels of pod security that a namespace's labels ask for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.core.core_api import Answer, Api

from muster.server.admission.pod_security_checks import violations

PLAIN = (
    'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
    'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
    'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
    'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
    '"Localhost")'
)
TIGHT = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


async def labelled(**modes: str) -> Api:
    api = await Api().start()
    labels = {f"pod-security.kubernetes.io/{mode}": level for mode, level in modes.items()}
    made = await api.post("/api/v1/namespaces", {"metadata": {"name": "n", "labels": labels}})
    assert made.code == 201, made.text
    return api


def a_spec(context: Any = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", **({"securityContext": context} if context else {})}
    return {"containers": [container], **spec}


async def create_pod(api: Api, spec: Any) -> Answer:
    return await api.post("/api/v1/namespaces/n/pods", {"metadata": {"name": "p"}, "spec": spec})


async def test_an_enforced_level_refuses_and_says_all_that_is_wrong():
    api = await labelled(enforce="restricted")
    refused = await create_pod(api, a_spec())
    assert refused.code == 403
    assert refused.body["message"] == f'pods "p" is forbidden: violates PodSecurity "restricted:latest": {PLAIN}'
    assert (await create_pod(api, a_spec(TIGHT))).code == 201


async def test_a_warned_level_warns_also_of_templates():
    api = await labelled(warn="restricted")
    made = await create_pod(api, a_spec())
    assert made.code == 201
    assert list(made.warnings) == [f'would violate PodSecurity "restricted:latest": {PLAIN}']
    template = {"metadata": {"labels": {"a": "b"}}, "spec": a_spec()}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    deployed = await api.post("/apis/apps/v1/namespaces/n/deployments", body)
    assert list(deployed.warnings) == [f'would violate PodSecurity "restricted:latest": {PLAIN}']


async def test_a_level_that_does_not_exist_is_refused():
    api = await Api().start()
    labels = {"pod-security.kubernetes.io/enforce": "strict"}
    refused = await api.post("/api/v1/namespaces", {"metadata": {"name": "n", "labels": labels}})
    assert refused.code == 422
    assert "must be one of privileged, baseline, restricted" in refused.body["message"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (a_spec(), ""),
        (a_spec(hostNetwork=True), "host namespaces (hostNetwork=true)"),
        (
            a_spec({"privileged": True}),
            'privileged (container "c" must not set securityContext.privileged=true)',
        ),
        (a_spec(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), 'hostPath volumes (volume "v")'),
        (
            a_spec({"capabilities": {"add": ["NET_ADMIN"]}}),
            'non-default capabilities (container "c" must not include "NET_ADMIN" in securityContext.capabilities.add)',
        ),
        (
            {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
            'hostPort (container "c" uses hostPort 80)',
        ),
        (
            a_spec(securityContext={"seccompProfile": {"type": "Unconfined"}}),
            'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
        (a_spec(securityContext={"sysctls": [{"name": "kernel.msgmax"}]}), "forbidden sysctls (kernel.msgmax)"),
    ],
)
def test_baseline(spec: Any, expected: str):
    assert ", ".join(violations("baseline", {}, spec)) == expected


def test_restricted_allows_few_kinds_of_volumes_and_no_root():
    spec = a_spec({**TIGHT, "runAsUser": 0}, volumes=[{"name": "v", "nfs": {}}])
    assert violations("restricted", {}, spec) == [
        'restricted volume types (volume "v" uses restricted volume type "nfs")',
        'runAsUser=0 (container "c" must not set runAsUser=0)',
    ]
