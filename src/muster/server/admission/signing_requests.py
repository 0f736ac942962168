"""CertificateSigningRequests: who asked is written by the server, and some subjects may not be asked for."""

from __future__ import annotations

import base64
import binascii

from muster.api.errors import forbidden
from muster.server.metadata import timestamp
from muster.server.resources.kind import Obj, Write

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_MASTERS = "system:masters"


async def admit_signing_request(write: Write, new: Obj, old: Obj | None) -> None:
    if write.operation == "UPDATE" and old is not None:
        _date_conditions(new, old, timestamp(write.now))
    if write.operation != "CREATE" or write.subresource:
        return
    spec: Obj = new.setdefault("spec", {})
    identity = {
        "username": write.user.name,
        "uid": write.user.uid,
        "groups": list(write.user.groups),
        "extra": {key: list(values) for key, values in write.user.extra.items()},
    }
    for key in identity:
        spec.pop(key, None)
    spec |= {key: value for key, value in identity.items() if value}
    if spec.get("signerName") == CLIENT_SIGNER and _MASTERS in _organizations(spec.get("request") or ""):
        why = f"use of {CLIENT_SIGNER} signer with {_MASTERS} group is not allowed"
        raise forbidden(write.kind.group, write.kind.plural, write.name, why)


def _date_conditions(new: Obj, old: Obj, now: str) -> None:
    """Conditions that come without dates get them."""
    before = {each.get("type"): each for each in (old.get("status") or {}).get("conditions") or ()}
    for each in (new.get("status") or {}).get("conditions") or ():
        known: Obj = before.get(each.get("type")) or {}
        same = known.get("status") == each.get("status")
        each["lastUpdateTime"] = each.get("lastUpdateTime") or now
        each["lastTransitionTime"] = each.get("lastTransitionTime") or (
            known.get("lastTransitionTime") if same else now
        )


def _organizations(encoded: str) -> list[str]:
    """The groups that a request asks for; none where it cannot be read, which validation says."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        request = x509.load_pem_x509_csr(base64.b64decode(encoded))
    except (ValueError, binascii.Error):
        return []
    return [str(each.value) for each in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
