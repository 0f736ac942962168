"""The dashboard of a real kube-apiserver: every page from a user's machine, and installed, for two users with tokens.

There is no kubelet, so the command line of the installed Deployment is run here: with the variables and the mounted
files of a pod, as the account that the installation made.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from e2e.kube.cluster import DEFAULT_CONTROLLERS, RealCluster, answers, free_ports

from muster.api.dashboard_installation import NAME, dashboard_installation
from muster.api.installation import NAMESPACE
from muster.client.kubeconfig import SERVICE_ACCOUNT_DIR
from muster.testing import a_node, a_pod, a_pod_group
from tests.e2e.browser import MUSTER, OUTPUT, ROOT, Pages, a_tab, axe_source, serious_faults, served
from tests.e2e.objects import CRD, condition, gang_manifest, members
from tests.e2e.processes import Kubectl, eventually, scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

RBAC = "rbac.authorization.k8s.io"
RACK, BLOCK, ZONE = "topology.muster.dev/rack", "topology.muster.dev/block", "topology.kubernetes.io/zone"
HIDDEN = ("hidden-gang", "team-b")


@pytest.fixture(scope="module")
def cluster(kube: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RealCluster, Kubectl, Path]]:
    """16 GPU nodes, a gang that is bound, one that does not fit, one in another namespace; and the scheduler's log."""
    logs = tmp_path_factory.mktemp("dashboard")
    decisions = logs / "decisions.jsonl"
    with RealCluster(kube, native=True, audit=True, gates=("WorkloadWithJob",)) as real:
        real.start_controller_manager((*DEFAULT_CONTROLLERS, "job-controller"))
        kubectl = Kubectl(kube, real.kubeconfig)
        kubectl.create(*[gpu_node(i) for i in range(16)])
        with scheduler(real.kubeconfig, logs / "muster.log", "--decision-log", str(decisions)):
            for name in ("priorities", "training-gang", "too-large"):
                eventually(lambda name=name: kubectl("apply", "-f", str(ROOT / "examples" / f"{name}.yaml")))
            kubectl("wait", "podgroup/training", "--for=condition=PodGroupInitiallyScheduled", "--timeout=60s")
            kubectl("create", "namespace", "team-b")
            kubectl.create(*hidden_gang())
            kubectl(
                *("wait", "podgroup/hidden-gang", "-n", "team-b", "--for=condition=PodGroupInitiallyScheduled"),
                "--timeout=60s",
            )
            yield real, kubectl, decisions


def gpu_node(number: int) -> dict[str, Any]:
    labels = {RACK: f"rack-{number // 8}", BLOCK: "block-0", ZONE: "zone-a"}
    node = a_node(f"node-{number:02d}", cpu="64", memory="512Gi", pods=110, **labels)
    for field in ("capacity", "allocatable"):
        node["status"][field]["nvidia.com/gpu"] = "8"
    return node


def hidden_gang() -> list[dict[str, Any]]:
    group = a_pod_group("hidden-gang", min_count=2)
    pods = [a_pod(f"hidden-gang-{i}", cpu="4", group="hidden-gang") for i in range(2)]
    for each in (group, *pods):
        each["metadata"]["namespace"] = "team-b"
    return [group, *pods]


# --- from a user's machine --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tab(browser: Any, cluster: tuple[RealCluster, Kubectl, Path]) -> Iterator[Pages]:
    dashboard = ("dashboard", "--kubeconfig", str(cluster[0].kubeconfig), "--no-browser")
    with served(*dashboard) as link, a_tab(browser, link) as pages:
        yield pages


PAGES = [
    ("cluster", "/cluster", "default/training"),
    ("cluster-used", "/cluster?colour=used", "Scale"),
    ("queue", "/queue", "too-large"),
    ("gangs", "/group", "team-b/hidden-gang"),
    ("group", "/group/PodGroup/default/too-large", "What would help"),
    ("what-if", "/what-if", "Use an example"),
    ("health", "/health", "Pending gangs"),
    ("time", "/time", "There is no recording"),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("name", "path", "shows"), PAGES)
