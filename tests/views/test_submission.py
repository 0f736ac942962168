"""Submitting manifests to a server in memory: what is refused, when it is complete, and that it repeats itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from muster.api import gates
from muster.cli.main import run
from muster.scheduler.simulation.snapshot import Snapshot
from muster.server.served_kinds import build_registry
from muster.views import submission
from muster.views.documents import Document
from muster.views.simulate import Answer, simulate
from muster.views.submission import EXPANDED
from tests.build.objects import a_node
from tests.build.scheduler import a_world
from tests.cli.snapshots import snapshot_of

LABELS = {"app": "web"}
SWEEP = ["default/sweep-2pfpp", "default/sweep-kwqdq", "default/sweep-lpx68"]
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
}
ALWAYS = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}}


def an_object(api_version: str, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def a_job(name: str = "sweep", pods: int = 3, **spec: Any) -> dict[str, Any]:
    return an_object("batch/v1", "Job", name, parallelism=pods, completions=pods, **{"template": TEMPLATE, **spec})


def a_deployment(name: str = "web", replicas: int = 3) -> dict[str, Any]:
    selector = {"matchLabels": LABELS}
    return an_object("apps/v1", "Deployment", name, replicas=replicas, selector=selector, template=ALWAYS)


def a_replica_set(name: str = "web", replicas: int = 3) -> dict[str, Any]:
    return a_deployment(name, replicas) | {"kind": "ReplicaSet"}


def a_stateful_set() -> dict[str, Any]:
    spec = a_deployment("db")["spec"]
    return an_object("apps/v1", "StatefulSet", "db", serviceName="db", **spec)


def a_cron_job() -> dict[str, Any]:
    return an_object("batch/v1", "CronJob", "nightly", schedule="0 3 * * *", jobTemplate={"spec": a_job()["spec"]})


def a_daemon_set() -> dict[str, Any]:
    selector = {"matchLabels": LABELS}
    return an_object("apps/v1", "DaemonSet", "agent", selector=selector, template=ALWAYS)


def a_replication_controller() -> dict[str, Any]:
    return an_object("v1", "ReplicationController", "old", replicas=2, selector=LABELS, template=ALWAYS)


def a_train_job() -> dict[str, Any]:
    return an_object("trainer.kubeflow.org/v1alpha1", "TrainJob", "train", trainer={})


def a_job_of_another() -> dict[str, Any]:
    return a_job("queued", managedBy="kueue.x-k8s.io/multikueue")


def written(path: Path, *objects: dict[str, Any]) -> str:
    """A file with one line of JSON for each object."""
    path.write_bytes(b"\n---\n".join(msgspec.json.encode(obj) for obj in objects))
    return str(path)


def simulated(*objects: dict[str, Any], nodes: int = 1) -> Answer:
    snapshot = snapshot_of(a_world([a_node(f"n{i}", cpu=64) for i in range(nodes)]))
    return simulate(snapshot, [[Document("test", 1, obj) for obj in objects]])


def pods_of(answer: Answer) -> list[str]:
    return [placement.pod for placement in answer.placements]


# --- what cannot be expanded -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "obj",
    [a_stateful_set(), a_daemon_set(), a_cron_job(), a_replication_controller(), a_train_job(), a_job_of_another()],
    ids=lambda obj: obj["kind"],
)
def test_what_no_controller_expands_is_refused(obj: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = written(tmp_path / "all.yaml", a_job(), obj)
    assert run(["simulate", "-f", file, "--nodes", "1"]) == 65
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{file}:3: {obj['kind']}/{obj['metadata']['name']}: " in captured.err
    assert "simulate creates the pods of Deployment, Job, ReplicaSet, JobSet and LeaderWorkerSet" in captured.err


def test_no_served_kind_with_a_pod_template_is_passed_over():
    """Every kind that the server stores either has its pods created, or is refused."""
    expanded = {each.kind for each in EXPANDED}
    held = {"ReplicationController", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"}
    served = {kind.kind for kind in build_registry(gates.DEFAULT).kinds}
    assert held <= served
    for kind in held - expanded:
        key = "jobTemplate" if kind == "CronJob" else "template"
        with pytest.raises(Exception, match="cannot be simulated"):
            submission._check_expandable(Document("f", 1, an_object("x/v1", kind, "o", **{key: TEMPLATE})))


@pytest.mark.parametrize("obj", [a_job(), a_deployment(), a_replica_set()], ids=lambda obj: obj["kind"])
def test_every_kind_that_is_named_as_supported_is_expanded(obj: Any):
    assert simulated(obj).pods == 3


def test_objects_that_have_no_pods_are_taken():
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}
    service = an_object("v1", "Service", "s", selector=LABELS, ports=[{"port": 80}])
    workload = an_object("scheduling.k8s.io/v1beta1", "Workload", "w", podGroupTemplates=[])
    workload["spec"]["podGroupTemplates"] = [{"name": "t", "schedulingPolicy": {"basic": {}}}]
    answer = simulated(config, service, workload)
    assert (answer.pods, answer.fits) == (0, True)


# --- complete, or said that it is not --------------------------------------------------------------


def test_all_pods_of_a_large_job_are_there():
    assert simulated(a_job(pods=700), nodes=8).pods == 700


def test_giving_up_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submission, "TIME_LIMIT_SECONDS", 0.0)
    file = written(tmp_path / "job.yaml", a_job())
    assert run(["simulate", "-f", file, "--nodes", "1"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "the controllers did not finish within 0 s" in captured.err
    assert "there is no answer" in captured.err


def test_pods_that_are_refused_end_the_simulation_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "serviceAccountName": "nobody"}}
    file = written(tmp_path / "job.yaml", a_job(template=template))
    assert run(["simulate", "-f", file, "--nodes", "1"]) == 65
    error = capsys.readouterr().err
    assert "the pods cannot be created: default/sweep: Error creating: " in error
    assert 'serviceaccount "nobody" not found' in error


def test_a_suspended_job_has_nothing_to_place():
    assert simulated(a_job(suspend=True)).pods == 0


# --- the same each time ----------------------------------------------------------------------------


def test_pods_have_the_same_names_in_every_process():
    """Literals: a hash that differs from process to process would not give these."""
    assert pods_of(simulated(a_job())) == SWEEP


async def names(*objects: dict[str, Any]) -> list[tuple[str, str]]:
    [events] = await submission.submit([[Document("f", 1, obj) for obj in objects]], Snapshot({}), "default")
    return [(event.kind, event.object.metadata.name) for event in events]


async def test_everything_that_controllers_create_has_the_same_name_each_time():
    gang = a_job("gang", scheduling={"schedulingPolicy": {"gang": {"minCount": 3}}})
    objects = [gang, a_job("plain"), a_job("indexed", completionMode="Indexed"), a_deployment()]
    first, second, reverse = await names(*objects), await names(*objects), await names(*reversed(objects))
    assert first == second == reverse
    assert len(set(first)) == len(first)
    assert [kind for kind, _ in first].count("Pod") == 12
    assert {"PodGroup", "Workload", "ReplicaSet"} <= {kind for kind, _ in first}


async def test_owners_of_the_same_name_do_not_share_the_names_of_their_pods():
    both = await names(a_job("web"), a_replica_set("web"))
    alone = await names(a_job("web"))
    assert set(alone) < set(both)


def test_the_names_do_not_depend_on_a_refusal_in_between():
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "late"}}
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "serviceAccountName": "late"}}
    job = a_job(template=template)
    assert pods_of(simulated(job, account)) == pods_of(simulated(account, job))


async def test_creation_times_follow_the_batches():
    batches = [[Document("a", 1, a_job("late"))], [Document("b", 1, a_job("early"))]]
    first, second = await submission.submit(batches, Snapshot({}), "default")
    times = [{event.object.metadata.creation_timestamp for event in batch} for batch in (first, second)]
    assert [len(each) for each in times] == [1, 1]
    assert max(times[0]) < min(times[1])


def test_the_first_example_of_the_page_about_devices_is_simulated_with_its_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    page = (Path(__file__).parents[2] / "docs" / "devices.md").read_text()
    manifest = tmp_path / "job.yaml"
    manifest.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    devices = ("--devices", "gpu:8", "--devices", "nic:2")
    assert run(["simulate", "--nodes", "4", *devices, "-f", str(manifest)]) == 0
    assert "It fits: 4 of 4 pods would be bound" in capsys.readouterr().out
    assert run(["simulate", "--nodes", "1", *devices, "-f", str(manifest)]) != 0
    assert "1 cannot allocate all claims" in " ".join(capsys.readouterr().out.split())
