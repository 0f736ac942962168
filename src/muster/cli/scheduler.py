"""`muster scheduler`: run the scheduler against a cluster, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from muster.cli import exits
from muster.cli.decision_log_options import decision_log_size

if TYPE_CHECKING:
    import ssl

    from muster.client.config import ClientConfig
    from muster.client.http import HTTPClient
    from muster.client.protocol import Client
    from muster.engine.api_discovery import ServedApis
    from muster.engine.engine import Engine
    from muster.engine.health_server import HealthServer
    from muster.engine.settings import Settings
    from muster.scheduler.runtime.config import Config

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False, path_type=Path)


class _Verbosity(click.IntRange):
    """A number that may be written `-v 4`, `-v4` and, as Go programs have it, `-v=4`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number: Any = value.removeprefix("=") if isinstance(value, str) else value
        return super().convert(number, param, ctx)


def _switch(name: str, help_: str) -> Callable[[F], F]:
    """A flag that can be given bare or with a value, as kube-scheduler's can."""
    return click.option(name, type=bool, is_flag=False, flag_value="true", default=None, help=help_)


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """The options of the command, apart from logging; None is an option that was not given."""

    kubeconfig: Path | None
    context: str | None
    config_file: Path | None
    names: tuple[str, ...]
    feature_gates: str
    leader_elect: bool | None
    lease_duration: str | None
    renew_deadline: str | None
    retry_period: str | None
    resource_name: str | None
    resource_namespace: str | None
    resource_lock: str | None
    kube_api_qps: float | None
    kube_api_burst: int | None
    bind_address: str
    secure_port: int
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    metrics_bind_address: str
    concurrent_binds: int
    seed: int
    decision_log: Path | None
    decision_log_max_size: int
    workloads: bool | None

    def election(self) -> dict[str, Any]:
        """The election flags under the names that the configuration file uses."""
        return {
            "leaderElect": self.leader_elect,
            "leaseDuration": self.lease_duration,
            "renewDeadline": self.renew_deadline,
            "retryPeriod": self.retry_period,
            "resourceName": self.resource_name,
            "resourceNamespace": self.resource_namespace,
            "resourceLock": self.resource_lock,
        }


@dataclass(frozen=True, slots=True)
class _Parsed:
    """What the options and their files say."""

    connection: ClientConfig
    config: Config
    source: dict[str, Any]
    settings: Settings


@click.command(name="scheduler")
@click.option("--kubeconfig", type=_FILE, help="Kubeconfig; default: KUBECONFIG, ~/.kube/config, or the pod's account.")
@click.option("--context", default=None, help="Context of the kubeconfig.")
@click.option("--config", "config_file", type=_FILE, help="KubeSchedulerConfiguration.")
@click.option("--scheduler-name", "names", multiple=True, help="schedulerName to serve; repeatable.  [default: muster]")
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="Switch features.")
@_switch("--leader-elect", "Elect a leader among several processes.  [default: true]")
@click.option("--leader-elect-lease-duration", "lease_duration", help="How long a lease lasts.  [default: 15s]")
@click.option("--leader-elect-renew-deadline", "renew_deadline", help="When a leader gives up.  [default: 10s]")
@click.option("--leader-elect-retry-period", "retry_period", help="Between two tries.  [default: 2s]")
@click.option("--leader-elect-resource-name", "resource_name", help="Name of the lease.  [default: muster]")
@click.option("--leader-elect-resource-namespace", "resource_namespace", help="  [default: kube-system]")
@click.option("--leader-elect-resource-lock", "resource_lock", help="Only leases.")
@click.option("--kube-api-qps", type=click.FloatRange(0), help="Requests a second; 0: no limit.  [default: 0]")
@click.option("--kube-api-burst", type=click.IntRange(0), help="Requests at once beyond that.  [default: 100]")
@click.option("--bind-address", default="0.0.0.0", show_default=True, help="Where --secure-port listens.")
@click.option("--secure-port", type=click.IntRange(0, 65535), default=10259, show_default=True, help="HTTPS; 0: off.")
@click.option("--tls-cert-file", type=_FILE, help="Certificate for HTTPS; default: one of our own.")
@click.option("--tls-private-key-file", type=_FILE, help="Its key.")
@click.option("--metrics-bind-address", default="", metavar="HOST:PORT", help="Also serve the pages as plain HTTP.")
@click.option("--concurrent-binds", type=click.IntRange(1, 1024), default=32, show_default=True, help="At a time.")
@click.option("--seed", type=int, default=0, show_default=True, help="Breaks ties between equal nodes.")
@_switch("--workloads", "Make groups for Jobs, JobSets, LeaderWorkerSets and the like.  [default: true]")
@click.option("--decision-log", type=_FILE, help="Write events and decisions to a file, for `muster replay`.")
@decision_log_size
@click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-v", "--v", "verbosity", type=_Verbosity(0, 10), default=0, show_default=True, help="Log more.")
def command(verbosity: int, logging_format: str, **options: Any) -> int:
    """Run the scheduler beside kube-scheduler, or instead of it.

    Pods whose schedulerName is served here are scheduled by Muster, all others are only counted.
    """
    from muster import logs

    logs.configure(verbosity, logging_format)
    given = SchedulerOptions(**options)
    try:
        parsed = _parse(given)
    except (ValueError, OSError) as error:
        raise exits.Failure(str(error), exits.BAD_INPUT) from error
    return _loop()(_serve(parsed, given))


