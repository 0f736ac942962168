"""`muster explain`, `queue`, `tree`, `topology`: the answers people read, from a snapshot file."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from muster.cli import queue, topology, tree
from muster.cli.main import run
from muster.scheduler.simulation.snapshot import encode
from muster.views.schedulers import scheduler_for
from tests.build.objects import BLOCK, RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world
from tests.cli.snapshots import a_world_with_kept_room, saved, snapshot_of


def a_busy_world() -> TestWorld:
    nodes = [a_node(f"n{i}", cpu=4, gpu=8, rack=f"r{i // 2}", block=f"b{i // 4}") for i in range(8)]
    world = a_world(nodes)
    world.add(a_gang("training", 4, topology=RACK), *pods(4, "training", cpu=2)).run()
    world.add(a_composite("service", 2), a_gang("prefill", 2, parent="service"), a_gang("decode", 3, parent="service"))
    world.add(*pods(2, "prefill"), *pods(3, "decode")).run()
    world.add(a_gang("stuck", 20, topology=RACK, created=5), *pods(20, "stuck", created=5)).run()
    return world


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    return saved(a_busy_world(), tmp_path / "cluster.json.gz")


def test_explain_says_why_and_what_would_help(snapshot: str, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", "podgroup/stuck", "-n", "ns", "--snapshot", snapshot]) == 0
    text = capsys.readouterr().out
    assert text.startswith("podgroup stuck does not fit: rack r")
    assert "of 20 seats; short of cpu by" in text
    assert "What would help (each was tried):" in text
    assert "lower minCount of stuck from 20 to" in text


def test_explain_answers_as_a_scheduler_with_the_given_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("child", 2, parent="nowhere"), *pods(2, "child"))
    asked = ["explain", "pg/child", "-n", "ns", "--snapshot", saved(world, tmp_path / "cluster.json.gz")]
    assert run(asked) == 0
    assert "parent nowhere does not exist" in capsys.readouterr().out
    assert run([*asked, "--feature-gates", "CompositePodGroup=false"]) == 0
    assert "podgroup child fits now" in capsys.readouterr().out
    assert run([*asked, "--feature-gates", "NoSuchGate=false"]) == 64
    assert "--feature-gates: unrecognized feature gate: NoSuchGate" in capsys.readouterr().err


def test_a_snapshot_knows_the_gates_of_its_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("child", 2, parent="nowhere"), *pods(2, "child"))
    file = tmp_path / "cluster.json"
    file.write_bytes(encode(msgspec.structs.replace(snapshot_of(world), gates={"CompositePodGroup": False})))
    assert run(["queue", "--snapshot", str(file)]) == 0
    assert "nowhere" not in capsys.readouterr().out


def test_explain_json_is_the_documented_schema(snapshot: str, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", "pg/stuck", "-n", "ns", "--snapshot", snapshot, "-o", "json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out.encode())
    assert found["version"] == "muster.dev/explanation/v1"
    assert found["verdict"] == "Infeasible"
    assert {"levels", "rules", "holders", "preemption", "wakes", "suggestions", "sentence"} <= found.keys()
    documented = Path(__file__).parents[2].joinpath("docs/explain.md").read_text()
    for field in found:
        assert f"`{field}`" in documented, f"{field} is not documented"


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("podgroup/training", "waits for nothing: 4 of 4 members are bound"),
        ("pod/training-0", "pod training-0 runs on n"),
        ("cpg/service", "waits for nothing: 2 of 2 child groups are bound"),
    ],
)
def test_what_runs_is_said_to_wait_for_nothing(
    target: str, says: str, snapshot: str, capsys: pytest.CaptureFixture[str]
):
    assert run(["explain", target, "-n", "ns", "--snapshot", snapshot]) == 0
    assert says in capsys.readouterr().out


def test_an_unknown_name_is_answered_with_names_like_it(snapshot: str, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", "podgroup/trainin", "-n", "ns", "--snapshot", snapshot]) == 65
    error = capsys.readouterr().err
    assert 'podgroup "trainin" does not exist in namespace "ns"; there is training' in error


@pytest.mark.parametrize("target", ["training", "node/x", "podgroup/", "/x"])
def test_a_target_that_makes_no_sense_is_explained(target: str, snapshot: str, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", target, "--snapshot", snapshot]) == 64
    assert "muster explain podgroup/training" in capsys.readouterr().err


def test_a_snapshot_of_a_newer_version_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "new.json"
    file.write_text('{"format": "muster.dev/snapshot", "version": 99, "objects": {}}')
    assert run(["queue", "--snapshot", str(file)]) == 65
    assert "use a newer muster" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"{", b"\x1f\x8bgarbage", b'{"format": "other"}', b"\xff\xfe"])
def test_a_file_that_is_no_snapshot_is_refused_clearly(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "bad"
    file.write_bytes(content)
    assert run(["tree", "--snapshot", str(file)]) == 65
    assert str(file) in capsys.readouterr().err


def test_an_empty_cluster_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = saved(a_world(), tmp_path / "empty.json.gz")
    for question, answer in (
        ("queue", "Nothing waits."),
        ("tree", "There are no groups."),
        ("topology", "0 free seats for"),
    ):
        assert run([question, "--snapshot", file]) == 0
        assert answer in capsys.readouterr().out


def test_an_unreachable_server_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "kubeconfig"
    file.write_text(
        '{"apiVersion": "v1", "kind": "Config", "current-context": "x",'
        '"clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],'
        '"users": [{"name": "x", "user": {}}], "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}'
    )
    assert run(["queue", "--kubeconfig", str(file)]) == 69
    assert "cannot be reached" in capsys.readouterr().err


# --- screens ---------------------------------------------------------------------------------------


def test_the_queue_fits_a_narrow_terminal():
    scheduler = scheduler_for(snapshot_of(a_busy_world()))
    narrow = queue.screen(queue.rows(scheduler), 80)
    assert all(len(line) <= 80 for line in narrow.splitlines())
    assert narrow.splitlines()[0].startswith(
        "#   NAME       NAMESPACE   MEMBERS   PRIORITY   WAITING   START     REASON"
    )
    assert "pg/stuck" in narrow


def test_a_wide_queue_shows_the_message():
    scheduler = scheduler_for(snapshot_of(a_busy_world()))
    wide = queue.screen(queue.rows(scheduler), 200)
    assert "MESSAGE" in wide
    assert "of 20 seats" in wide


def test_the_queue_is_in_order():
    world = a_world()
    world.add(a_pod("b", created=1), a_pod("a", created=2), a_pod("top", priority=5, created=9))
    lines = queue.rows(scheduler_for(snapshot_of(world)))
    assert [(line.position, line.name) for line in lines] == [(1, "top"), (2, "b"), (3, "a")]


def test_a_tree_shows_where_groups_lie():
    scheduler = scheduler_for(snapshot_of(a_busy_world()))
    screen = tree.screen(tree.trees(scheduler), 200).splitlines()
    assert screen[0] == "● cpg/service (ns)  2/2"
    assert screen[1].startswith("   ● pg/decode  3/3  on n")
    training = next(line for line in screen if "pg/training" in line)
    assert "rack=r" in training
    assert any(line.startswith("○ pg/stuck (ns)  0/20  20 pending") for line in screen)


def test_only_one_tree_is_shown_when_asked(snapshot: str, capsys: pytest.CaptureFixture[str]):
    assert run(["tree", "decode", "--snapshot", snapshot]) == 0
    text = capsys.readouterr().out
    assert "cpg/service" in text
    assert "training" not in text
    assert run(["tree", "nobody", "--snapshot", snapshot]) == 65


def test_topology_counts_the_largest_gang_at_each_level():
    scheduler = scheduler_for(snapshot_of(a_busy_world()))
    found = topology.topology(scheduler, (BLOCK, RACK), {"cpu": "1"})
    free = 8 * 4 - (4 * 2 + 5)
    assert found.total_seats == free
    assert found.largest[RACK] == max(place.seats for place in found.places if place.depth == 1) > 4
    assert [place.value for place in found.places][:3] == ["b0", "r0", "r1"]
    assert sum(place.seats for place in found.places if place.depth == 0) == free


def test_topology_fits_a_narrow_terminal():
    scheduler = scheduler_for(snapshot_of(a_busy_world()))
    screen = topology.screen(topology.topology(scheduler, (BLOCK, RACK)), 60)
    assert all(len(line) <= 60 for line in screen.splitlines())


@pytest.mark.parametrize("question", ["queue", "tree", "topology"])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_every_view_is_readable_by_programs(
    question: str, form: str, snapshot: str, capsys: pytest.CaptureFixture[str]
):
    assert run([question, "--snapshot", snapshot, "-o", form]) == 0
    text = capsys.readouterr().out
    if form == "json":
        assert msgspec.json.decode(text.encode())
    else:
        assert msgspec.yaml.decode(text.encode())


def test_a_level_that_no_node_has_is_refused(snapshot: str, capsys: pytest.CaptureFixture[str]):
    assert run(["topology", "--key", "example.com/row", "--snapshot", snapshot]) == 65
    assert 'no node has the label "example.com/row"' in capsys.readouterr().err


def test_an_amount_that_is_none_is_refused(snapshot: str, capsys: pytest.CaptureFixture[str]):
    assert run(["topology", "--cpu", "much", "--snapshot", snapshot]) == 64
    assert "'much' is no amount of cpu" in capsys.readouterr().err


def test_a_cluster_without_known_levels_is_shown_node_by_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = saved(a_world([a_node("n0", cpu=2), a_node("n1", cpu=3)]), tmp_path / "c.json.gz")
    assert run(["topology", "--snapshot", file]) == 0
    text = capsys.readouterr().out
    assert "on one node: 3" in text
    assert "n1" in text


def test_every_node_is_listed_when_asked(snapshot: str, capsys: pytest.CaptureFixture[str]):
    assert run(["topology", "--nodes", "--key", RACK, "--snapshot", snapshot]) == 0
    assert "  n7  " in capsys.readouterr().out


def test_a_name_in_another_namespace_is_found(snapshot: str, capsys: pytest.CaptureFixture[str]):
    assert run(["explain", "podgroup/training", "-n", "other", "--snapshot", snapshot]) == 65
    assert "it exists in ns: use --namespace" in capsys.readouterr().err


def test_a_job_is_explained_by_its_pods(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_gang("g", 2), *pods(2, "g", owner="sweep")).run()
    file = saved(world, tmp_path / "c.json.gz")
    assert run(["explain", "job/sweep", "-n", "ns", "--snapshot", file]) == 0
    assert capsys.readouterr().out.startswith("podgroup g does not fit")
    assert run(["explain", "job/other", "-n", "ns", "--snapshot", file]) == 65


def test_a_tree_tells_why_a_group_is_not_whole():
    world = a_busy_world()
    world.remove("Pod", "training-0")
    world.run()
    rows = {row.name: row for row in tree.trees(scheduler_for(snapshot_of(world)))}
    assert rows["training"].reason == "BelowMinimum"
    assert rows["stuck"].reason == "Unschedulable"
    assert rows["service"].reason == ""


def test_a_kubeconfig_that_does_not_exist_is_no_surprise(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["queue", "--kubeconfig", str(tmp_path / "nope")]) == 65
    error = capsys.readouterr().err
    assert "no such kubeconfig file" in error
    assert "unexpected" not in error


def test_fewer_than_no_gpus_are_refused(snapshot: str, capsys: pytest.CaptureFixture[str]):
    assert run(["topology", "--gpu", "-1", "--snapshot", snapshot]) == 64
    assert "is no amount of" in capsys.readouterr().err


def test_nodes_of_an_amount_that_is_none_are_refused_by_the_flags_name(capsys: pytest.CaptureFixture[str]):
    assert run(["simulate", "-f", "-", "--nodes", "3", "--node-cpu", "abc"]) == 64
    assert "--node-cpu" in capsys.readouterr().err


# --- kept room -------------------------------------------------------------------------------------


def test_the_queue_shows_the_expected_start():
    rows = {row.name: row for row in queue.rows(scheduler_for(snapshot_of(a_world_with_kept_room())))}
    assert rows["large"].expected_start == "2026-01-01T00:10:00Z"
    assert rows["next"].expected_start == "unknown"


def test_the_topology_shows_kept_seats():
    found = topology.topology(scheduler_for(snapshot_of(a_world_with_kept_room())))
    kept = {domain.value: domain.kept for domain in found.places}
    assert kept == {"r0": {}, "r1": {"ns/large": 2}}
    assert "2 kept for ns/large" in topology.screen(found, 120)


def test_explain_shows_kept_room_to_the_group_and_to_the_others(tmp_path, capsys: pytest.CaptureFixture[str]):
    file = saved(a_world_with_kept_room(), tmp_path / "cluster.json.gz")
    assert run(["explain", "pg/large", "-n", "ns", "--snapshot", file]) == 0
    own = " ".join(capsys.readouterr().out.split())
    assert "room is kept for it in rack r1 on 2 nodes, expected start 2026-01-01T00:10:00Z" in own
    assert "ends-2, ends-3 must leave first" in own
    assert run(["explain", "pg/next", "-n", "ns", "--snapshot", file]) == 0
    other = " ".join(capsys.readouterr().out.split())
    assert "room in rack r1 on 2 nodes is kept for podgroup ns/large" in other
