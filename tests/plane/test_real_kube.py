"""The real kube-scheduler and kube-controller-manager on a running `muster` server, each with only its own rights.

The binaries are built by `e2e/kube`; without them these tests are skipped.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.api.resources import JOBS, NAMESPACES, POD_GROUPS, PODS
from muster.plane.options import NodeOptions, Options
from muster.plane.plane import Plane
from muster.testing import a_gang

CACHE = Path(os.environ.get("MUSTER_KUBE_CACHE", "~/.cache/muster/kube")).expanduser()


def binary(name: str) -> Path | None:
    return next(iter(sorted(CACHE.glob(f"*/bin/{name}"), reverse=True)), None)


pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        binary("kube-scheduler") is None or binary("kube-controller-manager") is None,
        reason="no kube-scheduler and kube-controller-manager: build them with e2e/kube",
    ),
]


def a_kubeconfig(plane: Plane, user: str, file: Path) -> Path:
    """A kubeconfig with a certificate for one component."""
    whole = yaml.safe_load(plane.api.credentials.kubeconfig(plane.url))
    pair = plane.api.credentials.authority.for_client(user)
    (file.with_suffix(".crt")).write_bytes(pair.cert)
    (file.with_suffix(".key")).write_bytes(pair.key)
    whole["users"][0]["user"] = {
        "client-certificate": str(file.with_suffix(".crt")),
        "client-key": str(file.with_suffix(".key")),
    }
    file.write_text(yaml.safe_dump(whole))
    return file


@contextmanager
def component(name: str, kubeconfig: Path, *flags: str) -> Iterator[Path]:
    """A running component; gives the file with its log."""
    log = kubeconfig.with_suffix(".log")
    command = [str(binary(name)), "--secure-port=0", "--leader-elect=false", *flags]
    command += [
        f"--{flag}={kubeconfig}" for flag in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    ]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield log
            assert process.poll() is None, log.read_text()[-2000:]
        finally:
            process.terminate()
            process.wait(20)


def complaints(log: Path) -> list[str]:
    """Errors of a component, except those that every cluster sees: lost races, and a file that is empty."""
    gone = r"podgroups.scheduling.k8s.io \"g\" not found"  # its finalizer was taken off twice
    usual = ("manifest file is empty", "the object has been modified", "it is being terminated", gone)
    lines = log.read_text().splitlines()
    return [line for line in lines if line.startswith("E") and not any(words in line for words in usual)]


async def until(condition: Any, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.2)


async def test_the_real_scheduler_places_a_gang_with_its_own_rights(tmp_path: Path) -> None:
    options = Options(scheduler=False, nodes=NodeOptions(3), freeze=False)
    async with Plane(options) as plane:
        kubeconfig = a_kubeconfig(plane, "system:kube-scheduler", tmp_path / "scheduler.yaml")
        with component("kube-scheduler", kubeconfig, "--feature-gates=GenericWorkload=true") as log:
            for obj in a_gang("g", 4, cpu="2"):
                await plane.client.create(POD_GROUPS if obj["kind"] == "PodGroup" else PODS, obj)

            async def running() -> bool:
                pods = (await plane.client.list(PODS, "default")).items
                return all(pod["status"]["phase"] == "Running" for pod in pods)

            await until(running, 60)
            group = await plane.client.get(POD_GROUPS, "g", "default")
            assert group["status"]["conditions"][0]["status"] == "True"
            assert complaints(log) == []


async def test_the_real_controllers_protect_collect_and_run_jobs_with_their_own_rights(tmp_path: Path) -> None:
    options = Options(controllers=False, nodes=NodeOptions(2), freeze=False)
    chosen = (
        "podgroup-protection-controller,garbage-collector-controller,job-controller,namespace-controller,"
        "serviceaccount-controller"
    )
    flags = (f"--controllers={chosen}", "--use-service-account-credentials", "--feature-gates=GenericWorkload=true")
    async with Plane(options) as plane:
        kubeconfig = a_kubeconfig(plane, "system:kube-controller-manager", tmp_path / "manager.yaml")
        with component("kube-controller-manager", kubeconfig, *flags) as log:
            await plane.client.create(NAMESPACES, {"metadata": {"name": "work"}})
            group, *_ = a_gang("g", 2, "work")
            await plane.client.create(POD_GROUPS, group)
            template = {
                "spec": {
                    "restartPolicy": "Never",
                    "schedulingGroup": {"podGroupName": "g"},
                    "containers": [{"name": "c", "image": "x"}],
                }
            }
            spec = {"parallelism": 2, "completions": 2, "template": template}
            await plane.client.create(JOBS, {"metadata": {"name": "j"}, "spec": spec}, "work")

            async def placed() -> bool:
                pods = (await plane.client.list(PODS, "work")).items
                return len(pods) == 2 and all("nodeName" in pod["spec"] for pod in pods)

            await until(placed, 60)
            await plane.client.delete(POD_GROUPS, "g", "work")
            assert (await plane.client.get(POD_GROUPS, "g", "work"))["metadata"]["finalizers"]
            await plane.client.delete(JOBS, "j", "work", propagation_policy="Background")

            async def clean() -> bool:
                left = [(await plane.client.list(kind, "work")).items for kind in (PODS, POD_GROUPS)]
                return left == [[], []]

            await until(clean, 60)
            await plane.client.delete(NAMESPACES, "work")

            async def no_namespace() -> bool:
                return "work" not in [each["metadata"]["name"] for each in (await plane.client.list(NAMESPACES)).items]

            await until(no_namespace, 60)
            assert complaints(log) == []