def _loop() -> Callable[[Any], Any]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


async def _serve(parsed: _Parsed, options: SchedulerOptions) -> int:
    """Run the engine and its health server until the process is told to stop."""
    from muster.engine.api_discovery import UnsupportedServer
    from muster.engine.engine import AnotherSchedulerActive, LeadershipLost
    from muster.engine.health_server import HealthServer

    client, engine = _engine(parsed)
    health = HealthServer(engine, client)
    try:
        await _listen(health, options)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, engine.stop)
        await engine.run()
        return exits.OK
    except LeadershipLost as error:
        raise exits.Failure(f"{error}; stopping, so that only the new leader writes") from error
    except (AnotherSchedulerActive, UnsupportedServer) as error:
        raise exits.Failure(str(error), exits.UNAVAILABLE) from error
    finally:
        await health.close()
        await client.close()


def _parse(options: SchedulerOptions) -> _Parsed:
    """The options and the files they name. Raises ValueError, OSError or `Failure` for what cannot be used."""
    import dataclasses

    from muster.api import gates as feature
    from muster.client import kubeconfig
    from muster.client.config import ConfigError
    from muster.engine import options as read
    from muster.engine.call_queue import ConcurrencyLimits
    from muster.engine.settings import Settings

    gates, remarks = feature.parse(options.feature_gates)
    whole = read.source(_file(options.config_file), options.names)
    config = read.config(whole)
    _remark([*remarks, *config.notes])
    connection: dict[str, Any] = whole.get("clientConnection") or {}
    try:
        path = options.kubeconfig or connection.get("kubeconfig") or None
        found = kubeconfig.load(path, options.context)
    except ConfigError as error:
        raise exits.Failure(str(error), exits.BAD_INPUT) from error
    qps, burst = options.kube_api_qps, options.kube_api_burst
    found = dataclasses.replace(
        found,
        qps=float(connection.get("qps") or 0 if qps is None else qps),
        burst=int(connection.get("burst") or 100 if burst is None else burst),
        user_agent="muster-scheduler",
    )
    if options.decision_log is not None:
        options.decision_log.open("ab").close()  # it is written much later; a path that cannot be used is said now
        options.decision_log.chmod(0o600)
    settings = Settings(
        gates=gates,
        limits=ConcurrencyLimits(binds=options.concurrent_binds),
        election=read.election(whole, options.election()),
        share_cluster=True,
        workloads=options.workloads is not False,
        seed=options.seed,
        decision_log=options.decision_log,
        decision_log_size=options.decision_log_max_size,
        tune_gc=True,
    )
    return _Parsed(found, config, whole, settings)


