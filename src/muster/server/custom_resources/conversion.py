"""Conversion between the versions of a custom kind by a webhook.

Stored objects say their version. Before they are read in another one, `prepare` asks the webhook for all of them in one
call; the answers are kept by revision and content, which never change what they stand for. What the webhook may not
change (name, namespace, uid) is checked; of its metadata only labels and annotations are taken.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from muster.api.errors import ApiError, internal
from muster.server import codec
from muster.server.resources.kind import Obj
from muster.server.store.records import Record

Post = Callable[[Obj, Obj, float], Awaitable[Obj]]  # (clientConfig, body, seconds) -> answer

_SECONDS = 30.0
_MOST_KEPT = 16_384
_decode = msgspec.json.decode


class WebhookConverter:
    """Converts the objects of one definition."""

    def __init__(self, definition: Obj, post: Post) -> None:
        self._group: str = definition["spec"]["group"]
        self._kind: str = definition["spec"]["names"]["kind"]
        webhook: Obj = definition["spec"]["conversion"]["webhook"]
        self._client: Obj = webhook["clientConfig"]
        # The first version of reviews that both sides know.
        self._review = next(each for each in webhook["conversionReviewVersions"] if each in ("v1", "v1beta1"))
        self._post = post
        self._kept: dict[tuple[codec.State, str], Obj] = {}

    def found(self, record: Record, version: str) -> Obj | None:
        """What `prepare` has brought for a stored object, to be changed at will."""
        known = self._kept.get((codec.state_of(record), version))
        return codec.copy(known) if known is not None else None

    async def prepare(self, records: Iterable[Record], version: str) -> None:
        """Convert all stored objects that are in another version and not known yet."""
        wanted = f"{self._group}/{version}"
        missing: list[tuple[codec.State, Obj]] = []
        for record in records:
            state = codec.state_of(record)
            if (state, version) in self._kept:
                continue
            obj: Obj = {"kind": self._kind, **_decode(record.body)}
            if obj["apiVersion"] != wanted:
                missing.append((state, obj))
        if not missing:
            return
        if len(self._kept) + len(missing) > _MOST_KEPT:
            self._kept.clear()
        converted = await self.convert([obj for _, obj in missing], version)
        for (state, _), obj in zip(missing, converted, strict=True):
            self._kept[state, version] = obj

    async def convert(self, objects: list[Obj], version: str) -> list[Obj]:
        """Objects in another version. 500 where the webhook does not give them."""
        wanted = f"{self._group}/{version}"
        identity = str(uuid.uuid4())
        review: Obj = {
            "kind": "ConversionReview",
            "apiVersion": f"apiextensions.k8s.io/{self._review}",
            "request": {"uid": identity, "desiredAPIVersion": wanted, "objects": objects},
        }
        what = f"conversion webhook for {objects[0]['apiVersion']}, Kind={self._kind} failed"
        try:
            answer = await self._post(self._client, review, _SECONDS)
        except ApiError as error:
            raise internal(f"{what}: {error.message}") from None
        found = _converted(answer.get("response"), identity, len(objects), what)
        return [_merged(before, after, wanted, what) for before, after in zip(objects, found, strict=True)]


def _converted(response: Any, identity: str, count: int, what: str) -> list[Any]:
    if not isinstance(response, dict) or response.get("uid") != identity:
        raise internal(f"{what}: the answer is not one to this request")
    result: Any = response.get("result") or {}
    if result.get("status") != "Success":
        raise internal(f"{what}: {result.get('message') or 'no message'}")
    objects: Any = response.get("convertedObjects") or []
    if not isinstance(objects, list) or len(objects) != count:
        raise internal(f"{what}: webhook returned {len(objects)} objects, expected {count}")
    return objects


def _merged(before: Obj, after: Any, wanted: str, what: str) -> Obj:
    """The converted object with the metadata of the one before, except for labels and annotations."""
    if not isinstance(after, dict) or after.get("apiVersion") != wanted or after.get("kind") != before["kind"]:
        raise internal(f"{what}: invalid converted object: expected {wanted}, Kind={before['kind']}")
    given: Any = after.get("metadata") or {}
    meta: Obj = dict(before["metadata"])
    for name in ("name", "namespace", "uid"):
        if isinstance(given, dict) and given.get(name, meta.get(name)) != meta.get(name):
            raise internal(f"{what}: invalid converted object: metadata.{name} must not change")
    for name in ("labels", "annotations"):
        meta.pop(name, None)
        if isinstance(given, dict) and given.get(name):
            meta[name] = given[name]
    return {**after, "metadata": meta}
