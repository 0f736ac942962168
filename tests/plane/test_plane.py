"""The plane as a whole: components in order, the gang road end to end, failures on the way."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.resources import CONFIG_MAPS, ENDPOINT_SLICES, JOBS, NODES, POD_GROUPS, PODS, SERVICES
from muster.cli import up
from muster.client.http import HTTPClient
from muster.client.protocol import Client
from muster.plane.components import Component
from muster.plane.options import NodeOptions, Options
from muster.plane.plane import Plane
from muster.server.auth.bootstrap import CLUSTER_ROLES
from muster.testing import a_gang, a_node, a_pod, api_server


async def until(condition: Any, seconds: float = 15.0) -> None:
    """Wait until an asynchronous condition holds."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_gang_that_is_created_runs() -> None:
    async with api_server(controllers=True, scheduler=True, nodes=3) as plane:
        for obj in a_gang("g", 6, cpu="8"):
            await plane.client.create(POD_GROUPS if obj["kind"] == "PodGroup" else PODS, obj)

        async def running() -> bool:
            pods = (await plane.client.list(PODS, "default")).items
            return [pod["status"]["phase"] for pod in pods] == ["Running"] * 6

        await until(running)


async def test_a_job_that_is_created_completes_and_its_pods_have_a_log() -> None:
    async with api_server(https=True, controllers=True, scheduler=True, nodes=1) as plane:
        template = {
            "metadata": {"annotations": {"muster.dev/run-seconds": "0"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
        }
        await plane.client.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template}}, "default")

        async def started() -> bool:
            pods = (await plane.client.list(PODS, "default")).items
            return bool(pods) and pods[0]["status"]["phase"] != "Pending"

        await until(started)
        name = (await plane.client.list(PODS, "default")).items[0]["metadata"]["name"]
        async with HTTPClient(plane.api.credentials.client_config(plane.url)) as client:
            path = f"/api/v1/namespaces/default/pods/{name}/log"
            assert "started on node-0" in await client.text(path)
            assert (await client.text(path, {"timestamps": "true"}))[:2] == "20"
            assert len((await client.text(path, {"tailLines": "1"})).splitlines()) == 1
            for wrong in ("9" * 5000, "-1", "\u00b2", "x"):
                with pytest.raises(ApiError, match="tailLines: expected a whole number") as refused:
                    await client.text(path, {"tailLines": wrong})
                assert refused.value.code == 400
            metrics = await client.text("/metrics")
            assert "scheduler_schedule_attempts_total" in metrics
            assert "muster_event_loop_held_seconds_count" in metrics
            assert "[+]scheduler ok" in await client.text("/readyz", {"verbose": "true"})


class Unready(Component):
    """A component that is never ready."""

    name = "unready"

    def prepare(self, client: Client, options: Options) -> asyncio.Event:
        return asyncio.Event()

    async def run(self) -> None:
        await asyncio.Event().wait()


