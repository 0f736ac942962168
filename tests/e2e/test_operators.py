"""Other people's operators on `muster up`: a chart with a custom resource, webhooks and an Ingress; one made with kopf.

Operators built with controller-runtime are in `test_workload_managers`: JobSet, LeaderWorkerSet and Kueue are three.
"""

import asyncio
import base64
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from muster.certificates import Authority
from tests.build.helm import helm
from tests.e2e.processes import Kubectl, eventually, up

__all__ = ["helm"]

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
HERE = Path(__file__).parent
CHART = HERE / "widgets"
Obj = dict[str, Any]


def a_widget(name: str, size: int) -> Obj:
    return {
        "apiVersion": "operators.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"size": size},
    }


def written_pair(authority: Authority, directory: Path, *names: str) -> dict[str, Path]:
    """A server certificate in files: of the authority, of the server, and the key."""
    pair = authority.for_server(names)
    files = {part: directory / f"{part}.pem" for part in ("ca", "cert", "key")}
    for part, content in (("ca", authority.pem), ("cert", pair.cert), ("key", pair.key)):
        files[part].write_bytes(content)
    return files


async def _review(request: web.BaseRequest) -> web.StreamResponse:
    """Refuses sizes above 10; labels what it is asked to change."""
    review = await request.json()
    response: Obj = {"uid": review["request"]["uid"], "allowed": True}
    if request.path == "/mutate":
        patch = [{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    elif review["request"]["object"]["spec"]["size"] > 10:
        response |= {"allowed": False, "status": {"code": 422, "message": "too large"}}
    return web.json_response({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})


@contextmanager
def a_webhook(files: dict[str, Path]) -> Iterator[int]:
    """The chart's webhook in a thread; gives its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files["cert"], files["key"])
    listener = socket.create_server(("127.0.0.1", 0))
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def serve() -> None:
        runner = web.ServerRunner(web.Server(_review))
        await runner.setup()
        await web.SockSite(runner, listener, ssl_context=context).start()
        ready.set()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield listener.getsockname()[1]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
        listener.close()


def test_helm_installs_a_chart_with_a_custom_resource_webhooks_and_an_ingress(
    helm: Path, kube: Path, tmp_path: Path
) -> None:
    authority = Authority.create("chart-ca")
    files = written_pair(authority, tmp_path, "shop-webhook.default.svc")
    bundle = base64.b64encode(authority.pem).decode()
    with (
        a_webhook(files) as port,
        up(tmp_path / "up.log", "--webhook-endpoint", f"default/shop-webhook=127.0.0.1:{port}") as kubeconfig,
    ):
        kubectl = Kubectl(kube, kubeconfig)

        def run(*arguments: str | Path) -> str:
            done = subprocess.run(
                [helm, "--kubeconfig", kubeconfig, "--namespace", "default", *arguments],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        run("install", "shop", CHART, "--set", f"caBundle={bundle}")
        assert "widgets.example.com" in kubectl("get", "ingress", "shop")
        kubectl.create(a_widget("small", 3))
        small = json.loads(kubectl("get", "wd", "small", "-o", "json"))
        assert small["metadata"]["labels"] == {"seen": "yes"}, "its mutating webhook was asked"
        said = kubectl("create", "-f", "-", input=yaml.safe_dump(a_widget("large", 11)), refused=True)
        assert 'admission webhook "widgets.operators.example.com" denied the request: too large' in said

        run("upgrade", "shop", CHART, "--set", f"caBundle={bundle}")
        run("uninstall", "shop")
        assert kubectl("get", "validatingwebhookconfigurations", "-o", "name") == ""
        kubectl.create(a_widget("large", 11))
        assert len(kubectl("get", "widgets", "-o", "name").split()) == 2, "helm leaves custom resources alone"


def test_an_operator_written_with_kopf(kube: Path, tmp_path: Path) -> None:
    pytest.importorskip("kopf", reason="kopf is not installed")
    files = written_pair(Authority.create("kopf-ca"), tmp_path, "localhost")
    with up(tmp_path / "up.log") as kubeconfig:
        kubectl = Kubectl(kube, kubeconfig)
        kubectl("create", "-f", str(CHART / "crds" / "widgets.yaml"))
        with _kopf(kubeconfig, tmp_path / "kopf.log", files) as log:
            eventually(
                lambda: kubectl("get", "validatingwebhookconfigurations", "-o", "name"), else_=lambda: log.read_text()
            )
            kubectl.create(a_widget("one", 3))
            eventually(lambda: _status(kubectl, "one").get("built") == 3, else_=lambda: log.read_text())
            said = kubectl("create", "-f", "-", input=yaml.safe_dump(a_widget("large", 11)), refused=True)
            assert "a widget has at most size 10" in said
            kubectl("patch", "widget", "one", "--type=merge", "-p", '{"spec": {"size": 4}}')
            eventually(lambda: _status(kubectl, "one").get("built") == 4, else_=lambda: log.read_text())
            kubectl("delete", "widget", "one")
            assert "widget one is cleaned up" in log.read_text()
            assert "Traceback" not in log.read_text()


def _status(kubectl: Kubectl, name: str) -> Obj:
    return json.loads(kubectl("get", "widget", name, "-o", "json")).get("status") or {}


@contextmanager
def _kopf(kubeconfig: Path, log: Path, files: dict[str, Path]) -> Iterator[Path]:
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace=default", HERE / "kopf_operator.py"]
    where = {"KUBECONFIG": str(kubeconfig), **{f"WEBHOOK_{part.upper()}": str(file) for part, file in files.items()}}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **where})
    try:
        yield log
    finally:
        process.terminate()
        process.wait(20)
