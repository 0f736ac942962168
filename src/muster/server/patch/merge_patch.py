"""JSON merge patch (RFC 7386): objects merge, null deletes, anything else replaces."""

from __future__ import annotations

from typing import Any

from muster.api.errors import bad_request
from muster.server.schema import Message

Obj = dict[str, Any]


def apply(current: Obj, patch: Any, message: Message | None = None) -> Obj:
    """The object with the patch merged in. 400 when the patch is not an object."""
    if type(patch) is not dict:
        raise bad_request("error decoding patch: a merge patch must be an object")
    try:
        return _merge(current, patch)
    except RecursionError:
        raise bad_request("error decoding patch: nested too deeply") from None


def _merge(target: Any, patch: Obj) -> Obj:
    result: Obj = dict(target) if type(target) is dict else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif type(value) is dict:
            result[key] = _merge(result.get(key), value)
        else:
            result[key] = value
    return result
