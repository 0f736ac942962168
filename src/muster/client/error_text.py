"""A failed request as one line of text; a missing permission is named by verb, resource and API group."""

from __future__ import annotations

from muster.api.errors import ApiError


def error_text(error: BaseException, verbs: str, resource: str, group: str = "") -> str:
    """What went wrong with a request, in one line."""
    text = str(error) or type(error).__name__
    if isinstance(error, ApiError) and error.code in (401, 403):
        where = f" in API group {group}" if group else ""
        return f"missing permission: {verbs} on {resource}{where} ({text})"
    return text
