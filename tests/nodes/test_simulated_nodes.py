"""Simulated kubelets register nodes, keep leases and play pods through their lives."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.resources import JOBS, LEASES, NODES, PODS
from muster.client.clock import SystemClock
from muster.nodes import Inventory, Timing
from muster.nodes.heartbeat import Heartbeat, interval
from muster.nodes.inventory import BLOCK, FAILED, GPU, RACK, ZONE
from tests.nodes.conftest import NodeWorld


def asks(**requests: str) -> dict[str, Any]:
    named = {GPU if name == "gpu" else name: amount for name, amount in requests.items()}
    limits = {name: amount for name, amount in named.items() if "/" in name}
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": named, "limits": limits}}]}


def condition(obj: Any, kind: str) -> Any:
    return next(each for each in obj["status"]["conditions"] if each["type"] == kind)


async def test_nodes_stand_in_racks_blocks_and_zones(world: NodeWorld):
    await world.machines(count=12, cpu="8", memory="32Gi", gpu=4, nodes_per_rack=2, racks_per_block=3)

    node = await world.get(NODES, "node-7")
    labels = node["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == "node-7"
    assert (labels[RACK], labels[BLOCK], labels[ZONE]) == ("rack-3", "block-1", "zone-1")
    assert node["status"]["allocatable"] | {"cpu": "8", "memory": "32Gi", GPU: "4"} == node["status"]["allocatable"]
    assert condition(node, "Ready")["status"] == "True"


@pytest.mark.parametrize("count", [1, 7, 100])
def test_neighbours_in_number_are_neighbours_in_the_room(count: int):
    inventory = Inventory(count=count, nodes_per_rack=4, racks_per_block=2)
    zones = [inventory.labels(index)[ZONE] for index in range(count)]
    blocks = {inventory.labels(index)[BLOCK]: inventory.labels(index)[ZONE] for index in range(count)}

    assert zones == sorted(zones)
    assert all(blocks[inventory.labels(index)[BLOCK]] == zones[index] for index in range(count))


async def test_nodes_that_exist_are_not_made_again(world: NodeWorld):
    await world.machines(count=2)
    before = (await world.get(NODES, "node-0"))["metadata"]["uid"]
    await world.stop()

    await world.machines(count=3)

    assert (await world.get(NODES, "node-0"))["metadata"]["uid"] == before
    assert await world.get(NODES, "node-2") is not None


async def test_leases_are_renewed_after_the_clock_was_set_back():
    renewed: list[str] = []

    class Leases:
        async def patch(self, resource: Any, name: str, patch: Any, namespace: str) -> None:
            renewed.append(patch["spec"]["renewTime"])

    class SetClock(SystemClock):
        time = 1_800_000_000.0

        def now(self) -> float:
            return self.time

    clock = SetClock()
    heartbeat = Heartbeat(Leases(), clock, lambda: [("n", "u")])  # type: ignore[arg-type]
    await heartbeat.beat()
    clock.time -= 3600.0
    await heartbeat.beat()
    await heartbeat.beat()

    assert len(renewed) == 2


async def test_every_node_renews_its_lease(world: NodeWorld):
    await world.machines(count=3)
    await world.advance(1)
    first = (await world.get(LEASES, "node-1", "kube-node-lease"))["spec"]["renewTime"]

    await world.advance(30)

    lease = await world.get(LEASES, "node-1", "kube-node-lease")
    assert lease["spec"]["renewTime"] > first
    assert lease["metadata"]["ownerReferences"][0]["kind"] == "Node"


def test_many_nodes_renew_less_often():
    assert interval(10) == 10
    assert interval(5000) == 100


async def test_a_bound_pod_starts_after_a_moment(world: NodeWorld):
    await world.machines(Timing(start=2.0), count=1)
    await world.placed("p")
    await world.advance(1)
    assert await world.phase_of("p") == "Pending"

    await world.advance(2)

    pod = await world.get(PODS, "p")
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["startTime"]
    assert pod["status"]["podIP"].startswith("10.")
    assert condition(pod, "Ready")["status"] == "True"
    assert condition(pod, "PodScheduled")["status"] == "True"
    container = pod["status"]["containerStatuses"][0]
    assert (container["name"], container["ready"], list(container["state"])) == ("c", True, ["running"])


async def test_a_pod_starts_although_its_first_status_met_a_conflict(world: NodeWorld, monkeypatch: pytest.MonkeyPatch):
    await world.machines(count=1)
    await world.placed("p")
    send, refused = world.client.patch, [ApiError(409, "Conflict", "the object has been modified")]

    async def patch(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("subresource") == "status" and refused:
            raise refused.pop()
        return await send(*args, **kwargs)

    monkeypatch.setattr(world.client, "patch", patch)
    await world.advance(0.5)
    assert await world.phase_of("p") == "Pending"
    assert not refused
    await world.advance(1.0)
    assert await world.phase_of("p") == "Running"


async def test_a_pod_starts_although_the_clock_was_set_back(world: NodeWorld):
    await world.machines(Timing(start=5.0), count=1)
    await world.placed("p")
    world.clock._now -= 3600.0
    world.clock._sleepers = [(due - 3600.0, order, future) for due, order, future in world.clock._sleepers]

    await world.advance(12)

    assert await world.phase_of("p") == "Running"


async def test_a_pod_says_how_long_it_takes_to_start(world: NodeWorld):
    await world.machines(count=1)
    await world.placed("slow", annotations={"muster.dev/start-seconds": "60"})

    await world.advance(59)
    assert await world.phase_of("slow") == "Pending"
    await world.advance(2)
    assert await world.phase_of("slow") == "Running"


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
async def test_a_pod_runs_as_long_as_it_says_and_ends_as_it_says(world: NodeWorld, code: str, phase: str):
    await world.machines(count=1)
    notes = {"muster.dev/run-seconds": "30", "muster.dev/exit-code": code}
    await world.placed("p", annotations=notes, restartPolicy="Never")
    await world.advance(29)
    assert await world.phase_of("p") == "Running"

    await world.advance(3)

    pod = await world.get(PODS, "p")
    assert pod["status"]["phase"] == phase
    state = pod["status"]["containerStatuses"][0]["state"]
    assert list(state) == ["terminated"]
    assert state["terminated"]["exitCode"] == int(code)


async def test_a_batch_pod_ends_by_itself_and_a_service_does_not(world: NodeWorld):
    await world.machines(Timing(batch_run=10.0), count=1)
    await world.placed("batch", restartPolicy="Never")
    await world.placed("service")

    await world.advance(1000)

    assert await world.phase_of("batch") == "Succeeded"
    assert await world.phase_of("service") == "Running"


async def test_a_pod_is_stopped_when_its_deadline_is_exceeded(world: NodeWorld):
    await world.machines(timing=Timing(start=0.0), count=1)
    await world.placed("p", activeDeadlineSeconds=20)
    await world.advance(19)
    assert await world.phase_of("p") == "Running"

    await world.advance(2)

    status = (await world.get(PODS, "p"))["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert "longer than the specified deadline" in status["message"]


async def test_a_pod_that_ends_in_time_does_not_notice_its_deadline(world: NodeWorld):
    await world.machines(timing=Timing(start=0.0), count=1)
    await world.placed(
        "p", annotations={"muster.dev/run-seconds": "5"}, restartPolicy="Never", activeDeadlineSeconds=20
    )

    await world.advance(25)

    assert await world.phase_of("p") == "Succeeded"


async def test_the_deadline_counts_from_the_first_start(world: NodeWorld):
    await world.machines(timing=Timing(start=0.0), count=1)
    fails = {"muster.dev/run-seconds": "8", "muster.dev/exit-code": "1"}
    await world.placed("p", annotations=fails, restartPolicy="OnFailure", activeDeadlineSeconds=20)

    for _ in range(21):
        await world.advance(1)

    assert (await world.get(PODS, "p"))["status"]["reason"] == "DeadlineExceeded"


async def test_a_deadline_that_is_set_later_counts(world: NodeWorld):
    await world.machines(timing=Timing(start=0.0), count=1)
    await world.placed("p")
    await world.advance(5)

    await world.client.patch(PODS, "p", {"spec": {"activeDeadlineSeconds": 10}}, "default")
    await world.advance(6)

    assert await world.phase_of("p") == "Failed"


async def test_a_pod_that_restarts_on_failure_runs_again(world: NodeWorld):
    await world.machines(count=1)
    notes = {"muster.dev/run-seconds": "5", "muster.dev/exit-code": "1"}
    await world.placed("p", annotations=notes, restartPolicy="OnFailure")

    await world.advance(12)

    pod = await world.get(PODS, "p")
    assert pod["status"]["phase"] == "Running"
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 2


async def test_a_deleted_pod_gets_its_grace_and_goes(world: NodeWorld):
    await world.machines(Timing(stop=5.0), count=1)
    await world.placed("p")
    await world.advance(1)

    await world.client.delete(PODS, "p", "default")
    await world.advance(4)
    assert await world.get(PODS, "p") is not None
    await world.advance(2)
    assert await world.get(PODS, "p") is None


async def test_a_short_grace_is_honoured(world: NodeWorld):
    await world.machines(Timing(stop=100.0), count=1)
    await world.placed("p")
    await world.advance(1)

    await world.client.delete(PODS, "p", "default", grace_period_seconds=2)
    await world.advance(3)

    assert await world.get(PODS, "p") is None


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ({"cpu": "3"}, "OutOfcpu"),
        ({"memory": "3Gi"}, "OutOfmemory"),
        ({"gpu": "3"}, "OutOfnvidia.com/gpu"),
    ],
)
async def test_what_does_not_fit_is_rejected(world: NodeWorld, requests: dict[str, str], reason: str):
    await world.machines(count=1, cpu="4", memory="4Gi", gpu=4)
    await world.placed("first", **asks(**requests))

    await world.placed("second", **asks(**requests))
    await world.advance(1)

    pod = await world.get(PODS, "second")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", reason)
    assert pod["status"]["message"].startswith("Pod was rejected: Node didn't have enough resource: ")
    assert await world.phase_of("first") == "Running"


def with_port(**port: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 8080, **port}]}]}


@pytest.mark.parametrize(
    ("first", "second", "phase"),
    [
        ({}, {}, "Failed"),
        ({"hostIP": "10.0.0.1"}, {}, "Failed"),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, "Running"),
        ({}, {"protocol": "UDP"}, "Running"),
        ({}, {"hostPort": 8081}, "Running"),
    ],
)
async def test_a_port_of_the_node_has_one_holder(
    world: NodeWorld, first: dict[str, Any], second: dict[str, Any], phase: str
):
    await world.machines(count=1)
    await world.placed("first", **with_port(**first))
    await world.placed("second", **with_port(**second))
    await world.advance(1)

    status = (await world.get(PODS, "second"))["status"]
    assert status["phase"] == phase
    if phase == "Failed":
        assert status["reason"] == "NodePorts"
        await world.client.delete(PODS, "first", "default", grace_period_seconds=0)
        await world.placed("third", **with_port(**second))
        await world.advance(1)
        assert await world.phase_of("third") == "Running", "the port is free again"


async def test_a_node_takes_only_so_many_pods(world: NodeWorld):
    await world.machines(count=1, pods=1)
    await world.placed("first")
    await world.placed("second")
    await world.advance(1)

    assert (await world.get(PODS, "second"))["status"]["reason"] == "OutOfpods"


async def test_room_comes_back_when_a_pod_ends(world: NodeWorld):
    await world.machines(count=1, cpu="4")
    await world.placed("first", annotations={"muster.dev/run-seconds": "5"}, **asks(cpu="4"))
    await world.advance(10)

    await world.placed("second", **asks(cpu="4"))
    await world.advance(1)

    assert await world.phase_of("second") == "Running"


async def test_nodes_of_others_are_never_touched(world: NodeWorld):
    await world.node("theirs", status={"conditions": [{"type": "Ready", "status": "Unknown"}]})
    await world.machines(count=1)
    await world.placed("p", node="theirs")
    revision = (await world.get(NODES, "theirs"))["metadata"]["resourceVersion"]

    await world.advance(100)
    await world.client.delete(PODS, "p", "default")
    await world.advance(100)

    assert (await world.get(NODES, "theirs"))["metadata"]["resourceVersion"] == revision
    assert await world.get(LEASES, "theirs", "kube-node-lease") is None
    pod = await world.get(PODS, "p")
    assert pod["status"]["phase"] == "Pending"
    assert pod["metadata"]["deletionTimestamp"]


async def test_a_failed_node_falls_silent_and_its_pods_stand_still(world: NodeWorld):
    nodes = await world.machines(count=2)
    await world.placed("p", annotations={"muster.dev/run-seconds": "30"}, restartPolicy="Never")
    await world.advance(15)

    await nodes.fail("node-0")
    await world.advance(1)
    renewed = (await world.get(LEASES, "node-0", "kube-node-lease"))["spec"]["renewTime"]
    await world.client.delete(PODS, "p", "default")
    await world.advance(100)

    ready = condition(await world.get(NODES, "node-0"), "Ready")
    assert (ready["status"], ready["message"]) == ("Unknown", "Kubelet stopped posting node status.")
    assert (await world.get(LEASES, "node-0", "kube-node-lease"))["spec"]["renewTime"] == renewed
    assert (await world.get(PODS, "p"))["status"]["phase"] == "Running"
    assert condition(await world.get(NODES, "node-1"), "Ready")["status"] == "True"


async def test_a_recovered_node_goes_on_where_it_stopped(world: NodeWorld):
    nodes = await world.machines(count=1)
    await world.placed("ends", annotations={"muster.dev/run-seconds": "30"}, restartPolicy="Never")
    await world.placed("goes")
    await world.advance(15)
    await nodes.fail("node-0")
    await world.client.delete(PODS, "goes", "default")
    await world.advance(100)

    await nodes.recover("node-0")
    await world.advance(3)

    assert condition(await world.get(NODES, "node-0"), "Ready")["status"] == "True"
    assert FAILED not in (await world.get(NODES, "node-0"))["metadata"].get("annotations", {})
    assert await world.phase_of("ends") == "Succeeded"
    assert await world.get(PODS, "goes") is None


async def test_a_failed_node_is_tainted_at_once_and_cleared_on_recovery(world: NodeWorld):
    await world.start("node-lifecycle-controller")
    nodes = await world.machines(count=1)
    await world.advance(5)

    await nodes.fail("node-0")
    await world.advance(1)
    taints = {each["key"] for each in (await world.get(NODES, "node-0"))["spec"]["taints"]}
    assert taints == {"node.kubernetes.io/unreachable"}

    await nodes.recover("node-0")
    await world.advance(1)
    assert "taints" not in (await world.get(NODES, "node-0"))["spec"]


async def test_a_restarted_simulation_goes_on_with_running_pods(world: NodeWorld):
    await world.machines(count=1)
    await world.placed("p", annotations={"muster.dev/run-seconds": "30"}, restartPolicy="Never")
    await world.advance(10)
    await world.stop()

    await world.machines(count=1)
    await world.advance(15)
    assert await world.phase_of("p") == "Running"
    await world.advance(10)
    assert await world.phase_of("p") == "Succeeded"


async def test_the_sleep_before_the_stop_is_part_of_the_grace(world: NodeWorld):
    await world.machines(Timing(stop=1.0), count=1)
    hook = {"preStop": {"sleep": {"seconds": 10}}}
    container = {"name": "c", "image": "i", "lifecycle": hook}
    await world.placed("p", containers=[container])
    await world.placed("q", containers=[container], terminationGracePeriodSeconds=4)
    await world.advance(1)
    for name in ("p", "q"):
        await world.client.delete(PODS, name, "default")
    await world.advance(3.9)
    assert await world.phase_of("q") == "Running"
    await world.advance(0.2)
    assert (await world.phase_of("p"), await world.phase_of("q")) == ("Running", None)
    await world.advance(6.8)
    assert await world.phase_of("p") == "Running"
    await world.advance(0.2)
    assert await world.phase_of("p") is None


async def test_a_pod_can_be_said_to_stop_slowly(world: NodeWorld):
    await world.machines(Timing(stop=1.0), count=1)
    await world.placed("p", annotations={"muster.dev/stop-seconds": "20"})
    await world.advance(1)
    await world.client.delete(PODS, "p", "default")
    await world.advance(19)
    assert await world.phase_of("p") == "Running"
    await world.advance(2)
    assert await world.phase_of("p") is None


async def test_the_log_says_what_the_containers_would_do(world: NodeWorld):
    nodes = await world.machines(count=1)
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c"], "args": ["echo hi"]}
    said = {"muster.dev/log": "hi\nthere", "muster.dev/run-seconds": "5"}
    await world.placed("p", annotations=said, containers=[container], restartPolicy="Never")
    await world.advance(2)
    lines = [line.partition(" ")[2] for line in nodes.log("default", "p").splitlines()]
    assert lines == [
        "started on node-0",
        "simulated container c: image busybox, sh -c echo hi; runs for 5 s, then ends with exit code 0",
        "hi",
        "there",
    ]


async def test_the_log_of_a_pod_tells_its_story(world: NodeWorld):
    nodes = await world.machines(count=1)
    await world.placed("p", annotations={"muster.dev/run-seconds": "5"}, restartPolicy="Never")
    await world.advance(10)

    lines = nodes.log("default", "p").splitlines()
    said = [line.split(" ", 1)[1] for line in lines]
    assert (said[0], said[-1]) == ("started on node-0", "ended with exit code 0")
    assert nodes.log("default", "unknown") == ""


async def test_a_job_runs_to_its_end_on_simulated_nodes(world: NodeWorld):
    await world.start("job-controller")
    await world.machines(count=1)
    await world.job(parallelism=2, completions=4)
    for _ in range(6):
        for pod in await world.pods():
            if "nodeName" not in pod["spec"]:
                await world.client.bind("default", pod["metadata"]["name"], pod["metadata"]["uid"], "node-0")
        await world.advance(12)

    assert (await world.get(JOBS, "j"))["status"]["succeeded"] == 4
