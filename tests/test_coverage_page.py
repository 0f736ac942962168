"""The page of statements names code and tests that exist, and leaves nothing open but what others bring."""

from __future__ import annotations

import pytest

from tests.doc_checks import coverage
from tests.doc_checks.code_names import ROOT

PAGE = (ROOT / "docs" / "coverage.md").read_text()


def test_every_section_has_rows():
    sections = [part for part in PAGE.split("\n## ")[1:] if not list(coverage.rows(part))]
    assert sections == []


def test_every_scenario_is_on_the_page():
    named = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "scenarios").glob("*/*.yaml")}
    assert sorted(name for name in named if f"`{name}`" not in PAGE) == []


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("| a | `muster.nothing` | `tests/test_docs.py::test_every_command_is_documented` |", "no muster.nothing"),
        ("| a | `muster.api.groups` | `tests/test_docs.py::test_of_nothing` |", "no test tests/test_docs.py::test_of"),
        ("| a | `muster.api.groups` | `tests/scenarios/none.yaml` |", "no test tests/scenarios/none.yaml"),
        ("| a | `docs/nothing.md` | by intent: not needed here |", "no docs/nothing.md"),
        ("| a | `muster.api.groups` |  |", "no code or no test"),
        ("| a |  | open: something |", "unknown"),
        ("| a |  | by intent: no |", "does not say why"),
    ],
)
def test_what_is_wrong_is_found(row: str, says: str):
    assert any(says in problem for problem in coverage.problems(row))
