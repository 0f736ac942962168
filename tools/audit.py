"""`make audit`: known vulnerabilities of the locked packages, by pip-audit, where its service can be reached."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

UV = Path(sys.executable).with_name("uv")
# What pip-audit prints when no service answers; anything else that goes wrong is a failure.
UNREACHABLE = (
    "ConnectionError",
    "Connection aborted",
    "Max retries exceeded",
    "timed out",
    "ServiceError",
    "HTTPError",
)


def main() -> int:
    with tempfile.TemporaryDirectory() as directory:
        listed = Path(directory) / "requirements.txt"
        export = [UV, "export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", "--output-file", listed]
        subprocess.run(export, check=True)
        audit = [UV, "tool", "run", "pip-audit", "--require-hashes", "--disable-pip", "-r", listed]
        done = subprocess.run(audit, capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode != 0 and any(word in done.stderr for word in UNREACHABLE):
        print("the advisory service cannot be reached from here: nothing was checked")
        return 0
    print(done.stderr, end="", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
