"""Runs pytest, runs what failed once more, and lists what passed only at the second try.

    python tools/rerun_failed.py [ARGUMENT OF PYTEST]...

End-to-end tests race with the clock of a busy machine, so one failure is not held against the code; but it is not
hidden either: the last lines name every flaky test. The exit code is pytest's: of the first run if it was no matter of
failed tests, else of the second.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

FAILED = 1  # pytest's exit code when some tests failed


def run(cache: Path, arguments: list[str]) -> tuple[int, set[str]]:
    """The exit code, and the ids of the tests that failed, as pytest notes them in its cache."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments], check=False)
    notes = cache / "v" / "cache" / "lastfailed"
    return done.returncode, set(json.loads(notes.read_text())) if notes.exists() else set()


def report(flaky: set[str]) -> str:
    tests = "test" if len(flaky) == 1 else "tests"
    return "\n".join(
        [f"{len(flaky)} flaky {tests}, passed only at the second try:", *(f"  {each}" for each in sorted(flaky))]
    )


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="rerun-failed-") as made:
        code, failed = run(Path(made), arguments)
        if code != FAILED or not failed:
            return code
        print(f"\n{len(failed)} failed; these are run once more, alone.\n", flush=True)
        again = ["--last-failed", "--last-failed-no-failures=none"]
        code, still = run(Path(made), [*arguments, *again])
    if flaky := failed - still:
        print(f"\n{report(flaky)}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
