"""The page that says where each statement of the design documents is done and which test shows it.

Every row names a module, something in one, or a file, all of which exist, and tests or scenarios that exist; a row
without them says in its last column that it is open, and for what, or why it is not done that way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.doc_checks.code_names import ROOT, resolves

OPEN_FOR = ("devices", "workloads", "pressure")
_CODE = re.compile(r"`([^`]+)`")
_OPEN = re.compile(r"open: (\w+)$")
_INTENT = re.compile(r"by intent: \S+ \S+")


class Row(NamedTuple):
    """One statement, where it is done, and what shows it."""

    line: int
    statement: str
    where: str
    shown_by: str


def rows(text: str) -> Iterator[Row]:
    """The rows of all tables of the page, without their headings."""
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")] if line.startswith("|") else []
        if len(cells) == 3 and cells[0] != "statement" and not line.startswith("|-"):
            yield Row(number, *cells)
        elif line.startswith("|") and not line.startswith("|-") and len(cells) not in (0, 3) and "||" not in line:
            yield Row(number, line, "", "")


def problems(text: str) -> Iterator[str]:
    """Every name in the page that does not exist, and every row that shows nothing."""
    for row in rows(text):
        for problem in _of_row(row):
            yield f"line {row.line}, {row.statement!r}: {problem}"


def _of_row(row: Row) -> Iterator[str]:
    names = _CODE.findall(row.where)
    yield from (f"there is no {name}" for name in names if not _exists(name))
    if row.shown_by.startswith("open:"):
        found = _OPEN.match(row.shown_by)
        if found is None or found[1] not in OPEN_FOR:
            yield f"{row.shown_by!r} is open for something unknown"
        return
    if row.shown_by.startswith("by intent:"):
        if not _INTENT.match(row.shown_by):
            yield "it does not say why"
        return
    tests = _CODE.findall(row.shown_by)
    if not names or not tests:
        yield "it names no code or no test"
    yield from (f"there is no test {test}" for test in tests if not _is_test(test))


def _exists(name: str) -> bool:
    return (ROOT / name).exists() if "/" in name else resolves(name)


def _is_test(name: str) -> bool:
    path, _, function = name.partition("::")
    if not (ROOT / path).is_file():
        return False
    return path.endswith(".yaml") if not function else function in _tests_of(path)


@cache
def _tests_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    functions = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(each.name for each in functions if each.name.startswith("test"))
