"""Runs a real kubectl, from $KUBECTL, from PATH or from the build cache; tests that need it are skipped without one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path("~/.cache/muster/kube").expanduser()


def find() -> str | None:
    """Where kubectl is, if anywhere."""
    if os.environ.get("KUBECTL"):
        return os.environ["KUBECTL"]
    cached = sorted(CACHE.glob("*/bin/kubectl"), reverse=True)
    return str(cached[0]) if cached else shutil.which("kubectl")


class Kubectl:
    """kubectl with one kubeconfig."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(kubeconfig)}
        self._binary = find()

    def __call__(self, *arguments: str, input: str | None = None, fails: bool = False, seconds: float = 60) -> str:
        """Run a command; its output (standard error too when it is meant to fail)."""
        assert self._binary is not None
        done = subprocess.run(
            [self._binary, *arguments],
            input=input,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if fails:
            assert done.returncode != 0, f"kubectl {' '.join(arguments)} should have failed:\n{done.stdout}"
            return done.stdout + done.stderr
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Run a command that goes on."""
        assert self._binary is not None
        return subprocess.Popen(
            [self._binary, *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


needs_kubectl = pytest.mark.skipif(
    find() is None, reason="no kubectl: put one on PATH, name it in $KUBECTL, or build one with e2e/kube"
)
