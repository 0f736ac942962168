"""What the commands read of a scheduler."""

from __future__ import annotations

import ast
from pathlib import Path

from muster.cli.source import scheduler_for
from muster.scheduler.cycle.view import SchedulerView
from tests.cli.snapshots import snapshot_of
from tests.scheduler.worlds import RACK, a_gang, a_node, a_pod, a_world, pods

CLI = Path(__file__).parents[2] / "src" / "muster" / "cli"


def a_view() -> SchedulerView:
    world = a_world([a_node("n0", cpu=4, rack="r0"), a_node("n1", cpu=2)])
    world.add(a_pod("runs", node="n0", cpu=1), a_gang("g", 9), *pods(9, "g"))
    return scheduler_for(snapshot_of(world)).view()


def test_groups_pods_and_the_queue():
    view = a_view()
    assert [key.name for key in view.groups] == ["g"]
    assert sorted({member.ref.name for member in view.members.values()})[-1] == "runs"
    assert [root.key.name for root in view.queue()] == ["g"]


def test_nodes_as_arrays():
    view = a_view()
    assert view.has_nodes
    assert view.nodes.tolist() == [True, True]
    assert [view.label_value(RACK, number) if number else "" for number in view.labels(RACK)] == ["r0", ""]
    assert (view.domain_of("n0", RACK), view.domain_of("n1", RACK), view.domain_of("nowhere", RACK)) == ("r0", "", "")


def test_amounts_and_seats():
    view = a_view()
    allocatable, requested = view.allocatable("cpu"), view.requested("cpu")
    assert allocatable is not None
    assert requested is not None
    assert allocatable.tolist() == [4000, 2000]
    assert requested.tolist() == [1000, 0]
    assert view.allocatable("example.com/none") is None
    assert view.requested("example.com/none") is None
    assert view.seats({"cpu": "1500m"}).tolist() == [2, 1]


def test_an_empty_cluster_has_no_nodes():
    view = scheduler_for(snapshot_of(a_world())).view()
    assert not view.has_nodes
    assert view.nodes.tolist() == []


def test_no_other_module_of_the_command_line_reads_the_scheduler_s_state():
    reads = [
        f"{path.name}:{node.lineno}"
        for path in CLI.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("world", "state", "forest", "cluster")
    ]
    assert reads == []
