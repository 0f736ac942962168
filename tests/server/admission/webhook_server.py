"""A webhook that runs over real TLS, and remembers what it was asked."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from muster.certificates import Authority

Obj = dict[str, Any]
Respond = Callable[[Obj], Obj | web.Response]  # the request of a review -> the fields of its response

AUTHORITY = Authority.create("webhook-ca")
CA_BUNDLE = base64.b64encode(AUTHORITY.pem).decode()


def allow(request: Obj) -> Obj:
    return {"allowed": True}


def patching(*operations: Obj) -> Respond:
    """Allows, with a JSON patch."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


class WebhookServer:
    """Answers at every path with what `respond` gives."""

    def __init__(self, *names: str) -> None:
        self.respond: Respond = allow
        self.asked: list[Obj] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._names = names or ("localhost",)
        self.port = 0

    async def __aenter__(self) -> WebhookServer:
        self._runner = web.ServerRunner(web.Server(self._handle))
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls())
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def _tls(self) -> ssl.SSLContext:
        pair = AUTHORITY.for_server(self._names)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        with tempfile.TemporaryDirectory() as folder:
            cert, key = Path(folder) / "cert", Path(folder) / "key"
            cert.write_bytes(pair.cert)
            key.write_bytes(pair.key)
            context.load_cert_chain(cert, key)
        return context

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        review = await request.json()
        self.asked.append(review["request"])
        self.headers.append(dict(request.headers))
        self.paths.append(request.path_qs)
        answer = self.respond(review["request"])
        if isinstance(answer, web.Response):
            return answer
        response = {"uid": review["request"]["uid"], **answer}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})

    @property
    def client_config(self) -> Obj:
        return {"url": f"https://localhost:{self.port}/hook", "caBundle": CA_BUNDLE}


def a_hook(client_config: Obj, name: str = "hook.example.com", resources: str = "configmaps", **fields: Any) -> Obj:
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": [resources]}
    return {
        "name": name,
        "clientConfig": client_config,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


def a_configuration(kind: str, *hooks: Obj, name: str = "test") -> Obj:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(hooks),
    }
