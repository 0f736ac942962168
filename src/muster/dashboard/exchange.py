"""Requests read and answers written: JSON, failures in Kubernetes' form, the fields of a path or a query."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from muster.api import quantity
from muster.views.failures import ViewFailure
from muster.views.topology import GPU

GROUP_KINDS = ("PodGroup", "CompositePodGroup")
KINDS = (*GROUP_KINDS, "Pod")


def json_reply(data: Any, status: int = 200) -> web.Response:
    headers = {"Cache-Control": "no-store"}
    return web.Response(body=msgspec.json.encode(data), status=status, content_type="application/json", headers=headers)


def status_reply(code: int, reason: str, message: str) -> web.Response:
    """A failure in Kubernetes' form."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return json_reply({**status, "reason": reason, "message": message, "code": code}, code)


def forbidden(what: str, namespace: str = "") -> web.Response:
    where = f' in namespace "{namespace}"' if namespace else ""
    return status_reply(403, "Forbidden", f"you may not list {what}{where}")


def number(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise ViewFailure(f"{text[:20]!r} is no number")
    return int(text)


def object_of(request: web.Request, kinds: tuple[str, ...]) -> tuple[str, str, str]:
    kind, namespace, name = (request.match_info[part] for part in ("kind", "namespace", "name"))
    if kind not in kinds:
        raise ViewFailure(f"kind: {kind[:60]!r} is none of {', '.join(kinds)}")
    return kind, namespace, name


def asked_pod(request: web.Request) -> dict[str, str]:
    """The requests of the pod whose seats are counted, as the query has them."""
    asked: dict[str, str] = {}
    for field, resource in (("cpu", "cpu"), ("memory", "memory"), ("gpu", GPU)):
        amount = request.query.get(field, "").strip()
        if amount:
            try:
                if quantity.milli(amount) <= 0:
                    raise ValueError(amount)
            except ValueError:
                raise ViewFailure(f"{field}: {amount[:40]!r} is no amount; for instance 4, 500m, 64Gi") from None
            asked[resource] = amount
    return asked


async def body_of(request: web.Request, most: int) -> bytes | None:
    """The body of a request; None if it is larger than allowed."""
    if (request.content_length or 0) > most:
        return None
    data = bytearray()
    async for part in request.content.iter_chunked(64 << 10):
        data += part
        if len(data) > most:
            return None
    return bytes(data)
