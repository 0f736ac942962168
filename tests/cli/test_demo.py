"""`muster demo`: what it prints, and the three commands it ends with."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KUBECTL = sorted(Path("~/.cache/muster/kube").expanduser().glob("*/bin/kubectl"))


@pytest.fixture(scope="module")
def printed() -> str:
    command = [sys.executable, "-m", "muster.cli.main", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "podgroup/training  Scheduled",
        "compositepodgroup/service  Scheduled",
        "podgroup/sweep-",
        "podgroup/too-large  Unschedulable: rack-",
        "podgroup/urgent  WaitingForVictims: waiting for",
        "podgroup/urgent  Scheduled",
        "$ muster explain podgroup/too-large\npodgroup too-large does not fit: rack-",
        "What would help (each was tried):\n  1. ",
        "$ muster topology\n",
        "Go on with a cluster of your own:",
    ],
)
def test_the_demo_tells(line: str, printed: str):
    assert line in printed


def test_the_demo_takes_well_under_a_minute(printed: str):
    seconds = [
        float(line.split("s  ")[0]) for line in printed.splitlines() if line.startswith("   ") and "s  " in line[:10]
    ]
    assert max(seconds) < 45


def test_only_pods_that_had_to_go_were_evicted(printed: str):
    evicted = [line for line in printed.splitlines() if "evicted for urgent" in line]
    assert 0 < len(evicted) <= 8


@pytest.mark.e2e
@pytest.mark.skipif(not KUBECTL, reason="no kubectl: build it with e2e/kube")
def test_the_three_commands_work_as_they_are_printed(printed: str, tmp_path: Path):
    up, apply, tree = [line.strip().partition("   #")[0] for line in printed.splitlines()[-3:]]
    kubeconfig = ROOT / "kubeconfig"
    server = subprocess.Popen(shlex.split(up), cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        for _ in range(300):
            if kubeconfig.exists():
                break
            time.sleep(0.1)
        words = [str(KUBECTL[-1]), *shlex.split(apply)[1:]]
        assert "service created" in subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        words = [word for word in shlex.split(tree) if word != "--watch"]
        shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert "cpg/service (default)" in shown
    finally:
        server.terminate()
        server.wait(30)
        kubeconfig.unlink(missing_ok=True)
