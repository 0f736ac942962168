"""Approving and signing need a right on the signer."""

from __future__ import annotations

from typing import Any

import pytest
from policy_store import a_bootstrapped_store, a_rule, a_user, grant, put

from muster.api.errors import ApiError
from muster.server.auth.certificate_signers import CertificateSigners
from muster.server.auth.rbac import Authorizer
from muster.server.auth.security import Security
from muster.server.auth.tokens import TokenSigner
from muster.server.backend import StoreReader
from muster.server.request import User
from muster.server.resources.kind import Write
from muster.server.served_kinds import build_registry

SIGNER = "kubernetes.io/kube-apiserver-client"
GROUP = "certificates.k8s.io"


async def written(user: User, subresource: str, status: dict[str, Any]) -> None:
    store = await a_bootstrapped_store()
    await put(store, "ClusterRole", "wildcard", rules=[a_rule("sign", "signers", GROUP, "kubernetes.io/*")])
    await grant(store, "system:certificates.k8s.io:kube-apiserver-client-approver", ("User", "approver"))
    await grant(store, "wildcard", ("User", "signer"))
    registry = build_registry()
    kind = registry.kind(GROUP, "certificatesigningrequests")
    assert kind is not None
    write = Write(kind, "UPDATE", "", "r", subresource, user, False, StoreReader(store, registry), 0.0)
    old = {"metadata": {"name": "r"}, "spec": {"signerName": SIGNER}}
    await CertificateSigners(Authorizer(store)).admit(write, {**old, "status": status}, old)


APPROVED = {"conditions": [{"type": "Approved", "status": "True"}]}


async def test_an_approver_of_the_signer_approves_and_does_not_sign():
    await written(a_user("approver"), "approval", APPROVED)
    with pytest.raises(ApiError) as refused:
        await written(a_user("approver"), "status", {"certificate": "x"})
    assert f'user not permitted to sign requests with signerName "{SIGNER}"' in str(refused.value)


async def test_a_right_on_all_signers_of_a_domain_suffices():
    await written(a_user("signer"), "status", {"certificate": "x"})


async def test_nobody_else_approves():
    with pytest.raises(ApiError) as refused:
        await written(a_user("jane"), "approval", APPROVED)
    assert f'user not permitted to approve requests with signerName "{SIGNER}"' in str(refused.value)


async def test_the_check_guards_the_served_kind():
    registry = Security(await a_bootstrapped_store(), TokenSigner.create()).guarded(build_registry())
    kind = registry.kind(GROUP, "certificatesigningrequests")
    assert kind is not None
    assert any("CertificateSigners" in str(step) for step in kind.admit)
