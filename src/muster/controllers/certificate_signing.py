"""Signs approved certificate requests of clients of the API server, with the authority that the server trusts.

Requests for other signers wait for the programs that serve those.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from muster.api.resources import CERTIFICATE_SIGNING_REQUESTS
from muster.client.clock import timestamp
from muster.controllers.controller import Controller
from muster.controllers.objects import UnstructuredObject
from muster.controllers.status import JSON, condition, write_status

SIGNER = "kubernetes.io/kube-apiserver-client"
_YEAR = 365 * 24 * 3600.0
_LEAST = 600.0
_USAGES = frozenset(("digital signature", "key encipherment", "client auth"))


class CertificateSigning(Controller):
    name = "certificatesigningrequest-signing-controller"

    def setup(self) -> None:
        self._requests = self.watch_keys(CERTIFICATE_SIGNING_REQUESTS)

    async def reconcile(self, key: tuple[str, str]) -> float | None:
        found: UnstructuredObject | None = self._requests.get(*key)
        authority = self.context.authority
        if found is None or authority is None or found.spec.get("signerName") != SIGNER:
            return None
        conditions: list[JSON] = found.status.get("conditions") or []
        decided = condition(conditions, "Approved") is not None and condition(conditions, "Denied") is None
        if not decided or found.status.get("certificate") or condition(conditions, "Failed") is not None:
            return None
        usages: set[str] = set(found.spec.get("usages") or ())
        if "client auth" not in usages or not usages <= _USAGES:
            await self._fail(
                found, conditions, "usages must be client auth, with key encipherment and digital signature"
            )
            return None
        asked = float(found.spec.get("expirationSeconds") or _YEAR)
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        request = base64.b64decode(found.spec.get("request") or "")
        signed = authority.sign_client_request(request, min(max(asked, _LEAST), _YEAR), now)
        status = {**found.status, "certificate": base64.b64encode(signed).decode()}
        await write_status(self.client, CERTIFICATE_SIGNING_REQUESTS, found, status)
        return None

    async def _fail(self, found: UnstructuredObject, conditions: list[JSON], why: str) -> None:
        now = timestamp(self.clock.now())
        failed = {
            "type": "Failed",
            "status": "True",
            "reason": "SignerValidationFailure",
            "message": why,
            "lastUpdateTime": now,
            "lastTransitionTime": now,
        }
        status = {**found.status, "conditions": [*conditions, failed]}
        await write_status(self.client, CERTIFICATE_SIGNING_REQUESTS, found, status)
