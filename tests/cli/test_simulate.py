"""`muster simulate` and `muster snapshot`: answers before submitting, and files that hold no secrets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from muster.api import types
from muster.cli.main import run
from muster.engine.cluster_snapshot import take_snapshot
from muster.scheduler.simulation.snapshot import decode, encode
from muster.testing.cluster import Cluster, api_server
from muster.views import schedulers
from muster.views.documents import Document
from muster.views.simulate import simulate
from tests.build.objects import a_node, a_pod
from tests.build.scheduler import a_world
from tests.cli.snapshots import a_world_with_kept_room, saved, snapshot_of

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


def test_files_know_the_priority_classes_of_later_files(capsys: pytest.CaptureFixture[str]):
    files = ["-f", str(EXAMPLES / "urgent-gang.yaml"), "-f", str(EXAMPLES / "priorities.yaml")]
    assert run(["simulate", *files, *NODES]) == 0
    assert "It fits: 46 of 46 pods" in capsys.readouterr().out


def test_directories_inside_a_directory_are_read_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    inner = tmp_path / "team" / "a"
    inner.mkdir(parents=True)
    for name in ("priorities.yaml", "training-gang.yaml"):
        (inner / name).write_text((EXAMPLES / name).read_text())
    assert run(["simulate", "-f", str(tmp_path), "-R", *NODES]) == 0
    assert "8 of 8 pods" in capsys.readouterr().out


def test_the_json_names_placements_and_reasons(capsys: pytest.CaptureFixture[str]):
    files = ["-f", str(EXAMPLES / "priorities.yaml"), "-f", str(EXAMPLES / "too-large.yaml")]
    assert run(["simulate", *files, *NODES, "-o", "json"]) == 1
    answer = msgspec.json.decode(capsys.readouterr().out.encode())
    assert answer["fits"] is False
    assert len(answer["pending"]) == 12
    assert answer["pods"] == 12
    [group] = answer["groups"]
    assert (group["kind"], group["name"], group["status"]) == ("PodGroup", "too-large", "False")
    assert "came nearest" in group["message"]


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
    assert "1 pod would be evicted. Nothing was changed." in text
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
        snapshot = await take_snapshot(plane.client)
    assert len(snapshot.objects["Pod"]) == 1
    assert canary.encode() not in encode(snapshot)


@pytest.mark.parametrize(
    ("gates", "bound"), [({}, 0), ({"CompositePodGroup": False}, 2), ({"GangScheduling": False}, 2)]
)
def test_a_simulation_has_the_gates_of_the_cluster(gates: dict[str, bool], bound: int):
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 2}},
            "workloadRef": {"workloadName": "w", "templateName": "t"},
            "parentCompositePodGroupName": "nowhere",
        },
    }
    pod = {"schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "c", "image": "i"}]}
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{i}"}, "spec": pod} for i in range(2)]
    cluster = msgspec.structs.replace(snapshot_of(a_world([a_node("n0", cpu=8)])), gates=gates)
    answer = simulate(cluster, [[Document("f", 1, each) for each in (group, *pods)]])
    assert len(answer.placements) == bound


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
    first, second = (simulate(snapshot, [a_batch(*manifest)]) for _ in range(2))
    assert first == second
    assert {placement.node for placement in first.placements} == {"n0", "n1"}


def a_batch(*objects: dict) -> list[Document]:
    return [Document("manifests.yaml", 1, obj) for obj in objects]


def a_pod_manifest(name: str, cpu: int, **spec: object) -> dict:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(cpu)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def test_later_files_see_the_earlier_ones_placed():
    snapshot = snapshot_of(a_world([a_node("n0", cpu=2)]))
    small, large = a_batch(a_pod_manifest("small", 1)), a_batch(a_pod_manifest("large", 2))
    first = simulate(snapshot, [small, large])
    assert [p.pod for p in first.placements] == ["default/small"]
    assert "Insufficient cpu" in first.pending[0].reason
    assert [p.pod for p in simulate(snapshot, [large, small]).placements] == ["default/large"]


def test_a_later_file_that_evicts_an_earlier_one_does_not_fit_as_a_whole(capsys: pytest.CaptureFixture[str]):
    files = [
        x for name in ("priorities", "training-gang", "urgent-gang") for x in ("-f", str(EXAMPLES / f"{name}.yaml"))
    ]
    assert run(["simulate", *files, "--nodes", "48", "--node-gpu", "8"]) == 1
    assert "It does not fit: 46 of 54 pods would be bound, 8 pods would be evicted." in capsys.readouterr().out


def test_classes_and_namespaces_may_come_after_what_needs_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    manifest = tmp_path / "all.yaml"
    manifest.write_text(
        """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: team}
