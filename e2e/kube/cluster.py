"""A real Kubernetes control plane on loopback, for tests which must not trust Muster's own server.

`RealCluster` starts etcd and kube-apiserver from the binaries of build.sh in a temporary directory, with the
native workload-scheduling API on or off, and can add kube-scheduler and kube-controller-manager. There are no
kubelets. Every component is a user of its own with the rights which Kubernetes gives it by default, so a test
that passes here has also met RBAC. Only the standard library and the openssl command are needed.
"""

from __future__ import annotations

import base64
import json
import secrets
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

NATIVE_GATES = (
    "GenericWorkload",
    "TopologyAwareWorkloadScheduling",
    "CompositePodGroup",
    "PodGroupPreemptionPolicy",
    "DRAWorkloadResourceClaims",
)
NATIVE_VERSIONS = ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3")

# Without kubelets and their controllers nobody would make a namespace's service account before its first pod,
# nor take the not-ready taint off a new node: these two plugins would only stop the tests.
DISABLED_ADMISSION = ("ServiceAccount", "TaintNodesByCondition")

# What deleting groups, owners and namespaces needs; more controllers only make runs slower.
DEFAULT_CONTROLLERS = ("podgroup-protection-controller", "garbage-collector-controller", "namespace-controller")

ADMIN = "admin"
SCHEDULER = "system:kube-scheduler"
CONTROLLER_MANAGER = "system:kube-controller-manager"
GROUPS = {ADMIN: "system:masters", SCHEDULER: "", CONTROLLER_MANAGER: ""}

STOP_SECONDS = 15.0


class ClusterError(Exception):
    """A component did not start; the message ends with the last lines of its log."""


