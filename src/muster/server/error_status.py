"""Turns an error into the Status that a client gets: as a response, and as the last event of a watch.

Everything in the server that answers with a failure does it through these functions.
"""

from __future__ import annotations

import msgspec

from muster.api.errors import ApiError, internal
from muster.server.request import Response
from muster.server.store.records import StoreFailedError


def error_response(error: Exception) -> Response:
    """The response that carries an error. An unforeseen error is a 500 without details."""
    known = _api_error(error)
    headers: dict[str, str] = {}
    if known.retry_after is not None:
        headers["Retry-After"] = str(known.retry_after)
    if known.code == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="kubernetes"'
    return Response(known.code, msgspec.json.encode(known.status()), headers=headers)


def error_event(error: Exception) -> bytes:
    """The watch event that carries an error, as one frame."""
    return msgspec.json.encode({"type": "ERROR", "object": _api_error(error).status()}) + b"\n"


def _api_error(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, StoreFailedError):
        return internal(f"the store takes no more writes: {error}")
    return internal("Internal error occurred: see the server's log")
