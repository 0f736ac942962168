"""Days from their seeds: repeatable, and without a fault of the product."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = int(os.environ.get("FAULT_SEEDS", "40"))
PARTS = 4
ROOT = Path(__file__).parents[2]


def simulate(*arguments: str) -> tuple[int, str]:
    """A run of the command, as a person would start it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=False,
        timeout=1500,
    )
    return done.returncode, done.stdout


def test_the_same_seed_gives_the_same_day_to_the_byte():
    first = simulate("--first", "5", "--history")
    second = simulate("--first", "5", "--history")
    assert first == second
    assert first[0] == 0, first[1][-2000:]
    assert first[1].count("\n") > 200


def test_a_part_of_a_day_can_be_repeated():
    code, text = simulate("--first", "3", "--deeds", "0,1,2")
    assert code == 0, text[-2000:]
    assert text.count("  -- ") == 4, "three deeds, and the end of the faults"


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("part", range(PARTS))
def test_many_days_end_well(part: int):
    count = SEEDS // PARTS
    code, text = simulate("--first", str(part * count), "--seeds", str(count), "--jobs", "1")
    assert code == 0, text
