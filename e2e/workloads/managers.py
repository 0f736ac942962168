"""The real managers of workloads as processes beside an API server: JobSet, LeaderWorkerSet, Kueue, Trainer, KubeRay.

`installed(name, programs, kubectl)` applies what a manager brings (its kinds, its webhooks, pointed at a port of this
machine), and `manager(…)` does that and runs it for the length of a `with` block against whatever server a kubeconfig
names: `muster up` or a `RealCluster`. build.sh builds the programs.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from e2e.kube.cluster import free_ports

Obj = dict[str, Any]

ROOT = Path(__file__).parent
READY_SECONDS = 60.0
STOP_SECONDS = 20.0
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
APPLIED = ("Namespace", "CustomResourceDefinition", *WEBHOOKS)

# What a manager logs as an error although nothing is wrong, on a real kube-apiserver too: it read a stale object and
# tries again, it made an object that its cache does not show yet, Kueue misses the kind of the cluster autoscaler.
HARMLESS = (
    "the object has been modified",
    "please apply your changes to the latest version",
    "already exists",
    "Provisioning Requests not supported",
)


class ManagerError(Exception):
    """A manager could not be built, or did not start; the message ends with the last lines of its log."""


class NoGo(ManagerError):
    """The managers must be built, and there is no Go."""


@dataclass(frozen=True)
class Ports:
    webhook: int
    health: int


@dataclass(frozen=True)
class Kind:
    """How one manager is configured and what its manifests are."""

    manifests: tuple[str, ...]  # directories or files to render, below the module's manifests
    configuration: Callable[[Ports, Path], Obj] | None = None  # of its file, for those that have one
    flags: Callable[[Ports, Path], list[str]] = lambda ports, certificates: []


def build(*names: str) -> Path:
    """The directory of the programs and their manifests."""
    done = subprocess.run([ROOT / "build.sh", *names], capture_output=True, text=True, check=False)
    if done.returncode == 3:
        raise NoGo(done.stderr.strip())
    if done.returncode != 0:
        raise ManagerError(done.stderr)
    return Path(done.stdout.strip().splitlines()[-1])


def _configuration(api_version: str, **more: Any) -> Callable[[Ports, Path], Obj]:
    def of(ports: Ports, certificates: Path) -> Obj:
        return {
            "apiVersion": api_version,
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "webhook": {"port": ports.webhook, "host": "127.0.0.1", "certDir": str(certificates)},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{ports.health}"},
            **more,
        }

    return of


# What Kueue looks after, beside the plain Job. Of its default list, those whose kinds are at hand in the tests.
KUEUE_FRAMEWORKS = ["batch/job", "jobset.x-k8s.io/jobset", "leaderworkerset.x-k8s.io/leaderworkerset", "pod"]

KINDS = {
    "jobset": Kind(("default",), _configuration("config.jobset.x-k8s.io/v1alpha1")),
    "lws": Kind(("default",), _configuration("config.lws.x-k8s.io/v1alpha1")),
    "kueue": Kind(
        ("default",),
        _configuration(
            "config.kueue.x-k8s.io/v1beta2",
            integrations={"frameworks": KUEUE_FRAMEWORKS},
            manageJobsWithoutQueueName=False,
        ),
        lambda ports, certificates: ["--feature-gates=VisibilityOnDemand=false"],
    ),
    "trainer": Kind(
        ("base/crds",),
        None,
        lambda ports, certificates: [
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{ports.health}",
            "--leader-elect=false",
        ],
    ),
    "kuberay": Kind(
        ("crd",),
        None,
        lambda ports, certificates: [
            "--metrics-addr=0",
            f"--health-probe-bind-address=127.0.0.1:{ports.health}",
            "--enable-leader-election=false",
        ],
    ),
}


class Applier:
    """kubectl with one kubeconfig, for rendering and applying."""

    def __init__(self, kubectl: Path, kubeconfig: Path) -> None:
        self._kubectl = kubectl
        self._kubeconfig = kubeconfig

    def render(self, directory: Path) -> list[Obj]:
        text = self._run("kustomize", str(directory))
        return [obj for obj in yaml.load_all(text, yaml.CSafeLoader) if obj]

    def apply(self, objects: list[Obj]) -> None:
        """Server-side, because definitions are too large for the annotation of the client's way."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self._run("apply", "--server-side", "--force-conflicts", "-f", "-", text=text)

    def established(self) -> None:
        """Returns when all kinds are served. kubectl cannot wait for a status that is not written at all yet."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                self._run("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
                return
            except ManagerError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)

    def _run(self, *arguments: str, text: str | None = None) -> str:
        command = [self._kubectl, "--kubeconfig", self._kubeconfig, *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ManagerError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout


class Manager:
    """One running manager and the file that takes its output."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path, ports: Ports) -> None:
        self.name = name
        self.process = process
        self.log = log
        self.ports = ports

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def errors(self) -> list[str]:
        """The lines of its log that report a fault."""
        lines = self.said().splitlines()
        return [line for line in lines if _is_error(line) and not any(word in line for word in HARMLESS)]

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not _answers(f"http://127.0.0.1:{self.ports.health}/readyz"):
            if self.process.poll() is not None:
                raise ManagerError(f"{self.name} ended with {self.process.returncode}:\n{self.said()[-3000:]}")
            if time.monotonic() > deadline:
                raise ManagerError(f"{self.name} was not ready in {READY_SECONDS:g} s:\n{self.said()[-3000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def manager(name: str, kubectl: Path, kubeconfig: Path, directory: Path) -> Generator[Manager]:
    """A manager that is ready, with its kinds and webhooks in the server; its files go into the directory."""
    programs = build(name)
    directory.mkdir(parents=True, exist_ok=True)
    certificate = make_certificate(directory)
    ports = Ports(*free_ports(2))
    kind = KINDS[name]
    applier = Applier(kubectl, kubeconfig)
    rendered = [obj for each in kind.manifests for obj in applier.render(programs / "manifests" / name / each)]
    objects = [pointed_here(obj, ports.webhook, certificate) for obj in rendered if obj["kind"] in APPLIED]
    # Webhooks last: until the manager listens, they would refuse what they are asked about.
    applier.apply([obj for obj in objects if obj["kind"] not in WEBHOOKS])
    applier.established()
    running = _start(name, programs, kubeconfig, directory, ports)
    try:
        running.wait_until_ready()
        if hooks := [obj for obj in objects if obj["kind"] in WEBHOOKS]:
            applier.apply(hooks)
        yield running
    finally:
        running.stop()


def _start(name: str, programs: Path, kubeconfig: Path, directory: Path, ports: Ports) -> Manager:
    kind, log = KINDS[name], directory / f"{name}.log"
    flags = kind.flags(ports, directory)
    if kind.configuration is not None:
        file = directory / f"{name}.yaml"
        file.write_text(yaml.safe_dump(kind.configuration(ports, directory)))
        flags = [f"--config={file}", *flags]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "KUEUE_METRICS_CERTS": str(directory)}
    with log.open("wb") as output:
        command = [programs / "bin" / name, *flags]
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    return Manager(name, process, log, ports)


