"""Lists: consistent, paged, at the revision that was asked for.

The answer is put together from stored bytes. A continue token pins the revision of its first page; when that is no
longer kept the answer is 410 with a token for the inconsistent rest, as Kubernetes gives it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from muster.api.errors import FORBIDDEN, NOT_SUPPORTED, ApiError, FieldError, bad_request, gone, invalid
from muster.server import codec
from muster.server.backend import Backend
from muster.server.call import Call
from muster.server.request import Request
from muster.server.selectors import Match, selector
from muster.server.store.base import Store
from muster.server.store.records import CompactedError, Key, Record

FUTURE_WAIT_SECONDS = 3.0
MAX_LIMIT = 2**63 - 1
EXACT = "Exact"
NOT_OLDER = "NotOlderThan"


class Token(msgspec.Struct):
    """Where a list goes on. `rv` 0 means: at whatever is newest (the inconsistent rest)."""

    rv: int
    start: tuple[str, str]
    v: str = "meta.k8s.io/v1"


class Page(NamedTuple):
    """One answer to a list."""

    records: list[Record]
    revision: int
    token: str
    remaining: int | None


class ExpiredTokenError(ApiError):
    """410 that says how to go on all the same."""

    def __init__(self, token: str) -> None:
        super().__init__(
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result. You can start a new list "
            "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
            "the results. Continuing with the provided token results in an inconsistent list - objects that were "
            "created, modified, or deleted between the time the first chunk was returned and now may show up in the "
            "list.",
        )
        self._token = token

    def status(self) -> dict[str, Any]:
        body = super().status()
        body["metadata"] = {"continue": self._token}
        return body


def parse_revision(request: Request) -> int | None:
    """The resourceVersion parameter: None when unset."""
    text = request.arg("resourceVersion")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        wrong = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f"resourceVersion: {wrong}")
    return int(text)


def check_options(request: Request) -> None:
    """The allowed combinations of resourceVersion, resourceVersionMatch, continue and sendInitialEvents."""
    match, version = request.arg("resourceVersionMatch"), request.arg("resourceVersion")
    watching, initial = request.flag("watch"), "sendInitialEvents" in request.query
    errors: list[FieldError] = []
    if watching:
        if match and not initial:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            errors.append(FieldError(FORBIDDEN, "resourceVersionMatch", detail=why))
        if initial and match != NOT_OLDER:
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            errors.append(FieldError(FORBIDDEN, "resourceVersionMatch", detail=why))
    else:
        if initial:
            why = "sendInitialEvents is forbidden for list"
            errors.append(FieldError(FORBIDDEN, "sendInitialEvents", detail=why))
        errors += _check_match(match, version, request.arg("continue"))
    if errors:
        raise invalid("meta.k8s.io", "ListOptions", "", errors)


def _check_match(match: str, version: str, token: str) -> list[FieldError]:
    if not match:
        return []
    errors: list[FieldError] = []
    if not version:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        errors.append(FieldError(FORBIDDEN, "resourceVersionMatch", detail=why))
    if token:
        why = "resourceVersionMatch is forbidden when continue is provided"
        errors.append(FieldError(FORBIDDEN, "resourceVersionMatch", detail=why))
    if match not in (EXACT, NOT_OLDER):
        why = 'supported values: "Exact", "NotOlderThan", ""'
        errors.append(FieldError(NOT_SUPPORTED, "resourceVersionMatch", match, why))
    if match == EXACT and version == "0":
        why = 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        errors.append(FieldError(FORBIDDEN, "resourceVersionMatch", detail=why))
    return errors


async def reach(store: Store, revision: int) -> None:
    """Wait, not for long, until the store is at least at a revision; 504 when it does not get there."""
    if revision <= store.revision:
        return
    deadline = asyncio.get_running_loop().time() + FUTURE_WAIT_SECONDS
    while store.revision < revision:
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            raise too_large(revision, store.revision)
        await asyncio.sleep(min(left, 0.05))


def too_large(asked: int, current: int) -> ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": [cause]}, retry_after=1)


class ObjectLister:
    """Carries out GET of a collection."""

    def __init__(self, backend: Backend) -> None:
        self._store = backend.store

    async def page(self, call: Call) -> Page:
        request = call.request
        check_options(request)
        limit = _limit(request)
        token = _decode_token(request.arg("continue"))
        revision = await self._revision(request, limit, token)
        if request.arg("fieldSelector"):
            await codec.prepare(call.kind, self._store.table(call.kind.table).scan(call.namespace))
        matches = selector(call.kind, request, call.name)
        after = token.start if token is not None else None
        try:
            records = self._records(call, revision, after)
        except CompactedError as compacted:
            if token is not None:
                raise ExpiredTokenError(_encode_token(0, token.start)) from None
            raise gone(f"The resourceVersion for the provided list is too old. ({compacted.asked})") from None
        pinned = revision or self._store.revision
        page = self._cut(call, records, matches, limit, pinned)
        await codec.prepare(call.kind, page.records)
        return page

    async def _revision(self, request: Request, limit: int, token: Token | None) -> int:
        """The revision to list at; 0 is the newest."""
        asked = parse_revision(request)
        if token is not None:
            if asked:
                raise bad_request("specifying resource version is not allowed when using continue")
            if not 0 <= token.rv <= self._store.revision:
                raise _foreign_token()
            return token.rv
        if not asked:
            return 0
        match = request.arg("resourceVersionMatch")
        await reach(self._store, asked)
        exact = match == EXACT or (not match and limit > 0)
        return asked if exact else 0

    def _records(self, call: Call, revision: int, after: Key | None) -> Iterator[Record]:
        table = self._store.table(call.kind.table)
        if revision and revision != self._store.revision:
            return table.scan_at(revision, call.namespace, after)
        return table.scan(call.namespace, after)

    def _cut(self, call: Call, records: Iterator[Record], matches: Match | None, limit: int, revision: int) -> Page:
        selected = records if matches is None else filter(matches, records)
        if not limit:
            return Page(list(selected), revision, "", None)
        found = list(islice(selected, limit))
        more = next(selected, None)
        if more is None:
            return Page(found, revision, "", None)
        remaining = 1 + sum(1 for _ in records) if matches is None else None
        return Page(found, revision, _encode_token(revision, found[-1].key), remaining)


def body(call: Call, page: Page) -> bytes:
    """The list as JSON, from the items' own bytes."""
    view = call.view
    items: Iterable[bytes] = [record.body for record in page.records] if view.direct else map(view.item, page.records)
    meta: dict[str, Any] = {"resourceVersion": str(page.revision)}
    if page.token:
        meta["continue"] = page.token
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
    head = f'{{"kind":"{call.kind.listed_as}","apiVersion":"{view.api_version}","metadata":'.encode()
    return b"".join((head, msgspec.json.encode(meta), b',"items":[', b",".join(items), b"]}"))


def _limit(request: Request) -> int:
    text = request.arg("limit")
    if not text:
        return 0
    number = text.removeprefix("-")
    if not (number.isascii() and number.isdigit()) or len(number) > 19:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    limit = int(text)
    if limit > MAX_LIMIT:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return max(limit, 0)


def _encode_token(revision: int, start: Key) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(Token(revision, start))).decode().rstrip("=")


def _decode_token(text: str) -> Token | None:
    if not text:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise _foreign_token() from None


def _foreign_token() -> ApiError:
    return bad_request("continue key is not valid: it was not given by this server")
