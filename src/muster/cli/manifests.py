"""The manifests a user names: files, directories, standard input; YAML or JSON; one object or many.

Everything is bounded: a file that is too large is refused before it is read whole, and each document is read and
checked on its own. A `List` counts as the objects in it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from muster.views.documents import Document, ManifestError
from muster.views.manifests import checked_objects, documents_in

MAX_BYTES = 16 * 1024 * 1024
SUFFIXES = (".yaml", ".yml", ".json")

__all__ = ["MAX_BYTES", "Document", "ManifestError", "documents", "object_documents", "objects", "sources"]


def sources(paths: Iterable[str], *, recursive: bool = False) -> Iterator[tuple[str, Path | None]]:
    """The files behind what was named, in a fixed order; None stands for standard input."""
    for name in paths:
        path = Path(name)
        if name == "-":
            yield "<stdin>", None
        elif path.is_dir():
            found = path.rglob("*") if recursive else path.iterdir()
            for each in sorted(found):
                if each.suffix in SUFFIXES and each.is_file():
                    yield str(each), each
        else:
            yield name, path


def load(source: str, path: Path | None) -> bytes:
    """The bytes of one source, or a ManifestError when there are none or too many."""
    try:
        if path is None:
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ManifestError(source, 1, f"cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise ManifestError(source, 1, f"larger than {MAX_BYTES // 2**20} MiB; split it into smaller files")
    return data


def documents(source: str, path: Path | None) -> Iterator[Document]:
    """The objects of one source, lists unpacked."""
    return documents_in(source, load(source, path))


def objects(paths: Iterable[str], *, recursive: bool = False) -> list[dict[str, Any]]:
    """Every object of the named files, in order. Raises ManifestError for the first thing that is not one."""
    return [document.value for document in object_documents(paths, recursive=recursive)]


def object_documents(paths: Iterable[str], *, recursive: bool = False) -> list[Document]:
    """The documents of the named files, each an object. Raises ManifestError for the first that is not one."""
    return checked_objects(
        document for source, path in sources(paths, recursive=recursive) for document in documents(source, path)
    )
