"""Another API server: over real TLS, it lets only the front proxy in, and remembers what it was asked."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from muster.certificates import Authority

Obj = dict[str, Any]
Respond = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

AUTHORITY = Authority.create("extension-ca")
CA_BUNDLE = base64.b64encode(AUTHORITY.pem).decode()
PAGE = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": "wardle.example.com/v1",
    "resources": [
        {
            "name": "flunders",
            "singularName": "flunder",
            "namespaced": True,
            "kind": "Flunder",
            "verbs": ["get", "list", "watch"],
            "shortNames": ["fl"],
        },
        {"name": "flunders/status", "singularName": "", "namespaced": True, "kind": "Flunder", "verbs": ["get"]},
    ],
}


class ExtensionServer:
    """Answers its discovery page, and everything else with what `respond` gives."""

    def __init__(self, front_proxy_ca: bytes, name: str = "wardle.default.svc") -> None:
        self.respond: Respond = _nothing
        self.page: Obj = PAGE
        self.healthy = True
        self.requests: list[tuple[str, str, bytes]] = []  # method, path with query, body
        self.headers: list[Any] = []
        self.peers: list[str] = []
        self._name = name
        self._front_proxy_ca = front_proxy_ca
        self.port = 0

    async def __aenter__(self) -> ExtensionServer:
        self._runner = web.ServerRunner(web.Server(self._handle, handler_cancellation=True), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls())
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def _tls(self) -> ssl.SSLContext:
        pair = AUTHORITY.for_server((self._name,))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self._front_proxy_ca.decode())
        context.verify_mode = ssl.CERT_REQUIRED
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pair.pem"
            file.write_bytes(pair.cert + pair.key)
            context.load_cert_chain(file)
        return context

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        subject = request.transport.get_extra_info("peercert")["subject"]
        names = dict(pair for part in subject for pair in part)
        if (
            request.path == "/apis/wardle.example.com/v1"
            and "system:kube-aggregator" in request.headers["X-Remote-User"]
        ):
            return web.json_response(self.page) if self.healthy else web.Response(status=500)
        self.peers.append(names["commonName"])
        self.headers.append(request.headers.copy())
        self.requests.append((request.method, request.raw_path, await request.read()))
        return await self.respond(request)


async def _nothing(request: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"kind": "FlunderList", "items": []})


def an_api_service(**spec: Any) -> Obj:
    """The APIService of the extension server."""
    service = {"namespace": "default", "name": "wardle"}
    return {
        "metadata": {"name": "v1.wardle.example.com"},
        "spec": {
            "group": "wardle.example.com",
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "service": service,
            "caBundle": CA_BUNDLE,
            **spec,
        },
    }
