"""Approved requests of clients are signed by the server's authority; all others wait."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from muster.api.errors import ApiError
from muster.api.resources import CERTIFICATE_SIGNING_REQUESTS
from muster.certificates import Authority
from muster.client.clock import timestamp
from muster.controllers import ControllerManager
from tests.controllers.conftest import World

CLIENT = "kubernetes.io/kube-apiserver-client"


def a_request(user: str = "jane", group: str = "dev") -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group), x509.NameAttribute(NameOID.COMMON_NAME, user)]
    built = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    return base64.b64encode(built.public_bytes(serialization.Encoding.PEM)).decode()


async def ask(world: World, **spec: Any) -> Any:
    body = {"request": a_request(), "signerName": CLIENT, "usages": ["client auth"], **spec}
    return await world.create(CERTIFICATE_SIGNING_REQUESTS, "jane", None, spec=body)


async def approve(world: World, kind: str = "Approved") -> None:
    found = await world.get(CERTIFICATE_SIGNING_REQUESTS, "jane")
    found.setdefault("status", {})["conditions"] = [{"type": kind, "status": "True", "reason": "R", "message": "m"}]
    await world.client.update(CERTIFICATE_SIGNING_REQUESTS, found, subresource="approval")
    await world.settle()


async def start(world: World) -> Authority:
    authority = Authority.create()
    manager = ControllerManager(
        world.client, clock=world.clock, which=["certificatesigningrequest-signing-controller"], authority=authority
    )
    world.manager = manager
    world.follow(manager.run())
    await manager.ready.wait()
    return authority


async def certificate(world: World) -> x509.Certificate | None:
    text = ((await world.get(CERTIFICATE_SIGNING_REQUESTS, "jane")).get("status") or {}).get("certificate")
    return x509.load_pem_x509_certificate(base64.b64decode(text)) if text else None


async def test_an_approved_request_is_signed_for_its_subject(world: World):
    authority = await start(world)
    await ask(world, expirationSeconds=3600)
    await world.settle()
    assert await certificate(world) is None

    await approve(world)
    signed = await certificate(world)
    assert signed is not None
    (condition,) = (await world.get(CERTIFICATE_SIGNING_REQUESTS, "jane"))["status"]["conditions"]
    assert condition["lastTransitionTime"] == condition["lastUpdateTime"] == timestamp(world.clock.now())
    signed.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.pem))
    assert [each.value for each in signed.subject] == ["dev", "jane"]
    assert int(signed.not_valid_after_utc.timestamp() - world.clock.now()) == 3600


async def test_who_asked_is_written_by_the_server(world: World):
    made = await ask(world, username="somebody-else", groups=["system:masters"])
    assert made["spec"]["username"] == "muster:admin"
    assert made["spec"]["groups"] == ["system:masters", "system:authenticated"]


async def test_denied_requests_and_other_signers_are_not_signed(world: World):
    await start(world)
    await ask(world)
    await approve(world, "Denied")
    assert await certificate(world) is None
    await world.client.delete(CERTIFICATE_SIGNING_REQUESTS, "jane")
    await ask(world, signerName="example.com/mine")
    await approve(world)
    assert await certificate(world) is None


async def test_usages_that_no_client_needs_fail(world: World):
    await start(world)
    await ask(world, usages=["client auth", "server auth"])
    await approve(world)
    status = (await world.get(CERTIFICATE_SIGNING_REQUESTS, "jane"))["status"]
    assert [each["type"] for each in status["conditions"]] == ["Approved", "Failed"]


async def test_what_is_no_request_is_refused(world: World):
    for spec, message in (
        ({"request": base64.b64encode(b"nothing").decode()}, "PEM block type must be CERTIFICATE REQUEST"),
        ({"usages": []}, "spec.usages: Required value"),
        ({"usages": ["fly"]}, "spec.usages[0]: Unsupported value"),
        ({"signerName": "nobody"}, "must be a fully qualified domain and path"),
        ({"expirationSeconds": 5}, "may not specify a duration less than 600 seconds"),
        ({"request": a_request(group="system:masters")}, "with system:masters group is not allowed"),
    ):
        with pytest.raises(ApiError) as refused:
            await ask(world, **spec)
        assert message in str(refused.value)


async def test_only_approval_approves_and_no_decision_is_taken_back(world: World):
    await ask(world)
    patch = {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}
    with pytest.raises(ApiError) as refused:
        await world.client.patch(CERTIFICATE_SIGNING_REQUESTS, "jane", patch, subresource="status")
    assert 'updates may not add a condition of type "Approved"' in str(refused.value)
    await approve(world)
    with pytest.raises(ApiError) as refused:
        await approve(world, "Denied")
    assert 'updates may not remove a condition of type "Approved"' in str(refused.value)