def test_every_page_works(tab: Pages, theme: str, name: str, path: str, shows: str) -> None:
    tab.page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
    page = tab.open(path, shows)
    page.wait_for_timeout(700)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=OUTPUT / f"real-{name}-{theme}.png")
    assert serious_faults(page, axe_source()) == []


def test_a_job_of_the_real_controller_becomes_bound_while_the_page_is_open(
    tab: Pages, cluster: tuple[RealCluster, Kubectl, Path]
) -> None:
    page = tab.open("/group", "default/training")
    cluster[1]("apply", "-f", str(ROOT / "examples" / "gang-job.yaml"))
    row = page.get_by_role("row").filter(has_text="default/sweep")
    row.get_by_text("bound", exact=False).first.wait_for()
    cluster[1]("delete", "-f", str(ROOT / "examples" / "gang-job.yaml"))
    cluster[1]("delete", "pods", "-l", "batch.kubernetes.io/job-name=sweep", "--grace-period=0", "--force")
    row.wait_for(state="detached")


def test_what_if_says_what_the_command_says(tab: Pages, cluster: tuple[RealCluster, Kubectl, Path]) -> None:
    manifest = ROOT / "examples" / "urgent-gang.yaml"
    page = tab.open("/what-if", "Use an example")
    page.get_by_label("Manifests").fill(manifest.read_text())
    with page.expect_response("**/api/what-if*", timeout=120_000) as answered:
        page.get_by_role("button", name="Try it").click()
    shown = answered.value.json()["answer"]
    page.get_by_text("Nothing was changed.").wait_for()
    command = [*MUSTER, "simulate", "-f", str(manifest), "--kubeconfig", str(cluster[0].kubeconfig), "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert shown == json.loads(done.stdout)
    assert "urgent" not in cluster[1]("get", "podgroups")


def test_the_past_of_a_real_cluster(browser: Any, cluster: tuple[RealCluster, Kubectl, Path], tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    eventually(lambda: b"hidden-gang" in cluster[2].read_bytes())
    shutil.copy(cluster[2], log)
    with served("dashboard", "--decision-log", str(log), "--no-browser") as link, a_tab(browser, link) as pages:
        page = pages.open("/time", "8 pods of training bound")
        page.get_by_role("button", name="8 pods of training bound").click()
        page.get_by_role("button", name="default/training").first.wait_for()
        page.get_by_role("button", name="Gang", exact=True).click()
        page.get_by_text("had the 8 seats it needs together").wait_for()
        page.screenshot(path=OUTPUT / "real-time-recording-light.png")


def test_groups_that_are_custom_resources(browser: Any, kube: Path, with_crds: RealCluster, tmp_path: Path) -> None:
    kubectl = Kubectl(kube, with_crds.kubeconfig)
    kubectl.create(gpu_node(0), gang_manifest("runs", 2, api=CRD), gang_manifest("waits", 3, api=CRD))
    with scheduler(with_crds.kubeconfig, tmp_path / "muster.log"):
        kubectl.create(*members("runs", 2, by_label=True), *members("waits", 2, by_label=True))
        eventually(lambda: condition(kubectl, "runs", api="scheduling.muster.dev") == "True")
        dashboard = ("dashboard", "--kubeconfig", str(with_crds.kubeconfig), "--no-browser")
        with served(*dashboard) as link, a_tab(browser, link) as pages:
            for path, shows in (
                ("/cluster", "default/runs"),
                ("/queue", "2 of 3 members exist"),
                ("/group/PodGroup/default/runs", "its minimum is bound"),
                ("/group/PodGroup/default/waits", "Why it waits"),
                ("/health", "scheduling.muster.dev"),
            ):
                pages.open(path, shows)


# --- installed, for others --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(cluster: tuple[RealCluster, Kubectl, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the dashboard that `muster install --dashboard` makes, run as its pod would run it."""
    real, kubectl, _ = cluster
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here (unshare -rm): a pod's files cannot be put in their place")
    install = [*MUSTER, "install", "--dashboard", "--kubeconfig", str(real.kubeconfig)]
    done = subprocess.run(install, check=True, capture_output=True, text=True)
    assert f"deployment {NAME} applied" in done.stdout
    deployment = json.loads(kubectl("get", "deployment", NAME, "-n", NAMESPACE, "-o", "json"))
    pod = deployment["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == NAME
    files = tmp_path_factory.mktemp("account")
    (files / "token").write_text(kubectl("create", "token", NAME, "-n", NAMESPACE))
    (files / "namespace").write_text(NAMESPACE)
    shutil.copy(real.ca_file, files / "ca.crt")
    (port,) = free_ports(1)
    arguments = [f"--port={port}" if each.startswith("--port=") else each for each in pod["containers"][0]["args"]]
    with as_a_pod(real, files, arguments, files / "dashboard.log"):
        address = f"https://127.0.0.1:{port}"
        eventually(lambda: answers(f"{address}/livez", None, ""), else_=lambda: (files / "dashboard.log").read_text())
        yield address


@contextmanager
def as_a_pod(real: RealCluster, files: Path, arguments: list[str], log: Path) -> Iterator[None]:
    """A process that finds the account where a kubelet mounts it, the server by its variables, and nothing in HOME."""
    where = urlsplit(real.server)
    there = Path(SERVICE_ACCOUNT_DIR).resolve()
    script = f'mount -t tmpfs none {there.parents[2]} && mkdir -p {there} && cp {files}/* {there} && exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", *MUSTER, *arguments]
    pod = {"KUBERNETES_SERVICE_HOST": str(where.hostname), "KUBERNETES_SERVICE_PORT": str(where.port)}
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(files), **pod}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=ROOT)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


def visitor(address: str) -> aiohttp.ClientSession:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    jar = aiohttp.CookieJar(unsafe=True)
    return aiohttp.ClientSession(address, cookie_jar=jar, connector=aiohttp.TCPConnector(ssl=trusting))


@pytest.fixture(scope="module")
def tokens(cluster: tuple[RealCluster, Kubectl, Path]) -> dict[str, str]:
    """`ann` reads the pages' kinds in `default`, and nodes; `root` reads everything."""
    kubectl = cluster[1]
    for name in ("ann", "root"):
        kubectl("create", "serviceaccount", name, "-n", "default")
    kinds = "pods,podgroups.scheduling.k8s.io,compositepodgroups.scheduling.k8s.io,events.events.k8s.io"
    kubectl("create", "role", "pages", "-n", "default", "--verb=list", f"--resource={kinds}")
    kubectl("create", "rolebinding", "ann", "-n", "default", "--role=pages", "--serviceaccount=default:ann")
    kubectl("create", "clusterrole", "nodes", "--verb=list", "--resource=nodes")
    kubectl("create", "clusterrolebinding", "ann-nodes", "--clusterrole=nodes", "--serviceaccount=default:ann")
    kubectl("create", "clusterrolebinding", "root", "--clusterrole=cluster-admin", "--serviceaccount=default:root")
    return {name: kubectl("create", "token", name, "-n", "default").strip() for name in ("ann", "root")}


class SignedIn(Pages):
    """A tab of somebody who typed their token, and every byte that it was sent."""

    def __init__(self, browser: Any, address: str, token: str) -> None:
        super().__init__(browser, address, ignore_https_errors=True)
        self.received: list[str] = []
        self.context.route("**/api/**", self._fetch)
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()

    def _fetch(self, route: Any) -> None:
        if "/api/changes" in route.request.url:
            return route.continue_()  # it never ends; another test reads it
        answer = route.fetch()
        self.received.append(answer.text())
        return route.fulfill(response=answer)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_who_may_read_everything_sees_everything(
    browser: Any, installed: str, tokens: dict[str, str], theme: str
) -> None:
    tab = SignedIn(browser, installed, tokens["root"])
    tab.page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
    for name, path, shows in PAGES:
        tab.open(path, shows)
        tab.page.screenshot(path=OUTPUT / f"installed-root-{name}-{theme}.png")
    tab.open("/group/PodGroup/team-b/hidden-gang", "its minimum is bound")
    assert all(name in "".join(tab.received) for name in HIDDEN)
    tab.page.get_by_role("button", name="Sign out").click()
    tab.page.get_by_role("heading", name="Sign in").wait_for()
    tab.close()


def test_who_may_read_one_namespace_is_sent_nothing_of_others(
    browser: Any, installed: str, tokens: dict[str, str]
) -> None:
    tab = SignedIn(browser, installed, tokens["ann"])
    for name, path, shows in PAGES:
        tab.open(path, "default/training" if name == "gangs" else shows)
        tab.page.wait_for_timeout(300)
        tab.page.screenshot(path=OUTPUT / f"installed-ann-{name}.png")
    page = tab.open("/what-if", "Use an example")
    page.get_by_label("Manifests").fill(whole_cluster())
    page.get_by_role("button", name="Try it").click()
    page.get_by_text("2 pods in namespaces that you may not read").wait_for(timeout=120_000)
    page.screenshot(path=OUTPUT / "installed-ann-what-if-answered.png")
    tab.close()
    sent = "".join(tab.received)
    assert "training" in sent
    assert [name for name in HIDDEN if name in sent] == []


def whole_cluster() -> str:
    """A gang of top priority that takes every node as a whole."""
    group = a_pod_group("everything", min_count=16, priorityClassName="urgent")
    wanted = {"cpu": "62", "group": "everything", "priorityClassName": "urgent"}
    return "\n---\n".join(json.dumps(each) for each in (group, *[a_pod(f"every-{i}", **wanted) for i in range(16)]))


def test_the_stream_of_changes_and_other_paths_name_nothing_hidden(
    cluster: tuple[RealCluster, Kubectl, Path], installed: str, tokens: dict[str, str]
) -> None:
    with ThreadPoolExecutor(1) as thread:  # the browser holds the event loop of this one
        sent = thread.submit(asyncio.run, streamed(installed, tokens["ann"], cluster[1])).result()
    assert b"fresh" in sent
    assert [name for name in HIDDEN if name.encode() in sent] == []


async def streamed(address: str, token: str, kubectl: Kubectl) -> bytes:
    """What the stream brings while pods come in both namespaces, and what is answered about hidden objects."""
    async with visitor(address) as session:
        async with session.post("/api/session", json={"token": token}) as answer:
            assert answer.status == 200, await answer.text()
            assert {"Secure", "HttpOnly", "SameSite=Strict"} <= set(answer.headers["Set-Cookie"].split("; "))
        for path in ("/api/group/PodGroup/team-b/hidden-gang", "/api/explain/PodGroup/team-b/hidden-gang"):
            async with session.get(path) as answer:
                assert answer.status == 403
        received = bytearray()
        async with session.get("/api/changes?since=0") as stream:
            more = [a_pod(f"{name}-0", cpu="1", group=name) for name in ("hidden-gang-more", "fresh")]
            more[0]["metadata"]["namespace"] = "team-b"
            await asyncio.to_thread(kubectl.create, *more)
            async with asyncio.timeout(30):
                while b"fresh" not in received:
                    received += await stream.content.readany()
        for path in ("/api/health", "/api/seats?cpu=1", "/api/starts", "/api/time", "/api/node/node-00"):
            async with session.get(path) as answer:
                assert answer.status == 200
                received += await answer.read()
    return bytes(received)


def test_a_token_that_nobody_knows_opens_nothing(browser: Any, installed: str) -> None:
    pages = Pages(browser, installed, ignore_https_errors=True)
    pages.page.get_by_label("Token").fill("nonsense")
    pages.page.get_by_role("button", name="Sign in").click()
    pages.page.get_by_text("the API server does not know this token", exact=False).wait_for()
    pages.page.screenshot(path=OUTPUT / "installed-sign-in.png")
    pages.context.close()


def test_it_has_used_what_it_may_and_nothing_else(cluster: tuple[RealCluster, Kubectl, Path], installed: str) -> None:
    used = cluster[0].requests_of(f"system:serviceaccount:{NAMESPACE}:{NAME}")
    rules = next(each["rules"] for each in dashboard_installation("muster") if each["kind"] == "ClusterRole")
    granted = {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert used - granted == set()
    assert {verb for verb, _, resource in used if not resource.endswith("reviews")} <= {"get", "list", "watch"}
