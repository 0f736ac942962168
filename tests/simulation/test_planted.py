"""The planted bugs fit the product as it is, and are found. All of them are tried by `make faults-selftest`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.simulation.planted import BUGS, Bug
from tests.simulation.selftest import SOURCE, find, plant


def test_there_are_thirty_one_bugs_of_different_names():
    assert len({bug.name for bug in BUGS}) == len(BUGS) == 31


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_can_be_planted(bug: Bug, tmp_path: Path):
    file = tmp_path / bug.file
    file.parent.mkdir(parents=True)
    file.write_text((SOURCE / bug.file).read_text())
    plant(bug, tmp_path)
    assert ast.parse(file.read_text())
    assert file.read_text() != (SOURCE / bug.file).read_text()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_planted_bug_is_found():
    bug = next(each for each in BUGS if each.name == "the last member of a gang is not bound")
    days, complaint = find(bug, 100, 0)
    assert days
    assert "I1" in complaint or "I9" in complaint
