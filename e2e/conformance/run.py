"""Runs Kubernetes' own conformance specs that need no running container against `muster up`, and says the count.

    python -m e2e.conformance.run [--shards N] [--focus TEXT]... [--all] [--keep DIRECTORY]

specs.yaml has the specs that are run, and those that are left out with the reason for each. A shard is one e2e.test
with a `muster up` of its own: the specs mostly wait, so that several take little more processor time than one.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SIGS = ("sig-api-machinery", "sig-apps", "sig-auth", "sig-cli", "sig-scheduling")
NO_GO = 3
READY_SECONDS = 60.0
MUSTER = [sys.executable, "-u", "-c", "from muster.cli.main import main; main()"]


@dataclass(frozen=True)
class Result:
    name: str
    state: str  # as Ginkgo says: passed, failed, skipped, timedout, panicked …
    seconds: float
    message: str = ""


@dataclass(frozen=True)
class Specs:
    """Which specs are run, and why the others are not."""

    run: list[str]
    left_out: dict[str, list[str]]  # by reason

    @classmethod
    def load(cls, file: Path = HERE / "specs.yaml") -> Specs:
        found = yaml.safe_load(file.read_text())
        return cls(found["run"], {each["reason"]: each["specs"] for each in found["left_out"]})

    def differences(self, known: set[str]) -> list[str]:
        """What the suite has and the file does not name, and the other way round."""
        named = [*self.run, *(name for names in self.left_out.values() for name in names)]
        twice = {name for name in named if named.count(name) > 1}
        return [
            *(f"not in specs.yaml: {name}" for name in sorted(known - set(named))),
            *(f"not in the suite: {name}" for name in sorted(set(named) - known)),
            *(f"named twice: {name}" for name in sorted(twice)),
        ]


def built(script: Path, *arguments: str) -> Path:
    done = subprocess.run([script, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return Path(done.stdout.strip().splitlines()[-1])


def known_specs(program: Path) -> set[str]:
    """The names of the suite's conformance specs of the groups that are judged here."""
    command = [program, "--list-conformance-tests"]
    listed = yaml.load(subprocess.run(command, capture_output=True, check=True).stdout, yaml.CSafeLoader)
    names = {each["codename"] for each in listed}
    return {name for name in names if name.startswith(tuple(f"[{sig}]" for sig in SIGS))}


def run_shard(program: Path, kubectl: Path, names: list[str], directory: Path) -> list[Result]:
    """The results of these specs against one `muster up`, whose log and report stay in the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    kubeconfig = directory / "kubeconfig"
    arguments = ["up", "--memory", "--port", "0", "--nodes", "4", "--kubeconfig", str(kubeconfig), "--no-dashboard"]
    with (directory / "muster.log").open("wb") as log:
        server = subprocess.Popen([*MUSTER, *arguments], stdout=log, stderr=log)
    try:
        _wait_until_up(server, directory / "muster.log")
        _run_specs(program, kubectl, names, kubeconfig, directory)
    finally:
        server.terminate()
        server.wait(30)
    return results(directory / "report.json", names)


def _wait_until_up(server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while "export KUBECONFIG=" not in log.read_text():
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"muster up did not start:\n{log.read_text()}")
        time.sleep(0.1)


def _run_specs(program: Path, kubectl: Path, names: list[str], kubeconfig: Path, directory: Path) -> None:
    # The text that is matched begins with the name of the suite.
    focus = "|".join(f" {re.escape(name)}$" for name in names)
    command = [
        program,
        f"--kubeconfig={kubeconfig}",
        "--provider=skeleton",
        f"--kubectl-path={kubectl}",
        "--dump-logs-on-failure=false",
        f"--e2e-output-dir={directory}",
        f"--ginkgo.focus={focus}",
        f"--ginkgo.json-report={directory / 'report.json'}",
        "--ginkgo.timeout=4h",
        "--ginkgo.no-color",
    ]
    with (directory / "e2e.log").open("wb") as log:
        subprocess.run(command, stdout=log, stderr=log, cwd=directory, check=False)


def results(report: Path, names: list[str]) -> list[Result]:
    """What the report says of these specs; one that it does not have did not run."""
    suites: list[dict[str, Any]] = json.loads(report.read_text()) if report.exists() else []
    found = {full_name(spec): spec for suite in suites for spec in suite["SpecReports"] or []}
    return [_result(name, found.get(name)) for name in names]


def _result(name: str, spec: dict[str, Any] | None) -> Result:
    if spec is None:
        return Result(name, "not run", 0.0)
    failure = spec.get("Failure") or {}
    return Result(name, spec["State"], spec["RunTime"] / 1e9, failure.get("Message", ""))


def full_name(spec: dict[str, Any]) -> str:
    return " ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]])


def shards_of(names: list[str], count: int) -> list[list[str]]:
    return [part for part in (names[start::count] for start in range(count)) if part]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m e2e.conformance.run")
    parser.add_argument("--shards", type=int, default=2, help="pairs of e2e.test and `muster up` at once")
    parser.add_argument("--focus", action="append", default=[], help="only specs whose name has this text")
    parser.add_argument("--all", action="store_true", help="also those that are left out")
    parser.add_argument("--keep", type=Path, help="directory for logs and reports (default: one in /tmp)")
    chosen = parser.parse_args(arguments)
    program = built(HERE / "build.sh")
    kubectl = built(ROOT / "e2e" / "kube" / "build.sh", "kubectl") / "kubectl"
    specs, known = Specs.load(), known_specs(program)
    if differences := specs.differences(known):
        print("\n".join(differences))
        return 1
    names = [*specs.run, *(name for each in specs.left_out.values() for name in each if chosen.all)]
    names = [name for name in names if not chosen.focus or any(text in name for text in chosen.focus)]
    directory = chosen.keep or Path(tempfile.mkdtemp(prefix="muster-conformance-"))
    return report(run(program, kubectl, names, directory, chosen.shards), specs, len(known), directory)


def run(program: Path, kubectl: Path, names: list[str], directory: Path, shards: int) -> list[Result]:
    parts = shards_of(names, shards)
    with ThreadPoolExecutor(max(1, len(parts))) as pool:
        futures = [
            pool.submit(run_shard, program, kubectl, part, directory / f"shard-{number}")
            for number, part in enumerate(parts)
        ]
        return [result for future in futures for result in future.result()]


def report(found: list[Result], specs: Specs, known: int, directory: Path) -> int:
    passed = [result for result in found if result.state == "passed"]
    for result in sorted(found, key=lambda each: each.name):
        if result.state != "passed":
            print(f"{result.state:9} {result.seconds:6.0f} s  {result.name}\n{_indented(result.message)}")
    left_out = sum(len(names) for names in specs.left_out.values())
    print(
        f"{len(passed)} of {len(found)} passed; {left_out} of {known} are left out, each with its reason, in specs.yaml"
    )
    print(f"logs and reports: {directory}")
    return 0 if len(passed) == len(found) else 1


def _indented(message: str) -> str:
    return "\n".join(f"    {line}" for line in message.strip().splitlines()[:8])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
