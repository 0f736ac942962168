"""`muster up` as a process of its own, to be killed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

COMMAND = [sys.executable, "-u", "-c", "from muster.cli.main import main; main()", "up"]
LEAN = ("--port", "0", "--nodes", "0", "--no-scheduler", "--no-controllers")


class Server:
    """A running server on a data directory."""

    def __init__(self, data: Path, *flags: str, before: Callable[[], None] | None = None) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *LEAN, "--data", str(data), *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=before,
        )
        self.said = ""
        self.kubeconfig = data / "kubeconfig"
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if "Ctrl-C" in line:
                break

    @property
    def up(self) -> bool:
        return re.search(r"https://127.0.0.1:\d+", self.said) is not None

    def kill(self) -> None:
        """End it as a power cut would end the process."""
        self.process.kill()
        self.end()

    def end(self, patience: float = 20.0) -> int:
        """Wait for it to end; gives the exit code. What it said is in `said`."""
        assert self.process.stdout is not None
        try:
            self.said += self.process.communicate(timeout=patience)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        finally:
            self.process.stdout.close()
        return self.process.returncode
