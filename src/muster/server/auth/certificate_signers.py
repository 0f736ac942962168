"""Approving and signing certificate requests needs a right on their signer, beside that to write the subresource."""

from __future__ import annotations

from muster.api.errors import forbidden
from muster.server.auth.rbac import Authorizer
from muster.server.auth.rules import Action
from muster.server.resources.kind import Obj, Write

GROUP = "certificates.k8s.io"
_DECISIONS = ("Approved", "Denied")


class CertificateSigners:
    """Admission for the subresources of CertificateSigningRequests."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def admit(self, write: Write, new: Obj, old: Obj | None) -> None:
        if old is None or write.operation != "UPDATE":
            return
        after, before = new.get("status") or {}, old.get("status") or {}
        if write.subresource == "approval" and _of(after, _DECISIONS) != _of(before, _DECISIONS):
            self._check(write, new, "approve")
        elif write.subresource == "status":
            issued = after.get("certificate") != before.get("certificate")
            if issued or _of(after, ("Failed",)) != _of(before, ("Failed",)):
                self._check(write, new, "sign")

    def _check(self, write: Write, request: Obj, verb: str) -> None:
        signer: str = (request.get("spec") or {}).get("signerName") or ""
        domain = signer.partition("/")[0]
        for name in (signer, f"{domain}/*"):
            if self._authorizer.allows(write.user, Action(verb, GROUP, "signers", "", "", name)):
                return
        why = f'user not permitted to {verb} requests with signerName "{signer}"'
        raise forbidden(GROUP, write.kind.plural, write.name, why)


def _of(status: Obj, kinds: tuple[str, ...]) -> list[Obj]:
    return [each for each in status.get("conditions") or () if each.get("type") in kinds]
