"""The screens, letter by letter, on a narrow and on a wide terminal.

`MUSTER_GOLDEN=write pytest tests/cli/test_screens.py` writes the files anew after a wanted change.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from muster.cli import ages
from muster.cli.main import run
from tests.build.objects import BLOCK, RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world
from tests.cli.snapshots import saved

GOLDEN = Path(__file__).parent / "golden"
SCREENS = {
    "explain-gang": ["explain", "podgroup/stuck", "-n", "ns"],
    "explain-tree": ["explain", "cpg/large", "-n", "ns"],
    "explain-pod": ["explain", "pod/choosy", "-n", "ns"],
    "queue": ["queue"],
    "tree": ["tree"],
    "topology": ["topology", "--key", BLOCK, "--key", RACK, "--gpu", "4"],
}


def a_busy_world() -> TestWorld:
    nodes = [a_node(f"n{i}", cpu=8, gpu=8, rack=f"r{i // 2}", block=f"b{i // 4}", kind="H100") for i in range(8)]
    world = a_world(nodes)
    world.add(a_gang("training", 4, topology=RACK), *pods(4, "training", cpu=4)).run()
    world.add(a_composite("service", 2), a_gang("prefill", 2, parent="service"), a_gang("decode", 3, parent="service"))
    world.add(*pods(2, "prefill"), *pods(3, "decode")).run()
    world.add(a_gang("stuck", 20, topology=RACK, created=5), *pods(20, "stuck", created=5)).run()
    world.add(a_composite("large", 2, created=6, topology=BLOCK))
    world.add(a_gang("large-a", 4, parent="large", created=6), *pods(4, "large-a", created=6, cpu=6))
    world.add(a_gang("large-b", 4, parent="large", created=6), *pods(4, "large-b", created=6, cpu=6)).run()
    world.add(a_gang("early", 3, created=7), *pods(2, "early", created=7)).wait(3)
    return world.add(a_pod("choosy", created=8, nodeSelector={"kind": "h100"})).run()


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_as_it_was(
    name: str, width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(ages, "now", lambda: datetime(2026, 1, 1, 0, 10, 8, tzinfo=UTC))
    file = saved(a_busy_world(), tmp_path / "cluster.json.gz")
    assert run([*SCREENS[name], "--snapshot", file]) == 0
    shown = capsys.readouterr().out
    golden = GOLDEN / f"{name}-{width}.txt"
    if os.environ.get("MUSTER_GOLDEN") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown)
    assert shown == golden.read_text()
    assert max(map(len, shown.splitlines())) <= width
    assert "\x1b" not in shown, "colour belongs on a terminal only"


def test_the_queue_says_what_a_pod_without_its_group_waits_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    world = a_world([a_node("n0")])
    world.add(a_pod("orphan", "nowhere"), a_gang("child", 1, parent="no-top"), a_pod("c", "child")).wait(3)
    file = saved(world, tmp_path / "cluster.json.gz")
    assert run(["queue", "--snapshot", file]) == 0
    shown = capsys.readouterr().out
    assert "pod group nowhere does not exist" in shown
    assert "<unknown>" not in shown
    assert "composite pod group no-top does not exist" in shown


@pytest.mark.parametrize("command", ["queue", "tree"])
def test_all_namespaces_wins_over_one(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = saved(a_busy_world(), tmp_path / "cluster.json.gz")
    assert run([command, "--snapshot", file, "-n", "elsewhere"]) == 0
    assert "stuck" not in capsys.readouterr().out
    assert run([command, "--snapshot", file, "-n", "elsewhere", "-A"]) == 0
    assert "stuck" in capsys.readouterr().out
