"""Pages of documentation: their code, inline and in blocks, and their tables, each with its line and section."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

_INLINE = re.compile(r"(`+)(.+?)\1")
_FENCE = re.compile(r"^(```+|~~~+)\s*(\S*)")
_HEADING = re.compile(r"^(#+)\s+(.*)")
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


class Problem(NamedTuple):
    """A name on a page that the code does not have."""

    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


class Code(NamedTuple):
    """A piece of code: inline (one line, between backquotes), or a line of a block."""

    line: int
    text: str
    section: str  # the headings above it, outermost first
    inline: bool


class Block(NamedTuple):
    """A fenced or indented block."""

    line: int
    language: str
    text: str
    section: str


class Table(NamedTuple):
    """A table: the cells of its header, and of each row with its line."""

    section: str
    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


class _Line(NamedTuple):
    number: int
    text: str
    section: str
    block: int  # the line that its block begins with; 0 outside
    language: str


@dataclass(frozen=True)
class Page:
    """One page. `name` is its path from the top of the repository."""

    name: str
    text: str

    @classmethod
    def read(cls, root: Path, path: Path) -> Page:
        return cls(str(path.relative_to(root)), path.read_text())

    def problem(self, line: int, text: str) -> Problem:
        return Problem(self.name, line, text)

    @cached_property
    def _lines(self) -> tuple[_Line, ...]:
        return tuple(_classified(self.text))

    @cached_property
    def inline(self) -> tuple[Code, ...]:
        """Everything between backquotes."""
        return tuple(
            Code(line.number, found.group(2).strip(), line.section, True)
            for line in self._lines
            if not line.block
            for found in _INLINE.finditer(line.text)
        )

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        found: dict[int, list[_Line]] = {}
        for line in self._lines:
            if line.block:
                found.setdefault(line.block, []).append(line)
        return tuple(
            Block(start, lines[0].language, "\n".join(line.text for line in lines), lines[0].section)
            for start, lines in found.items()
        )

    @property
    def code(self) -> Iterator[Code]:
        """All code, inline and in blocks, line by line."""
        yield from self.inline
        for line in self._lines:
            if line.block:
                yield Code(line.number, line.text, line.section, False)

    @cached_property
    def links(self) -> tuple[tuple[int, str], ...]:
        """The targets of links inside the repository."""
        outside = (line for line in self._lines if not line.block)
        return tuple((line.number, target) for line in outside for target in _LINK.findall(line.text))

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        tables: list[Table] = []
        rows: list[_Line] = []
        for line in (*self._lines, _Line(0, "", "", 0, "")):
            if line.text.startswith("|") and not line.block:
                rows.append(line)
            elif rows:
                header, body = cells(rows[0].text), rows[2:]
                tables.append(Table(rows[0].section, header, tuple((row.number, cells(row.text)) for row in body)))
                rows = []
        return tuple(tables)


def cells(row: str) -> tuple[str, ...]:
    """The cells of a row; a bar between backquotes or after a backslash does not end a cell."""
    parts = re.findall(r"((?:`[^`]*`|\\\||[^|`])*)\|", row.strip().removeprefix("|"))
    return tuple(part.strip() for part in parts)


def inline_code(text: str) -> list[str]:
    """What stands between backquotes in a piece of text."""
    return [found.group(2).strip() for found in _INLINE.finditer(text)]


def _classified(text: str) -> Iterator[_Line]:
    """Every line of a page that has text of its own, with where it stands; fences themselves are left out."""
    headings: list[str] = []
    fence, block, language, blank = "", 0, "", True
    for number, line in enumerate(text.splitlines(), 1):
        found = _FENCE.match(line)
        if fence:
            if found is not None and found.group(1).startswith(fence):
                fence, block = "", 0
            else:
                yield _Line(number, line, " > ".join(headings), block, language)
            continue
        if found is not None:
            fence, language, block = found.group(1), found.group(2), number
            continue
        heading = _HEADING.match(line)
        if heading is not None:
            headings, block = [*headings[: len(heading.group(1)) - 1], heading.group(2)], 0
        indented = line.startswith("    ") and line.strip() != ""
        block = (block or number) if indented and (blank or block) else 0
        shown = line.removeprefix("    ") if block else line
        yield _Line(number, shown, " > ".join(headings), block, "")
        blank = not line.strip()
