"""`tools/rerun_failed.py`: a second try is allowed, and told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "rerun_failed.py"
STEADY = "def test_steady():\n    with open('runs', 'a') as runs:\n        runs.write('x')\n"
FLAKY = """
from pathlib import Path

def test_shaky():
    seen = Path("seen").exists()
    Path("seen").touch()
    assert seen
"""
BROKEN = "def test_broken():\n    assert False\n"


def rerun(directory: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "test_some.py").write_text("\n".join(tests))
    command = [sys.executable, str(TOOL), "-q", "test_some.py"]
    quick = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=directory, env=quick, capture_output=True, text=True, check=False)


def test_what_passes_at_the_second_try_is_listed_at_the_end(tmp_path: Path):
    done = rerun(tmp_path, STEADY, FLAKY)

    assert done.returncode == 0, done.stdout
    last = "1 flaky test, passed only at the second try:\n  test_some.py::test_shaky\n"
    assert done.stdout.endswith(last)
    assert (tmp_path / "runs").read_text() == "x", "what passed is not run again"


def test_what_fails_twice_fails_and_is_not_called_flaky(tmp_path: Path):
    done = rerun(tmp_path, FLAKY, BROKEN)

    assert done.returncode == 1
    assert done.stdout.endswith("second try:\n  test_some.py::test_shaky\n")


def test_without_a_failure_there_is_one_run_and_no_list(tmp_path: Path):
    done = rerun(tmp_path, STEADY)

    assert done.returncode == 0
    assert (tmp_path / "runs").read_text() == "x"
    assert "flaky" not in done.stdout


def test_an_error_that_is_no_failed_test_is_passed_on_at_once(tmp_path: Path):
    done = rerun(tmp_path, "import nothing_that_exists\n")

    assert done.returncode == 2
    assert "once more" not in done.stdout
