"""The build stage of the Dockerfile, carried out without a container engine.

A fresh directory stands for the root of the image: it gets exactly the files that `.dockerignore` leaves and `COPY`
names, and every `RUN` is run there, with an empty virtual environment as the Python of the base image.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Image:
    """What the build stage leaves in `/opt/muster`, below a directory of our own."""

    def __init__(self, root: Path, python: str = sys.executable) -> None:
        self.root = root
        self.prefix = root / "opt" / "muster"
        self._work = root
        self._env = {name: os.environ[name] for name in ("HOME", "PATH", "SSL_CERT_FILE") if name in os.environ}
        self._env |= {
            name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_INDEX", "UV_DEFAULT"))
        }
        subprocess.run([python, "-m", "venv", root / "base"], check=True)
        self._env["PATH"] = f"{root / 'base' / 'bin'}:{self._env['PATH']}"

    def build(self) -> None:
        for word, rest in build_stage():
            if word == "WORKDIR":
                self._work = self._inside(rest)
                self._work.mkdir(parents=True)
            elif word == "ENV":
                self._env |= dict(each.split("=", 1) for each in shlex.split(self._mapped(rest)))
            elif word == "COPY":
                *sources, target = shlex.split(rest)
                for source in sources:
                    self._copy(source, target)
            elif word == "RUN":
                subprocess.run(["sh", "-euc", self._mapped(rest)], cwd=self._work, env=self._env, check=True)

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        """The installed command, with nothing of the checkout in reach."""
        env = {"PATH": f"{self.prefix / 'bin'}:/usr/bin:/bin", "HOME": str(self.root)}
        return subprocess.run(["muster", *args], cwd=self.root, env=env, capture_output=True, text=True, check=True)

    def _inside(self, path: str) -> Path:
        return self.root / path.lstrip("/") if path.startswith("/") else self._work / path

    def _mapped(self, text: str) -> str:
        return text.replace("/opt/muster", str(self.prefix))

    def _copy(self, source: str, target: str) -> None:
        found = [path for path in context() if path == source or path.startswith(f"{source}/")]
        assert found, f"COPY {source}: .dockerignore leaves nothing of it"
        for path in found:
            # What is copied as a directory goes below the target; a file goes to it, or into it when it ends in "/".
            inner = (
                path.removeprefix(f"{source}/") if path != source else Path(path).name if target.endswith("/") else ""
            )
            to = self._inside(target) / inner if inner else self._inside(target)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, to)


def build_stage() -> list[tuple[str, str]]:
    """The instructions between the first FROM and the second."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    starts = [index for index, (word, _) in enumerate(lines) if word == "FROM"]
    return [(word, rest) for word, rest in lines[starts[0] + 1 : starts[1]]]


def context() -> list[str]:
    """The tracked files that `.dockerignore` lets through; its last matching line counts."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file() and _kept(path, rules)]


def _kept(path: str, rules: list[str]) -> bool:
    kept = True
    for rule in rules:
        pattern = rule.removeprefix("!").removeprefix("**/")
        parts = path.split("/")
        heads = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        names = parts if "**/" in rule else heads
        if any(fnmatch(each, pattern) if pattern != "*" else True for each in names):
            kept = rule.startswith("!")
    return kept
