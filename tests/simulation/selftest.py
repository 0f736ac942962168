"""`make faults-selftest`: plants each bug in a copy of the product and runs days until one of them fails."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.simulation.planted import BUGS, Bug

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "muster"


def plant(bug: Bug, copy: Path) -> None:
    """Change the copy of the product in one place."""
    file = copy / bug.file
    text = file.read_text()
    assert text.count(bug.there) == 1, f"{bug.name}: the text stands {text.count(bug.there)} times in {bug.file}"
    file.write_text(text.replace(bug.there, bug.instead))


def find(bug: Bug, most: int, first: int) -> tuple[int, str]:
    """The number of days until the bug is found, and the complaint; 0 if it is not."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "src" / "muster"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        plant(bug, copy)
        done = subprocess.run(
            [sys.executable, "-m", "tests.simulation", "--first", str(first), "--seeds", str(most), "--most", "1"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(copy.parent), "PYTHONHASHSEED": "0"},
            text=True,
            capture_output=True,
            check=False,
        )
    failed = re.search(r"^seed (\d+) failed: [\d.]* *(.*)$", done.stdout, re.M)
    return (int(failed[1]) - first + 1, failed[2]) if failed else (0, "")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.selftest", description=__doc__)
    parser.add_argument("--most", type=int, default=500, help="days for each bug")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--bugs", default="", help="numbers of bugs, separated by commas; all by default")
    given = parser.parse_args(arguments)
    chosen = [int(number) for number in given.bugs.split(",")] if given.bugs else range(len(BUGS))
    needed: list[int] = []
    missed: list[str] = []
    for number in chosen:
        days, complaint = find(BUGS[number], given.most, given.first)
        needed += [days] if days else []
        missed += [] if days else [BUGS[number].name]
        print(f"{number:3} {BUGS[number].name:60} {f'day {days}: {complaint}' if days else 'NOT FOUND'}", flush=True)
    print(
        f"{len(needed)} of {len(chosen)} found; "
        f"median {statistics.median(needed or [0]):g} days, worst {max(needed or [0])}"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