spec: {priorityClassName: vip, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: vip}
value: 1000
"""
    )
    assert run(["simulate", "-f", str(manifest), "--nodes", "1"]) == 0
    assert "team/p" in capsys.readouterr().out


def test_priority_classes_of_the_cluster_are_known():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("low", node="n0"))
    snapshot = snapshot_of(world)
    vip = msgspec.convert({"metadata": {"name": "vip"}, "value": 7}, types.PriorityClass)
    snapshot.objects["PriorityClass"] = [vip]
    answer = simulate(snapshot, [a_batch(a_pod_manifest("p", 1, priorityClassName="vip"))])
    assert answer.fits
    assert [victim.pod for victim in answer.victims] == ["ns/low"]


# --- kept room -------------------------------------------------------------------------------------


def test_room_that_is_kept_for_another_group_is_not_given_away():
    answer = simulate(snapshot_of(a_world_with_kept_room()), [a_batch(a_pod_manifest("p", 1))])
    assert not answer.fits, "n2 and n3 have room, but it is kept for the gang large"
    assert "room in rack r1 on 2 nodes is kept for podgroup ns/large" in answer.pending[0].reason


def test_kept_room_is_used_by_what_is_gone_in_time():
    short = a_pod_manifest("p", 1, activeDeadlineSeconds=60)
    answer = simulate(snapshot_of(a_world_with_kept_room()), [a_batch(short)])
    assert answer.fits
    assert {placement.node for placement in answer.placements} <= {"n2", "n3"}


def test_kept_room_is_free_for_a_higher_priority():
    snapshot = snapshot_of(a_world_with_kept_room())
    vip = {"value": 7, "preemptionPolicy": "Never"}
    vip |= {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "vip"}}
    urgent = a_batch(vip, a_pod_manifest("p", 1, priorityClassName="vip"))
    assert simulate(snapshot, [urgent]).fits


def test_without_a_condition_that_says_so_no_room_is_kept():
    snapshot = snapshot_of(a_world_with_kept_room())
    silent = [msgspec.structs.replace(group, status=type(group.status)()) for group in snapshot.objects["PodGroup"]]
    snapshot.objects["PodGroup"] = silent
    assert simulate(snapshot, [a_batch(a_pod_manifest("p", 1))]).fits


def test_a_deployment_is_expanded_to_its_pods():
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }
    assert simulate(snapshot_of(a_world([a_node("n0")])), [a_batch(deployment)]).pods == 3


def test_what_exists_already_stays_as_it_is():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("p", node="n0", namespace="default"))
    answer = simulate(snapshot_of(world), [a_batch(a_pod_manifest("p", 1))])
    assert (answer.pods, answer.fits) == (0, True)


def test_a_group_without_enough_pods_says_so():
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    pod = a_pod_manifest("g-0", 1, schedulingGroup={"podGroupName": "g"})
    answer = simulate(snapshot_of(a_world([a_node("n0")])), [a_batch(group, pod)])
    assert not answer.fits
    assert answer.pending[0].reason == "pod group g: 1 of 2 members exist"


def test_nodes_and_a_snapshot_contradict_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = saved(a_world(), tmp_path / "c.json.gz")
    assert run(["simulate", "-f", str(EXAMPLES), "--nodes", "1", "--snapshot", file]) == 64
    assert "cannot be combined" in capsys.readouterr().err


def test_nothing_is_written_to_a_live_cluster(tmp_path: Path):
    with Cluster(https=True, nodes=2) as cluster:
        before = cluster.client.request("GET", "/api/v1/pods")["metadata"]["resourceVersion"]
        files = ["-f", str(EXAMPLES / "priorities.yaml"), "-f", str(EXAMPLES / "gang-job.yaml")]
        assert run(["simulate", *files, "--kubeconfig", str(cluster.kubeconfig)]) == 1
        assert run(["snapshot", "--kubeconfig", str(cluster.kubeconfig), "-f", str(tmp_path / "s.gz")]) == 0
        for question in ("queue", "tree", "topology"):
            assert run([question, "--kubeconfig", str(cluster.kubeconfig)]) == 0
        assert cluster.client.request("GET", "/api/v1/pods")["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    ("content", "says"), [(None, "No such file"), ("a: b: c", "not valid YAML"), ("- 1", "an object")]
)
def test_a_file_that_is_no_manifest_is_named(
    content: str | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    manifest = tmp_path / "manifest.yaml"
    if content is not None:
        manifest.write_text(content)
    assert run(["simulate", "-f", str(manifest), "--nodes", "1"]) == 65
    error = capsys.readouterr().err
    assert f"{manifest}:1" in error
    assert says in error


def test_an_undecided_answer_has_an_exit_code_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    given = schedulers.config_for
    monkeypatch.setattr(schedulers, "config_for", lambda snapshot: replace(given(snapshot), budget_steps=1))
    sizes = [7, 7, 6, 6, 6, 5, 5, 5, 4, 4, 4, 3, 3]
    policy = {"gang": {"minCount": len(sizes)}}
    meta = {"name": "g"}
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": meta}
    objects = [group | {"spec": {"schedulingPolicy": policy}}]
    objects += [a_pod_manifest(f"g-{i}", cpu, schedulingGroup={"podGroupName": "g"}) for i, cpu in enumerate(sizes)]
    manifest = tmp_path / "hard.json"
    manifest.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert run(["simulate", "-f", str(manifest), "--nodes", "5", "--node-cpu", "13"]) == 2
    assert "Undecided: 0 of 13 pods would be bound. Nothing was changed." in capsys.readouterr().out
