"""Refusals in words an operator can act on: a missing permission is named by verb and resource."""

from __future__ import annotations

from muster.api.errors import ApiError


def words(error: BaseException, verbs: str, resource: str, group: str = "") -> str:
    """What went wrong with a request, in one line."""
    text = str(error) or type(error).__name__
    if isinstance(error, ApiError) and error.code in (401, 403):
        where = f" in API group {group}" if group else ""
        return f"missing permission: {verbs} on {resource}{where} ({text})"
    return text
