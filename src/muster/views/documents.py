"""YAML and JSON text into plain values, with the line of every field and bounds on everything.

The text is read event by event rather than composed, so that nesting, aliases and repeated keys are checked before
anything is built from them: aliases of aliases cost no more than their text. JSON is read by the same reader (it is
YAML in flow style), which gives it line numbers too; JSON that only a JSON reader understands is read again by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from muster.views.scalars import resolve

MAX_DEPTH = 200
MAX_VALUES = 500_000
"""How many values one document may have once its aliases are expanded."""

_LAST_STEP = re.compile(r"(\.[^.\[\]]*|\[[^\]]*\]|^[^.\[\]]+)$")
_TAG = "tag:yaml.org,2002:"
_Parser: Any = getattr(yaml, "CLoader", yaml.SafeLoader)


class ManifestError(Exception):
    """A text that cannot be read, and the place where reading stopped. `syntax` says that it is no YAML at all."""

    def __init__(self, source: str, line: int, message: str, *, syntax: bool = False) -> None:
        super().__init__(f"{source}:{line}: {message}")
        self.source = source
        self.line = line
        self.message = message
        self.syntax = syntax


@dataclass(slots=True)
class Document:
    """One document of a file: its value, the line of each field, and what is wrong with its text."""

    source: str
    line: int
    value: Any
    lines: dict[str, int] = field(default_factory=dict[str, int])
    problems: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def line_of(self, path: str) -> int:
        """The line of a field, or of the nearest field around it that is written down."""
        while path and path not in self.lines:
            shorter = _LAST_STEP.sub("", path)
            path = shorter if shorter != path else ""
        return self.lines.get(path, self.line)


_Holder = dict[str, Any] | list[Any]


@dataclass(slots=True)
class _Frame:
    """A mapping or sequence that is being read."""

    value: _Holder
    path: str
    anchor: str | None
    size: int = 1
    key: Any = None
    keyed: bool = False
    merged: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def read(source: str, data: bytes) -> Iterator[Document]:
    """The documents of one file. Raises ManifestError where the text cannot be understood."""
    text = _decode(source, data)
    try:
        yield from _Reader(source, text).documents()
    except ManifestError as error:
        if not error.syntax or text.lstrip()[:1] not in ("{", "["):
            raise
        whole = _read_json(text)
        if whole is None:
            raise
        yield from (Document(source, line, value) for line, value in whole)


def _decode(source: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise ManifestError(source, line, message) from None


def _read_json(text: str) -> list[tuple[int, Any]] | None:
    """Values one after the other, as `kubectl -o json` may leave them; None when it is not JSON either."""
    decoder, found, at = json.JSONDecoder(), list[tuple[int, Any]](), 0
    try:
        while at < len(text):
            value, end = decoder.raw_decode(text, at)
            found.append((text.count("\n", 0, at) + 1, value))
            at = end + len(text[end:]) - len(text[end:].lstrip())
    except (ValueError, RecursionError):
        return None
    return found


class _Reader:
    """One pass over the events of one text."""

    def __init__(self, source: str, text: str) -> None:
        self._source = source
        self._text = text
        self._line = 1

    def documents(self) -> Iterator[Document]:
        parser: Any = None
        try:
            parser = _Parser(self._text)
            while (event := parser.get_event()) is not None:
                if isinstance(event, yaml.DocumentStartEvent):
                    document = self._document(parser)
                    if document is not None:
                        yield document
        except yaml.YAMLError as error:
            raise self._failed(error) from None
        finally:
            if parser is not None:
                parser.dispose()

    def _document(self, parser: Any) -> Document | None:
        document = Document(self._source, 0, None)
        builder = _Builder(document, self._error)
        while True:
            event = parser.get_event()
            if isinstance(event, yaml.DocumentEndEvent):
                return document if document.value is not None else None
            line = event.start_mark.line + 1
            self._line = line
            document.line = document.line or line
            builder.take(event, line)

    def _error(self, line: int, message: str) -> ManifestError:
        return ManifestError(self._source, line, message)

    def _failed(self, error: yaml.YAMLError) -> ManifestError:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = mark.line + 1 if mark is not None else self._line
        words = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        context = getattr(error, "context", None)
        language = "JSON or YAML" if self._text.lstrip()[:1] in ("{", "[") else "YAML"
        message = f"not valid {language}: {context + ', ' if context else ''}{words}"
        return ManifestError(self._source, line, message, syntax=True)


class _Builder:
    """Builds one document's value from its events."""

    def __init__(self, document: Document, error: Callable[[int, str], ManifestError]) -> None:
        self._document = document
        self._error = error
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0

    def take(self, event: Any, line: int) -> None:
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open({} if isinstance(event, yaml.MappingStartEvent) else [], event, line)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close(line)
        elif isinstance(event, yaml.AliasEvent):
            value, size = self._anchored(str(event.anchor), line)
            self._add(value, size, line)
        else:
            self._scalar(event, line)

    def _open(self, value: _Holder, event: Any, line: int) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise self._error(line, f"nested more than {MAX_DEPTH} levels deep")
        parent = self._stack[-1] if self._stack else None
        if parent is not None and isinstance(parent.value, dict) and not parent.keyed:
            raise self._error(line, "a key must be text, not a list or an object")
        self._stack.append(_Frame(value, self._path(line), event.anchor))

    def _close(self, line: int) -> None:
        frame = self._stack.pop()
        if isinstance(frame.value, dict):
            for key, value in (item for merged in frame.merged for item in merged.items()):
                frame.value.setdefault(key, value)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, frame.size)
        self._add(frame.value, frame.size, line)

    def _scalar(self, event: Any, line: int) -> None:
        try:
            value = _scalar_value(event)
        except ValueError as error:
            raise self._error(line, str(error)) from None
        frame = self._stack[-1] if self._stack else None
        if frame is not None and isinstance(frame.value, dict) and not frame.keyed:
            merge = event.value == "<<" and event.implicit[0]
            frame.key = None if merge else _key(value)
            frame.keyed = True
            if not merge:
                self._document.lines[self._path(line)] = line
                if frame.key in frame.value:
                    self._document.problems.append((line, f"duplicate key {frame.key!r}"))
            return
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._add(value, 1, line)

    def _anchored(self, name: str, line: int) -> tuple[Any, int]:
        if name not in self._anchors:
            inside = any(frame.anchor == name for frame in self._stack)
            raise self._error(line, f"the alias *{name} {'contains itself' if inside else 'is not defined'}")
        return self._anchors[name]

    def _add(self, value: Any, size: int, line: int) -> None:
        """Put a finished value into whatever is open around it."""
        if not self._stack:
            self._document.value = value
            return
        frame = self._stack[-1]
        frame.size += size
        if frame.size > MAX_VALUES:
            raise self._error(line, f"more than {MAX_VALUES} values in one document, counting what aliases repeat")
        if isinstance(frame.value, list):
            self._document.lines.setdefault(f"{frame.path}[{len(frame.value)}]", line)
            frame.value.append(value)
        elif not frame.keyed:
            raise self._error(line, "a key must be text, not an alias")
        else:
            frame.keyed = False
            if frame.key is None:
                self._merge(frame, value, line)
            else:
                frame.value[frame.key] = value

    def _merge(self, frame: _Frame, value: Any, line: int) -> None:
        parts = cast("list[Any]", value) if isinstance(value, list) else [value]
        for part in parts:
            if not isinstance(part, dict):
                raise self._error(line, "the value of << must be an object or a list of objects")
            frame.merged.append(cast("dict[str, Any]", part))

    def _path(self, line: int) -> str:
        """The path of the value that begins now, and a note of the line it begins on."""
        if not self._stack:
            return ""
        frame = self._stack[-1]
        if isinstance(frame.value, list):
            path = f"{frame.path}[{len(frame.value)}]"
            self._document.lines[path] = line
            return path
        return f"{frame.path}.{frame.key}" if frame.path else str(frame.key)


def _key(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _scalar_value(event: Any) -> Any:
    tag: str = event.tag or ""
    if event.implicit[0] and not tag:
        return resolve(event.value)
    if tag in ("", "!", f"{_TAG}str"):
        return event.value
    if tag in (f"{_TAG}{name}" for name in ("int", "float", "bool", "null")):
        return resolve(event.value)
    raise ValueError(f"unsupported tag {tag}")
