"""A webhook over TLS that lets everything pass, for the figures of other pages.

`python -m bench.admission` serves it and prints the `clientConfig` that leads there.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import web

from muster.api.resources import Resource
from muster.certificates import Authority

GROUP = "admissionregistration.k8s.io"
WEBHOOKS = Resource(GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False)
POLICIES = Resource(GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False)
BINDINGS = Resource(GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False)
_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def admission_objects(client_config: dict[str, Any]) -> list[tuple[Resource, dict[str, Any]]]:
    """One webhook and one policy with its binding, about new pods."""
    webhook = {
        "name": "pods.bench.example.com",
        "clientConfig": client_config,
        "rules": [_RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    policy = {
        "matchConstraints": {"resourceRules": [_RULE]},
        "validations": [{"expression": "object.spec.containers.all(c, c.image != '' && !c.image.endsWith(':latest'))"}],
    }
    name = {"metadata": {"name": "bench"}}
    return [
        (WEBHOOKS, {**name, "webhooks": [webhook]}),
        (POLICIES, {**name, "spec": policy}),
        (BINDINGS, {**name, "spec": {"policyName": "bench", "validationActions": ["Deny"]}}),
    ]


async def _allow(request: web.BaseRequest) -> web.StreamResponse:
    review = json.loads(await request.read())
    answer = {"uid": review["request"]["uid"], "allowed": True}
    body = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": answer}
    return web.json_response(body)


async def serve() -> None:
    authority = Authority.create("bench-ca")
    pair = authority.for_server(("localhost",))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pair.pem"
        file.write_bytes(pair.cert + pair.key)
        context.load_cert_chain(file)
    runner = web.ServerRunner(web.Server(_allow, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    where = {
        "url": f"https://localhost:{runner.addresses[0][1]}/",
        "caBundle": base64.b64encode(authority.pem).decode(),
    }
    print(json.dumps(where), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve())
