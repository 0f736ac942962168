"""`muster simulate` and `muster snapshot`: answers before submitting, and files that hold no secrets."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from muster.cli.main import run
from muster.cli.simulate import simulate
from muster.engine.gather import gather
from muster.scheduler.snapshot import decode, encode
from muster.testing.cluster import api_server
from tests.cli.snapshots import saved, snapshot_of
from tests.scheduler.worlds import a_node, a_pod, a_world

EXAMPLES = Path(__file__).parents[2] / "examples"
NODES = ["--nodes", "64", "--node-gpu", "8"]


@pytest.mark.parametrize(
    ("file", "code", "says"),
    [
        ("training-gang.yaml", 0, "It fits: 8 of 8 pods would be bound"),
        ("serving-tree.yaml", 0, "It fits: 15 of 15 pods would be bound"),
        ("gang-job.yaml", 0, "It fits: 6 of 6 pods would be bound"),
        ("urgent-gang.yaml", 0, "It fits: 46 of 46 pods would be bound"),
        ("too-large.yaml", 1, "It does not fit: 0 of 12 pods would be bound"),
    ],
)
def test_every_example_does_what_its_comment_says(file: str, code: int, says: str, capsys: pytest.CaptureFixture[str]):
    files = ["-f", str(EXAMPLES / "priorities.yaml"), "-f", str(EXAMPLES / file)]
    assert run(["simulate", *files, *NODES]) == code
    assert says in capsys.readouterr().out


def test_the_json_names_placements_and_reasons(capsys: pytest.CaptureFixture[str]):
    files = ["-f", str(EXAMPLES / "priorities.yaml"), "-f", str(EXAMPLES / "too-large.yaml")]
    assert run(["simulate", *files, *NODES, "-o", "json"]) == 1
    answer = msgspec.json.decode(capsys.readouterr().out.encode())
    assert answer["fits"] is False
    assert len(answer["pending"]) == 12
    assert "came nearest" in answer["groups"]["PodGroup/too-large"]


def test_victims_are_named_and_nothing_is_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_pod("low", node="n0", cpu=2))
    file = saved(world, tmp_path / "c.json.gz")
    before = Path(file).read_bytes()
    manifest = tmp_path / "vip.yaml"
    manifest.write_text(
        """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: vip}
value: 1000
---
apiVersion: v1
kind: Pod
metadata: {name: vip}
spec: {priorityClassName: vip, containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}
"""
    )
    assert run(["simulate", "-f", str(manifest), "--snapshot", file]) == 0
    text = capsys.readouterr().out
    assert "ns/low    Pod/vip" in text
    assert "1 pods would be evicted. Nothing was changed." in text
    assert Path(file).read_bytes() == before


def test_a_manifest_the_server_would_refuse_is_refused_in_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    manifest = tmp_path / "bad.yaml"
    manifest.write_text(
        "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n"
        "spec: {schedulingPolicy: {gang: {minCount: -1}}}\n"
    )
    assert run(["simulate", "-f", str(manifest), *NODES]) == 65
    assert "must be greater than or equal to 1" in capsys.readouterr().err


def test_a_snapshot_is_the_same_bytes_again():
    world = a_world([a_node("n1"), a_node("n0")])
    world.add(a_pod("b"), a_pod("a"))
    once = encode(snapshot_of(world))
    assert encode(decode(once)) == once


async def test_a_snapshot_holds_no_secret_of_the_cluster():
    canary = "CANARY-4711"
    async with api_server() as plane:
        from muster.api.resources import PODS, Resource

        secrets = Resource("", "v1", "secrets", "Secret", True)
        config_maps = Resource("", "v1", "configmaps", "ConfigMap", True)
        meta = {"name": "x", "namespace": "default", "annotations": {"note": canary}}
        await plane.client.create(
            secrets, {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"k": canary}}
        )
        await plane.client.create(
            config_maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": canary}}
        )
        container = {
            "name": "c",
            "image": "i",
            "env": [{"name": "TOKEN", "value": canary}],
            "command": [canary],
            "args": [canary],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}
        await plane.client.create(PODS, pod)
        snapshot = await gather(plane.client)
    assert len(snapshot.objects["Pod"]) == 1
    assert canary.encode() not in encode(snapshot)


def test_a_simulation_gives_the_same_answer_twice():
    manifest = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{i}"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
        }
        for i in range(3)
    ]
    snapshot = snapshot_of(a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)]))
    first, second = (simulate(snapshot, manifest) for _ in range(2))
    assert {p.node for p in first.placements} == {p.node for p in second.placements} == {"n0", "n1"}
