"""Decodes JSON bodies and finds the fields that they repeat, which the fast decoder drops silently.

Nearly every body has none, so that case is cheap: the fast decoder reads the body, and only if it may have kept fewer
keys than were written, a slow decoder reads the body again.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from muster.api.errors import bad_request

MAX_DEPTH = 200  # no kind comes near it, and every walk over an object may recurse without fear

_LOOSE_COLON = re.compile(rb'"[ \t\r\n]+:')
_decoder = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


def decode_json(body: bytes) -> tuple[Any, list[str]]:
    """The value of a JSON body and the paths of its repeated fields. Raises ApiError 400 when it is not JSON."""
    try:
        value = _decoder.decode(body)
        if _keys_kept(value, body) == body.count(b'":') and not _LOOSE_COLON.search(body):
            return value, []
        return value, _repeated(body)
    except (msgspec.MsgspecError, ValueError, RecursionError) as wrong:
        raise bad_request(f"couldn't get version/kind; json parse error: {_words(wrong)}") from None


def _words(wrong: Exception) -> str:
    return "exceeded max depth" if isinstance(wrong, RecursionError) else str(wrong)


def _keys_kept(value: Any, body: bytes) -> int:
    """As many as there are keys in the value, and as many more as its texts look like keys."""
    if b"\\" in body or body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        return _keys(value)
    # Written again without a change, every key shows as it did in the body. Several times quicker than a walk.
    return _encode(value).count(b'":')


def _keys(value: Any) -> int:
    """How many object keys a decoded value holds. Goes down level by level, and only so far."""
    count = depth = 0
    level = [value]
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise RecursionError
        below: list[Any] = []
        for each in level:
            if type(each) is dict:
                count += len(each)
                below += [item for item in each.values() if type(item) is dict or type(item) is list]
            elif type(each) is list:
                below += each
        level = below
    return count


class _Object(dict[str, Any]):
    """An object that remembers which of its keys came more than once."""

    __slots__ = ("again",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.again: list[str] = []
        if len(self) != len(pairs):
            seen: set[str] = set()
            self.again = [key for key, _ in pairs if key in seen or seen.add(key)]


def _repeated(body: bytes) -> list[str]:
    found: list[str] = []
    _collect(json.loads(body, object_pairs_hook=_Object), "", found)
    return list(dict.fromkeys(found))


def _collect(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Object):
        prefix = f"{path}." if path else ""
        found += [prefix + key for key in value.again]
        for key, item in value.items():
            _collect(item, prefix + key, found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _collect(item, f"{path}[{index}]", found)
