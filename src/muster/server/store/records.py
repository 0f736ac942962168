"""What the store keeps: one record an object, one change a write.

A record holds the object as JSON bytes in its storage version, without `kind` and `apiVersion`, so that answers can be
put together by joining bytes. Its bytes already carry the resourceVersion: the store hands the revision to whoever
encodes. `labels` and `fields` are what selectors look at; they are filled by the server and may be absent after a
restart (None), when the server reads them from the bytes again.
"""

from __future__ import annotations

from collections.abc import Callable

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"

BEFORE_ALL = 1  # the revision of an empty store; the first write gets the next one

Key = tuple[str, str]  # (namespace, name); the namespace of a cluster-scoped object is ""
Encode = Callable[[int], bytes]


class Record:
    """One object at one revision. Never changed once stored, except for the two derived fields."""

    __slots__ = ("body", "fields", "key", "labels", "revision", "uid")

    def __init__(
        self,
        key: Key,
        revision: int,
        uid: str,
        body: bytes,
        labels: dict[str, str] | None = None,
        fields: tuple[str, ...] | None = None,
    ) -> None:
        self.key = key
        self.revision = revision
        self.uid = uid
        self.body = body
        self.labels = labels
        self.fields = fields

    def __repr__(self) -> str:
        return f"Record({self.key[0]}/{self.key[1]} @{self.revision})"


class Change:
    """One write, as a watch sees it: the new record (for a deletion the last state at the deletion's revision)."""

    __slots__ = ("at", "previous", "record", "revision", "type")

    def __init__(self, type: str, record: Record, previous: Record | None, at: float) -> None:
        self.type = type
        self.record = record
        self.previous = previous
        self.revision = record.revision
        self.at = at

    def __repr__(self) -> str:
        return f"Change({self.type} {self.record!r})"


class StoreError(Exception):
    """The base of what a store refuses."""


class KeyExistsError(StoreError):
    """A create found the key taken."""


class RevisionMismatchError(StoreError):
    """The object is not at the expected revision any more, or it is gone."""

    def __init__(self, current: Record | None) -> None:
        super().__init__("the object is not at the expected revision")
        self.current = current


class CompactedError(StoreError):
    """The asked revision is older than the history that is kept."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} has been compacted; the oldest is {oldest}")
        self.asked = asked
        self.oldest = oldest


class StoreFailedError(StoreError):
    """The disk refused a write; nothing more is accepted, so that nothing wrong is acknowledged."""


class StoreLockedError(StoreError):
    """Another process has the data directory open."""