def make_certificate(directory: Path) -> bytes:
    """A certificate for 127.0.0.1 that signed itself, as tls.crt and tls.key."""
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", directory / "tls.key"]
    command = ["openssl", "req", "-x509", "-days", "2", *key, "-out", directory / "tls.crt", *subject]
    subprocess.run(command, check=True, capture_output=True)
    return (directory / "tls.crt").read_bytes()


def pointed_here(obj: Obj, port: int, certificate: bytes) -> Obj:
    """The same with every reference to the manager's Service replaced by an address of this machine."""
    clients: list[Obj] = [hook["clientConfig"] for hook in obj.get("webhooks", [])]
    conversion = obj.get("spec", {}).get("conversion") or {}
    if "clientConfig" in conversion.get("webhook", {}):
        clients.append(conversion["webhook"]["clientConfig"])
    for client in clients:
        if service := client.pop("service", None):
            client["url"] = f"https://127.0.0.1:{port}{service.get('path', '/')}"
            client["caBundle"] = base64.b64encode(certificate).decode()
    return obj


def _is_error(line: str) -> bool:
    """Lines of zap in its development and production forms, of klog, and panics."""
    return bool(re.search(r'\tERROR\t|"level":"(error|fatal|panic)"|^E\d{4} |^panic:', line))


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False
