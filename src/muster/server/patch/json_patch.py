"""JSON patch (RFC 6902) with Kubernetes' limits: 10,000 operations and 3 MiB of copied data.

As in Kubernetes, and unlike in the RFC, a key that an object does not have reads as null, so replacing it adds it.
Containers are copied when they are first changed and changed in place after that, so a long patch costs what it
touches. A patch that is not one is a 400; one that does not fit the object (a failed test, a missing path) is a 422.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.api.errors import ApiError, bad_request, too_large
from muster.server.schema import Message

Obj = dict[str, Any]

MAX_OPERATIONS = 10_000
MAX_COPIED = 3 * 1024 * 1024

_NEEDS_VALUE = frozenset({"add", "replace", "test"})
_NEEDS_FROM = frozenset({"move", "copy"})
_MISSING = object()


class Unfit(Exception):
    """The operation cannot be done on this object."""


class Failed(Unfit):
    """A test operation does not hold."""


class FailedTestError(ApiError):
    """A patch whose test operation does not hold for the object."""


def apply(current: Obj, patch: Any, message: Message | None = None) -> Obj:
    """The object after every operation, in order; all or nothing."""
    operations = _checked(patch)
    document = _Document(current)
    for name, path, source, value in operations:
        try:
            document.do(name, path, source, value)
        except Unfit as wrong:
            refusal = FailedTestError if isinstance(wrong, Failed) else ApiError
            raise refusal(
                422, "Invalid", f"the server rejected our request due to an error in our request: {wrong}"
            ) from None
    if type(document.root) is not dict:
        raise bad_request("error decoding patch: the patched document is not an object")
    return document.root


def _checked(patch: Any) -> list[tuple[str, str, str, Any]]:
    if type(patch) is not list:
        raise bad_request("error decoding patch: a JSON patch must be a list of operations")
    if len(patch) > MAX_OPERATIONS:
        raise too_large(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}")
    return [_operation(item) for item in patch]


def _operation(item: Any) -> tuple[str, str, str, Any]:
    if type(item) is not dict:
        raise bad_request("error decoding patch: an operation must be an object")
    name, path, source = item.get("op"), item.get("path"), item.get("from", "")
    if type(path) is not str or type(source) is not str:
        raise bad_request("error decoding patch: an operation needs a path, and paths are strings")
    if name not in ("remove", *_NEEDS_VALUE, *_NEEDS_FROM):
        raise bad_request(f"error decoding patch: unexpected kind of operation: {name}")
    if name in _NEEDS_FROM and "from" not in item:
        raise bad_request(f"error decoding patch: {name} needs a from")
    if name in _NEEDS_VALUE and "value" not in item:
        raise bad_request(f"error decoding patch: {name} needs a value")
    for pointer in (path, source):
        if pointer and not pointer.startswith("/"):
            raise bad_request(f"error decoding patch: {pointer!r} is not a JSON pointer")
    return name, path, source, item.get("value")


class _Document:
    """The object under change. `_own` holds the containers made here, which may be changed in place."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied = 0
        self._own: dict[int, Any] = {}

    def do(self, name: str, path: str, source: str, value: Any) -> None:
        if name == "test":
            if not _equal(self._get(path), value):
                raise Failed(f"testing value {path} failed")
        elif name == "add":
            self._add(path, value)
        elif name == "replace":
            if path:
                self._replace(path, value)
            else:
                self.root = value
        elif name == "remove":
            self._remove(path)
        elif name == "move":
            self._move(source, path)
        else:
            self._add(path, self._copy(self._get(source)))

    def _copy(self, value: Any) -> Any:
        data = msgspec.json.encode(value)
        self.copied += len(data)
        if self.copied > MAX_COPIED:
            raise Unfit(
                f"Unable to copy, the accumulated size increase of copy is {self.copied},"
                f" exceeding the limit {MAX_COPIED}"
            )
        return msgspec.json.decode(data)

    def _move(self, source: str, path: str) -> None:
        if path.startswith(source + "/"):
            raise Unfit(f"cannot move {source} into itself")
        value = self._get(source)
        self._remove(source)  # fails where there is nothing to move
        self._add(path, value)

    def _get(self, path: str) -> Any:
        value = self.root
        tokens = _tokens(path)
        for token in tokens[:-1]:
            value = _child(value, token, path)
        for token in tokens[-1:]:
            value = value.get(token) if type(value) is dict else _child(value, token, path)
        return value

    def _writable(self, path: str) -> tuple[Any, str]:
        """The container that holds the last token of the path, safe to change."""
        *above, last = _tokens(path) or [""]
        if not path:
            raise Unfit("the whole document cannot be removed")
        self.root = container = self._owned(self.root)
        for token in above:
            child = self._owned(_child(container, token, path))
            if type(container) is dict:
                container[token] = child
            else:
                container[_index(token, len(container), path)] = child
            container = child
        return container, last

    def _owned(self, container: Any) -> Any:
        if id(container) in self._own:
            return container
        if type(container) is not dict and type(container) is not list:
            return container
        fresh = container.copy()
        self._own[id(fresh)] = fresh
        return fresh

    def _add(self, path: str, value: Any) -> None:
        if not path:
            self.root = value
            return
        container, token = self._writable(path)
        if type(container) is dict:
            container[token] = value
        elif type(container) is list:
            if token == "-":
                container.append(value)
            else:
                container.insert(_index(token, len(container) + 1, path), value)
        else:
            raise Unfit(f"add operation does not apply: doc is missing path: {path}: missing value")

    def _replace(self, path: str, value: Any) -> None:
        container, token = self._writable(path)
        if type(container) is dict:
            container[token] = value
        else:
            _child(container, token, path)
            container[_index(token, len(container), path)] = value

    def _remove(self, path: str) -> None:
        container, token = self._writable(path)
        _child(container, token, path)
        if type(container) is dict:
            del container[token]
        else:
            del container[_index(token, len(container), path)]


def _tokens(path: str) -> list[str]:
    if not path:
        return []
    tokens = path[1:].split("/")
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens] if "~" in path else tokens


def _child(container: Any, token: str, path: str) -> Any:
    if type(container) is dict:
        value = container.get(token, _MISSING)
        if value is not _MISSING:
            return value
    elif type(container) is list:
        return container[_index(token, len(container), path)]
    raise Unfit(f"operation does not apply: doc is missing path: {path}: missing value")


def _index(token: str, size: int, path: str) -> int:
    """The position a token names in a list of this size. Kubernetes also counts from the end, as -1."""
    digits = token.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 9:
        raise Unfit(f"operation does not apply: {path}: {token!r} is not an index")
    position = int(token)
    if position < 0:
        position += size
    if not 0 <= position < size:
        raise Unfit(f"Unable to access invalid index: {token}: invalid index referenced")
    return position


def _equal(left: Any, right: Any) -> bool:
    """Equality of JSON values: unlike in Python, true is not 1."""
    if type(left) is bool or type(right) is bool:
        return left is right
    if type(left) is dict:
        if type(right) is not dict or left.keys() != right.keys():
            return False
        return all(_equal(value, right[key]) for key, value in left.items())
    if type(left) is list:
        if type(right) is not list or len(left) != len(right):
            return False
        return all(map(_equal, left, right))
    return left == right