def _engine(parsed: _Parsed) -> tuple[HTTPClient, Engine]:
    import dataclasses
    import gc

    from muster.client.http import HTTPClient
    from muster.engine.engine import Engine
    from muster.engine.settings import GC_THRESHOLDS

    gc.set_threshold(*GC_THRESHOLDS)
    client = HTTPClient(parsed.connection)

    def connect_leases() -> HTTPClient:
        # The lease must be renewed in time however busy the other client is: this one knows no limit.
        return HTTPClient(dataclasses.replace(parsed.connection, qps=0.0))

    engine = Engine(
        client,
        parsed.config,
        parsed.settings,
        config_source=parsed.source,
        connect_leases=connect_leases,
        leader_task=lambda writer, served: _upkeep(writer, served, tuple(parsed.config.profiles)),
    )
    return client, engine


async def _upkeep(client: Client, served: ServedApis, schedulers: tuple[str, ...]) -> None:
    """What the leader does for groups beside scheduling, where no one else in the cluster does it."""
    from muster.api.manifests import CRD_GROUP
    from muster.controllers import external_clusters
    from muster.controllers.workloads.settings import settings_for

    workloads = settings_for(schedulers, served.group_kinds, discovers=True) if served.makes_groups else None
    # By what is served, not by what the gates let the scheduler read: a group that is deleted must not stay for ever.
    groups = {each.group for each in served.group_kinds}
    if CRD_GROUP in groups:
        await external_clusters.run_controllers(client, external_clusters.ON_CRDS, workloads)
    elif any(each.kind == "CompositePodGroup" for each in served.group_kinds):
        await external_clusters.run_controllers(client, external_clusters.ON_NATIVE, workloads)
    elif workloads is not None:
        await external_clusters.run_controllers(client, (), workloads)


def _file(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    import yaml

    try:
        obj = yaml.safe_load(path.read_text())
    except yaml.YAMLError as error:
        raise exits.Failure(f"{path}: not YAML: {error}", exits.BAD_INPUT) from error
    if not isinstance(obj, dict):
        raise exits.Failure(f"{path}: expected one KubeSchedulerConfiguration", exits.BAD_INPUT)
    return obj


def _remark(notes: list[str]) -> None:
    import logging

    from muster.logs import keys

    for note in notes:
        logging.getLogger("muster.cli.scheduler").info("Note", extra=keys(note=note))


async def _listen(health: HealthServer, options: SchedulerOptions) -> None:
    plain = options.metrics_bind_address
    host, colon, port = plain.rpartition(":")
    on_plain = bool(plain) and plain != "0"
    if on_plain and (not colon or not port.isdigit()):
        raise exits.Failure(f"--metrics-bind-address {plain}: write HOST:PORT", exits.USAGE)
    try:
        if options.secure_port:
            context = serving_tls(options.tls_cert_file, options.tls_private_key_file)
            await health.listen(options.bind_address, options.secure_port, context)
        if on_plain:
            await health.listen(host.strip("[]") or "127.0.0.1", int(port))
    except OSError as error:  # an address in use, a certificate that cannot be read
        raise exits.Failure(str(error), exits.BAD_INPUT) from error


def serving_tls(cert_file: Path | None = None, key_file: Path | None = None) -> ssl.SSLContext:
    """TLS for a server, from files or with a new certificate that exists in memory only."""
    import ssl
    import tempfile

    from muster.certificates import Authority

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if cert_file is not None:
        context.load_cert_chain(cert_file, key_file)
        return context
    pair = Authority.create("muster-scheduler-ca").for_server(("localhost", "127.0.0.1"))
    with tempfile.TemporaryDirectory(prefix="muster-") as directory:
        file = Path(directory) / "server.pem"
        file.touch(mode=0o600)
        file.write_bytes(pair.cert + pair.key)
        context.load_cert_chain(file)
    return context