@pytest.fixture
def never_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first component of every plane never gets ready, so that the others do not begin to start."""
    monkeypatch.setattr("muster.plane.plane.Controllers", lambda authority: Unready())


@pytest.mark.usefixtures("never_ready")
async def test_health_and_metrics_are_answered_before_any_component_has_started() -> None:
    plane = Plane(Options(freeze=False))
    starting = asyncio.create_task(plane.start())

    async def listening() -> bool:
        return bool(plane.url)

    await until(listening)
    try:
        async with HTTPClient(plane.api.credentials.client_config(plane.url)) as client:
            assert await client.text("/livez") == "ok"
            assert "python_info" in await client.text("/metrics")
            with pytest.raises(ApiError) as refused:
                await client.text("/readyz")
            assert refused.value.code == 500
            assert "[-]scheduler failed" in str(refused.value)
            assert "[-]unready failed" in str(refused.value)
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)


@pytest.mark.usefixtures("never_ready")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_a_start_that_does_not_come_to_an_end(
    number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = Options(data=tmp_path, kubeconfig=tmp_path / "kubeconfig", freeze=False)
    serving = asyncio.create_task(up._serve(options))

    async def listening() -> bool:
        return (tmp_path / "kubeconfig").exists()

    await until(listening)
    os.kill(os.getpid(), number)
    async with asyncio.timeout(15):
        await serving

    assert capsys.readouterr().out == "Stopped.\n"
    async with Plane(Options(data=tmp_path, scheduler=False, controllers=False, freeze=False)):
        pass  # nobody holds the directory any more


async def test_other_servers_find_whose_certificates_to_trust(tmp_path: Path) -> None:
    for _ in range(2):  # and after a restart as well
        async with Plane(Options(data=tmp_path, nodes=NodeOptions(count=0))) as plane:
            found = await plane.client.get(CONFIG_MAPS, "extension-apiserver-authentication", "kube-system")
            ours = plane.api.credentials.authority.pem.decode()
            assert found["data"]["client-ca-file"] == ours
            assert found["data"]["requestheader-client-ca-file"] not in ("", ours), "no client may pose as a proxy"


async def test_files_of_ours_are_private_and_a_directory_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    async with Plane(Options(data=data, nodes=NodeOptions(count=0))):
        files = [file for file in data.rglob("*") if file.is_file()]
        assert {file.name for file in files} >= {"muster.db", "ca.key"}
        assert {file.name: file.stat().st_mode & 0o077 for file in files} == {file.name: 0 for file in files}
        assert (data / "pki").stat().st_mode & 0o777 == 0o700
    assert data.stat().st_mode & 0o777 == 0o755


async def test_programs_in_the_cluster_find_the_api_server_and_its_authority(tmp_path: Path) -> None:
    for _ in range(2):  # and after a restart, on another port
        async with Plane(Options(data=tmp_path, nodes=NodeOptions(count=0), scheduler=False)) as plane:
            port = int(plane.url.rpartition(":")[2])
            service = await plane.client.get(SERVICES, "kubernetes", "default")
            assert service["spec"]["clusterIP"] == "10.96.0.1"
            assert service["spec"]["ports"][0] == {"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}
            endpoints = await plane.client.get(ENDPOINT_SLICES, "kubernetes", "default")
            assert endpoints["endpoints"][0]["addresses"] == ["127.0.0.1"]
            assert endpoints["ports"][0]["port"] == port

            async def published(plane: Plane = plane) -> bool:
                found = (await plane.client.list(CONFIG_MAPS)).items
                roots = [each for each in found if each["metadata"]["name"] == "kube-root-ca.crt"]
                pem = plane.api.credentials.authority.pem.decode()
                return len(roots) >= 4 and all(each["data"] == {"ca.crt": pem} for each in roots)

            await until(published)


async def test_parts_can_be_left_out() -> None:
    async with api_server() as plane:
        await plane.client.create(NODES, a_node("n1"))
        await plane.client.create(PODS, a_pod("p"))
        await asyncio.sleep(0.1)
        assert "nodeName" not in (await plane.client.get(PODS, "p", "default"))["spec"]


async def test_nodes_of_others_are_left_alone() -> None:
    async with api_server(controllers=True, scheduler=True, nodes=0) as plane:
        await plane.client.create(NODES, a_node("mine"))
        await plane.client.create(PODS, a_pod("p"))

        async def bound() -> bool:
            return "nodeName" in (await plane.client.get(PODS, "p", "default"))["spec"]

        await until(bound)
        await asyncio.sleep(0.1)
        assert (await plane.client.get(PODS, "p", "default"))["status"]["phase"] == "Pending"


async def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    bad = tmp_path / "config.yaml"
    bad.write_text("apiVersion: v1\nkind: Wrong\n")
    options = Options(data=tmp_path / "d", scheduler_config=bad, nodes=NodeOptions(1), freeze=False)
    with pytest.raises(ValueError):
        await Plane(options).start()
    async with Plane(Options(data=tmp_path / "d", scheduler=False, controllers=False, freeze=False)):
        pass


async def test_a_component_that_ends_by_itself_is_reported() -> None:
    async with api_server(controllers=True) as plane:
        waiting = asyncio.create_task(plane.failure())
        await asyncio.sleep(0)
        component = plane._components[0]
        assert component.task is not None
        component.task.cancel()
        assert "controllers ended" in str(await waiting)


async def test_a_scheduler_configuration_is_used(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: special}]\n"
    )
    options = Options(https=False, scheduler_config=file, nodes=NodeOptions(1), freeze=False)
    async with Plane(options) as plane:
        await plane.client.create(PODS, a_pod("mine", schedulerName="special"))
        await plane.client.create(PODS, a_pod("other"))

        async def bound() -> bool:
            return "nodeName" in (await plane.client.get(PODS, "mine", "default"))["spec"]

        await until(bound)
        assert "nodeName" not in (await plane.client.get(PODS, "other", "default"))["spec"]


async def test_the_settings_of_the_scheduler_reach_its_scheduler(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{pluginConfig: [{name: Muster, args: {budgetSteps: 1, bindTimeoutSeconds: 20}}]}]\n"
    )
    options = Options(https=False, scheduler_config=file, nodes=NodeOptions(5, cpu="13"), freeze=False)
    sizes = [7, 7, 6, 6, 6, 5, 5, 5, 4, 4, 4, 3, 3]  # they fill the nodes, which takes more than ten steps to find
    async with Plane(options) as plane:
        group, *pods = a_gang("g", len(sizes))
        await plane.client.create(POD_GROUPS, group)
        for pod, cpu in zip(pods, sizes, strict=True):
            pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": str(cpu)}}
            await plane.client.create(PODS, pod)

        async def undecided() -> bool:
            status = (await plane.client.get(POD_GROUPS, "g", "default")).get("status", {})
            return any(said["reason"] == "PlacementNotGuaranteed" for said in status.get("conditions", ()))

        await until(undecided)


async def test_an_aggregated_role_shows_what_it_gathers() -> None:
    async with api_server(controllers=True) as plane:
        role = {
            "metadata": {"name": "read-widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
            "rules": [{"verbs": ["get"], "apiGroups": ["x"], "resources": ["widgets"]}],
        }
        await plane.client.create(CLUSTER_ROLES, role)

        async def gathered() -> bool:
            admin = await plane.client.get(CLUSTER_ROLES, "admin")
            return any("widgets" in rule.get("resources", ()) for rule in admin["rules"])

        await until(gathered)
        await plane.client.delete(CLUSTER_ROLES, "read-widgets")

        async def gone() -> bool:
            return not await gathered()

        await until(gone)
