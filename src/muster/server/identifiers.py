"""The uids of new objects and the names that `generateName` asks for.

A server takes both at random. A server for a simulation derives them from what is created, so that the same objects
have the same names in every run, in whatever order the controllers create them.
"""

from __future__ import annotations

import hashlib
import random
from typing import Any, Protocol, cast

from muster.server.store.base import Store

SUFFIX_LENGTH = 5
MAX_BASE = 63 - SUFFIX_LENGTH
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_UUID_MASK = 0xC000 << 48 | 0xF000 << 64
_UUID_VERSION_4 = 0x8000 << 48 | 4 << 76

Metadata = dict[str, Any]


class Identifiers(Protocol):
    """Chooses what the server, not the client, names."""

    def uid(self, table: str, namespace: str, name: str) -> str:
        """The uid of an object that is about to be created."""
        ...

    def name(self, table: str, namespace: str, metadata: Metadata) -> str:
        """A name that begins with the `generateName` of the metadata; it may be taken, then another is asked for."""
        ...


class RandomIdentifiers:
    """Random uids and suffixes, as kube-apiserver gives them."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def uid(self, table: str, namespace: str, name: str) -> str:
        return _uuid4(self._rng.getrandbits(128))

    def name(self, table: str, namespace: str, metadata: Metadata) -> str:
        return _base(metadata) + "".join(self._rng.choices(_LETTERS, k=SUFFIX_LENGTH))


class RepeatableIdentifiers:
    """Uids and suffixes that depend on nothing but the objects: their kind, namespace, name, owner and number.

    The n-th object that one owner creates from one `generateName` has the same name in every run. A creation that is
    refused does not count: its name is given to the next.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._created: dict[tuple[str, ...], int] = {}  # (table, namespace, name) -> how many uids it was given
        self._taken: dict[tuple[str, ...], int] = {}  # (table, namespace, base, owner) -> how many names are taken

    def uid(self, table: str, namespace: str, name: str) -> str:
        key = (table, namespace, name)
        number = self._created[key] = self._created.get(key, 0) + 1
        return _uuid4(int.from_bytes(_digest(*key, str(number))[:16]))

    def name(self, table: str, namespace: str, metadata: Metadata) -> str:
        base = _base(metadata)
        key = (table, namespace, base, *_owner(metadata))
        number = self._taken.get(key, 0)
        while self._store.head(table, (namespace, name := base + _suffix(*key, str(number)))) is not None:
            number += 1
        self._taken[key] = number
        return name


def _base(metadata: Metadata) -> str:
    return metadata["generateName"][:MAX_BASE]


def _owner(metadata: Metadata) -> tuple[str, str]:
    """Kind and name of the controller that an object belongs to."""
    owners: Any = metadata.get("ownerReferences")
    for owner in cast("list[Any]", owners) if isinstance(owners, list) else ():  # not validated yet
        if isinstance(owner, dict) and owner.get("controller"):
            found = cast("Metadata", owner)
            return (str(found.get("kind", "")), str(found.get("name", "")))
    return ("", "")


def _uuid4(bits: int) -> str:
    # As uuid.UUID(int=..., version=4) would write it, without making one.
    text = f"{bits & ~_UUID_MASK | _UUID_VERSION_4:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _suffix(*parts: str) -> str:
    number, letters = int.from_bytes(_digest(*parts)), ""
    for _ in range(SUFFIX_LENGTH):
        number, index = divmod(number, len(_LETTERS))
        letters += _LETTERS[index]
    return letters


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()