@dataclass
class Daemon:
    """One running component and the file which takes its output."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    url: str

    def tail(self, lines: int = 15) -> str:
        """The end of the log, which usually says why a component died."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """Asks the component to end and kills it if it does not, so that no test leaves processes behind."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def wait_for(self, path: str, ca: Path | None = None, token: str = "", timeout: float = 90.0) -> None:
        """Returns when the component answers 200; without a CA it is trusted, being a child on loopback."""
        deadline = time.monotonic() + timeout
        while not answers(self.url + path, ca, token):
            if self.process.poll() is not None:
                raise ClusterError(f"{self.name} ended with code {self.process.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise ClusterError(f"{self.name} was not ready within {timeout:.0f} s:\n{self.tail()}")
            time.sleep(0.1)


@dataclass
class RealCluster:
    """etcd and kube-apiserver for the length of a `with` block; `kubeconfig` and `token` are the administrator's."""

    bin_dir: Path
    native: bool = True
    gates: tuple[str, ...] = ()  # further ones that are on in every component
    audit: bool = False  # log who asked for what; see `requests_of`
    server: str = field(init=False, default="")
    kubeconfig: Path = field(init=False)
    root: Path = field(init=False)
    _daemons: list[Daemon] = field(init=False, default_factory=list[Daemon])
    _tokens: dict[str, str] = field(
        init=False, default_factory=lambda: {user: secrets.token_hex(16) for user in GROUPS}
    )

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return self._tokens[ADMIN]

    @property
    def ca_file(self) -> Path:
        """The chain which kube-apiserver signed for itself; it verifies the server's certificate."""
        return self.root / "apiserver-certs" / "apiserver.crt"

    def __enter__(self) -> Self:
        self.root = Path(tempfile.mkdtemp(prefix="muster-kube-"))
        try:
            self._start_apiserver(self._start_etcd())
            self.kubeconfig = self._write_kubeconfig(ADMIN)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None:
            shutil.rmtree(self.root)

    def stop(self) -> None:
        """Stops everything, clients before servers; `root` with the logs stays, for whoever looks for a cause."""
        while self._daemons:
            self._daemons.pop().stop()

    def start_kube_scheduler(self, *flags: str, wait: bool = True) -> Daemon:
        """Starts kube-scheduler without leader election, which would only delay it."""
        kubeconfig = self._write_kubeconfig(SCHEDULER)
        return self._start_client("kube-scheduler", kubeconfig, flags, wait)

    def start_controller_manager(self, controllers: Sequence[str] = DEFAULT_CONTROLLERS) -> Daemon:
        """Starts kube-controller-manager with only these controllers, each under its own service account."""
        kubeconfig = self._write_kubeconfig(CONTROLLER_MANAGER)
        flags = (
            f"--controllers={','.join(controllers)}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.root / 'sa.key'}",
            f"--root-ca-file={self.ca_file}",
        )
        return self._start_client("kube-controller-manager", kubeconfig, flags)

    def _start_etcd(self) -> Daemon:
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        etcd = self._start(
            "etcd",
            client,
            f"--data-dir={self.root / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # the data does not outlive the test
            "--log-level=warn",
        )
        etcd.wait_for("/health")
        return etcd

    def _start_apiserver(self, etcd: Daemon) -> None:
        (port,) = free_ports(1)
        self.server = f"https://127.0.0.1:{port}"
        apiserver = self._start(
            "kube-apiserver",
            self.server,
            f"--etcd-servers={etcd.url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.ca_file.parent}",
            "--endpoint-reconciler-type=none",  # a loopback address may not be an endpoint
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self._write_tokens()}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._make_service_account_key()}",
            f"--service-account-signing-key-file={self.root / 'sa.key'}",
            f"--disable-admission-plugins={','.join(DISABLED_ADMISSION)}",
            *self._gate_flags(),
            *self._runtime_flags(),
            *self._audit_flags(),
        )
        apiserver.wait_for("/readyz", self.ca_file)
        # The server is ready before it has made the namespaces which every test takes for granted.
        for namespace in ("default", "kube-system"):
            apiserver.wait_for(f"/api/v1/namespaces/{namespace}", self.ca_file, self.token)

    def end(self, daemon: Daemon) -> None:
        """Stops one component before the others."""
        self._daemons.remove(daemon)
        daemon.stop()

    def _start_client(self, name: str, kubeconfig: Path, flags: Sequence[str], wait: bool = True) -> Daemon:
        (port,) = free_ports(1)
        daemon = self._start(
            name,
            f"https://127.0.0.1:{port}",
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.root / f'{name}-certs'}",
            "--leader-elect=false",
            *self._gate_flags(),
            *flags,
        )
        if wait:
            daemon.wait_for("/healthz")
        return daemon

    def _start(self, name: str, url: str, *flags: str) -> Daemon:
        log = self.root / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen([self.bin_dir / name, *flags], stdout=output, stderr=output, cwd=self.root)
        daemon = Daemon(name, process, log, url)
        self._daemons.append(daemon)
        return daemon

    def _gate_flags(self) -> list[str]:
        gates = (*(NATIVE_GATES if self.native else ()), *self.gates)
        return [f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"] if gates else []

    def _runtime_flags(self) -> list[str]:
        return [f"--runtime-config={','.join(f'{v}=true' for v in NATIVE_VERSIONS)}"] if self.native else []

    def _audit_flags(self) -> list[str]:
        if not self.audit:
            return []
        policy = self.root / "audit-policy.json"
        stages = ["RequestReceived", "ResponseStarted"]
        rules = {"rules": [{"level": "Metadata"}], "omitStages": stages}
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", **rules}))
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.root / 'audit.log'}"]

    def requests_of(self, user: str) -> set[tuple[str, str, str]]:
        """The (verb, API group, resource or resource/subresource) of all that a user asked for and has been answered."""
        found: set[tuple[str, str, str]] = set()
        for line in (self.root / "audit.log").read_text().splitlines():
            event = json.loads(line)
            where = event.get("objectRef") or {}
            if event["user"].get("username") == user and where.get("resource"):
                resource = "/".join(part for part in (where["resource"], where.get("subresource")) if part)
                found.add((event["verb"], where.get("apiGroup", ""), resource))
        return found

    def as_service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a fresh token of a service account."""
        kubectl = [self.bin_dir / "kubectl", "--kubeconfig", self.kubeconfig]
        command = [*kubectl, "create", "token", name, "--namespace", namespace, "--duration=24h"]
        made = subprocess.run(command, check=True, capture_output=True, text=True)
        user = f"system:serviceaccount:{namespace}:{name}"
        self._tokens[user] = made.stdout.strip()
        return self._write_kubeconfig(user)

    def _make_service_account_key(self) -> Path:
        private, public = self.root / "sa.key", self.root / "sa.pub"
        subprocess.run(
            ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", private],
            check=True,
            capture_output=True,
        )
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
        return public

    def _write_tokens(self) -> Path:
        path = self.root / "tokens.csv"
        path.write_text("".join(f"{token},{user},{user},{GROUPS[user]}\n" for user, token in self._tokens.items()))
        path.chmod(0o600)
        return path

    def _write_kubeconfig(self, user: str) -> Path:
        path = self.root / f"{user.rpartition(':')[2]}.kubeconfig"
        certificates = base64.b64encode(self.ca_file.read_bytes()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "real", "cluster": {"server": self.server, "certificate-authority-data": certificates}}
            ],
            "users": [{"name": user, "user": {"token": self._tokens[user]}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user}}],
            "current-context": "real",
        }
        path.write_text(json.dumps(config, indent=2))
        path.chmod(0o600)
        return path


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; all are held open together so that none is given twice."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


def answers(url: str, ca: Path | None, token: str) -> bool:
    """Whether a GET of the address gives 200; a server that is not there yet, or has no certificate yet, does not."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=5, context=tls_context(ca)) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def tls_context(ca: Path | None) -> ssl.SSLContext:
    """Verifies against the CA; without one it verifies nothing, for components that sign their own certificate."""
    context = ssl.create_default_context(cafile=ca)
    if ca is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
