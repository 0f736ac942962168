"""The objects in the text of manifests: lists unpacked, each checked to be an object.

The text itself is read by `muster.views.documents`, which bounds its nesting and its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from muster.views.documents import Document, ManifestError, read


def documents_in(source: str, data: bytes) -> Iterator[Document]:
    """The objects of one text, lists unpacked. Raises ManifestError where it cannot be understood."""
    for document in read(source, data):
        yield from _unpacked(document)


def _unpacked(document: Document) -> Iterator[Document]:
    value: Any = document.value
    if not isinstance(value, dict):
        yield document
        return
    holder = cast("dict[str, Any]", value)
    items = holder.get("items")
    if not str(holder.get("kind") or "").endswith("List") or not isinstance(items, list):
        yield document
        return
    for index, item in enumerate(cast("list[Any]", items)):
        prefix = f"items[{index}]"
        inside = {
            path[len(prefix) + 1 :]: line for path, line in document.lines.items() if path.startswith(f"{prefix}.")
        }
        yield Document(document.source, document.lines.get(prefix, document.line), item, inside)
    if document.problems:
        yield Document(document.source, document.line, None, {}, document.problems)


def checked_objects(documents: Iterable[Document]) -> list[Document]:
    """The documents, each an object. Raises ManifestError for the first that is not one."""
    found: list[Document] = []
    for document in documents:
        if document.problems:
            line, message = document.problems[0]
            raise ManifestError(document.source, line, message)
        if not isinstance(document.value, dict):
            raise ManifestError(document.source, document.line, "a manifest must be an object")
        found.append(document)
    return found
