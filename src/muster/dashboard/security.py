"""What every request must pass and every answer carries.

The Host must be one that this dashboard is reached by, so that a name which an attacker points at the loopback address
finds nobody here; an Origin, where a browser sends one, must be our own. Answers forbid everything that the pages do
not need: foreign scripts, frames, inline script, being framed.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def guard(hosts: Iterable[str], *, secure: bool) -> Middleware:
    """The middleware for a dashboard that is reached by these host names, on any port."""
    allowed = frozenset(host.lower() for host in (*LOOPBACK, *hosts))
    scheme = "https" if secure else "http"

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if _name(request.headers.get("Host", "")) not in allowed:
            return _refused(421, "this dashboard is not reached by that name")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"{scheme}://{request.headers['Host']}":
            return _refused(403, "the request comes from another site")
        if request.method not in ("GET", "HEAD") and request.headers.get("Sec-Fetch-Site", "same-origin") not in (
            "same-origin",
            "none",
        ):
            return _refused(403, "the request comes from another site")
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return middleware


def _name(host: str) -> str:
    """The host without its port, in lower case."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name


def _refused(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers=HEADERS)
