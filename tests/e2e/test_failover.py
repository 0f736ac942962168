"""Two schedulers, one leader: killed, stopped or cut off, it leaves no gang half done and writes nothing late."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from e2e.kube.cluster import RealCluster

from muster.api.installation import NAME, NAMESPACE, installation
from tests.e2e.objects import bound, condition, gang_manifest, large_node, members
from tests.e2e.processes import Kubectl, Muster, eventually, scheduler
from tests.e2e.proxy import Proxy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SIZE = 200
ELECTION = (
    "--leader-elect=true",
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
    f"--leader-elect-resource-namespace={NAMESPACE}",
)
# So slow that a gang can be caught in the middle.
SLOW = ("--concurrent-binds=1", "--kube-api-qps=40", "--kube-api-burst=1")


@pytest.fixture
def cluster(kube: Path) -> Iterator[RealCluster]:
    with RealCluster(kube, native=True, audit=True) as cluster:
        cluster.start_controller_manager()
        kubectl = Kubectl(kube, cluster.kubeconfig)
        rights = [each for each in installation("muster") if each["kind"] not in ("Deployment", "PodDisruptionBudget")]
        kubectl.create(*rights, *(large_node(f"n{i}") for i in range(4)))
        yield cluster


def half_bound(kubectl: Kubectl) -> None:
    kubectl.create(gang_manifest("g", SIZE), *members("g", SIZE))
    eventually(lambda: len(bound(kubectl, "g-")) >= 20, else_="the first twenty binds")
    assert len(bound(kubectl, "g-")) < SIZE, "the gang was bound too quickly to be caught in the middle"


def finished(kubectl: Kubectl) -> None:
    eventually(lambda: len(bound(kubectl, "g-")) == SIZE, 60, "the whole gang bound")
    eventually(lambda: condition(kubectl, "g") == "True", 30, "the gang's condition")


def writes_since(cluster: RealCluster, user: str, when: datetime) -> list[str]:
    """What a user's scheduler wrote after a moment, leases aside."""
    found: list[str] = []
    for line in (cluster.root / "audit.log").read_text().splitlines():
        event = json.loads(line)
        received = datetime.fromisoformat(event["requestReceivedTimestamp"].replace("Z", "+00:00"))
        ours = event["user"].get("username") == user and event.get("userAgent", "").startswith("muster-scheduler")
        if ours and received > when and event["verb"] not in ("get", "list", "watch"):
            where = event.get("objectRef") or {}
            if where.get("resource") != "leases":
                found.append(f"{event['verb']} {where.get('resource')} {where.get('name')}")
    return found


def test_another_scheduler_finishes_the_gang_of_a_killed_leader(
    cluster: RealCluster, kube: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kube, cluster.kubeconfig)
    with scheduler(cluster.kubeconfig, tmp_path / "a.log", *ELECTION, *SLOW) as first:
        account = cluster.as_service_account(NAMESPACE, NAME)
        with scheduler(account, tmp_path / "b.log", *ELECTION, until='"Connected"') as second:
            half_bound(kubectl)
            first.process.kill()
            first.process.wait()
            second.wait_for('"Became leader"')
            finished(kubectl)


def test_a_leader_that_slept_past_its_deadline_writes_nothing(cluster: RealCluster, kube: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(kube, cluster.kubeconfig)
    with scheduler(cluster.kubeconfig, tmp_path / "a.log", *ELECTION, *SLOW) as first:
        account = cluster.as_service_account(NAMESPACE, NAME)
        with scheduler(account, tmp_path / "b.log", *ELECTION, until='"Connected"') as second:
            half_bound(kubectl)
            first.process.send_signal(signal.SIGSTOP)
            try:
                second.wait_for('"Became leader"')
                finished(kubectl)
                awake = datetime.now(UTC)
            finally:
                first.process.send_signal(signal.SIGCONT)
            assert ended(first) != 0
            assert "lost the lease" in first.said()
            assert writes_since(cluster, "admin", awake) == []


def test_a_leader_that_is_cut_off_stops_at_its_deadline(cluster: RealCluster, kube: Path, tmp_path: Path) -> None:
    kubectl = Kubectl(kube, cluster.kubeconfig)
    with (
        Proxy(cluster.server) as proxy,
        scheduler(proxy.kubeconfig(cluster.kubeconfig, tmp_path), tmp_path / "a.log", *ELECTION, *SLOW) as first,
    ):
        account = cluster.as_service_account(NAMESPACE, NAME)
        with scheduler(account, tmp_path / "b.log", *ELECTION, until='"Connected"') as second:
            half_bound(kubectl)
            proxy.swallow()
            cut = time.monotonic()
            assert ended(first) != 0
            assert time.monotonic() - cut < 20, "its deadline is three seconds after its last renewal"
            second.wait_for('"Became leader"')
            finished(kubectl)


def ended(running: Muster) -> int:
    try:
        return running.process.wait(30)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"it still runs:\n{running.said()[-2000:]}") from None
