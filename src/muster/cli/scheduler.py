"""`muster scheduler`: run the scheduler against a cluster, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from muster.cli import exits

if TYPE_CHECKING:
    from muster.client.http import HTTPClient
    from muster.client.protocol import Client
    from muster.engine.engine import Engine
    from muster.engine.served import Served

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


@click.command(name="scheduler")
@click.option("--kubeconfig", type=_FILE, help="Kubeconfig; default: KUBECONFIG, ~/.kube/config, or the pod's account.")
@click.option("--context", default=None, help="Context of the kubeconfig.")
@click.option("--config", "config_file", type=_FILE, help="KubeSchedulerConfiguration.")
@click.option("--scheduler-name", "names", multiple=True, help="schedulerName to serve; repeatable.  [default: muster]")
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="Switch features.")
@_switch("--leader-elect", "Elect a leader among several processes.  [default: true]")
@click.option("--leader-elect-lease-duration", "leaseDuration", help="How long a lease lasts.  [default: 15s]")
@click.option("--leader-elect-renew-deadline", "renewDeadline", help="When a leader gives up.  [default: 10s]")
@click.option("--leader-elect-retry-period", "retryPeriod", help="Between two tries.  [default: 2s]")
@click.option("--leader-elect-resource-name", "resourceName", help="Name of the lease.  [default: muster]")
@click.option("--leader-elect-resource-namespace", "resourceNamespace", help="  [default: kube-system]")
@click.option("--leader-elect-resource-lock", "resourceLock", help="Only leases.")
@click.option("--kube-api-qps", type=click.FloatRange(0), help="Requests a second; 0: no limit.  [default: 0]")
@click.option("--kube-api-burst", type=click.IntRange(0), help="Requests at once beyond that.  [default: 100]")
@click.option("--bind-address", default="0.0.0.0", show_default=True, help="Where --secure-port listens.")
@click.option("--secure-port", type=click.IntRange(0, 65535), default=10259, show_default=True, help="HTTPS; 0: off.")
@click.option("--tls-cert-file", type=_FILE, help="Certificate for HTTPS; default: one of our own.")
@click.option("--tls-private-key-file", type=_FILE, help="Its key.")
@click.option("--metrics-bind-address", default="", metavar="HOST:PORT", help="Also serve the pages as plain HTTP.")
@click.option("--concurrent-binds", type=click.IntRange(1, 1024), default=32, show_default=True, help="At a time.")
@click.option("--seed", type=int, default=0, show_default=True, help="Breaks ties between equal nodes.")
@click.option("--decision-log", type=_FILE, help="Write events and decisions to a file, for `muster replay`.")
@click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-v", "--v", "verbosity", type=_Verbosity(0, 10), default=0, show_default=True, help="Log more.")
def command(verbosity: int, logging_format: str, **options: Any) -> int:
    """Run the scheduler beside kube-scheduler, or instead of it.

    Pods whose schedulerName is served here are scheduled by Muster, all others are only counted.
    """
    from muster.engine import logs

    logs.configure(verbosity, logging_format)
    try:
        return _loop()(_serve(options))
    except (ValueError, OSError) as error:
        raise exits.Failure(str(error), exits.BAD_INPUT) from error


def _loop() -> Callable[[Any], Any]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


async def _serve(options: dict[str, Any]) -> int:
    """Everything from the options to the end of the engine."""
    from muster.engine.engine import LeadershipLost, Rivalry
    from muster.engine.served import TooOld
    from muster.engine.site import Site

    client, engine = _engine(options)
    site = Site(engine, client)
    try:
        await _listen(site, options)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, engine.stop)
        await engine.run()
        return exits.OK
    except LeadershipLost as error:
        raise exits.Failure(f"{error}; stopping, so that only the new leader writes") from error
    except (Rivalry, TooOld) as error:
        raise exits.Failure(str(error), exits.UNAVAILABLE) from error
    finally:
        await site.close()
        await client.close()


def _engine(options: dict[str, Any]) -> tuple[HTTPClient, Engine]:
    import dataclasses
    import gc

    from muster.api import gates as feature
    from muster.client import kubeconfig
    from muster.client.config import ConfigError
    from muster.client.http import HTTPClient
    from muster.engine import options as read
    from muster.engine.engine import Engine
    from muster.engine.lanes import Limits
    from muster.engine.settings import Settings

    gates, remarks = feature.parse(options["feature_gates"])
    whole = read.source(_file(options["config_file"]), options["names"])
    config = read.config(whole)
    _remark([*remarks, *config.notes])
    connection: dict[str, Any] = whole.get("clientConnection") or {}
    try:
        path = options["kubeconfig"] or connection.get("kubeconfig") or None
        found = kubeconfig.load(path, options["context"])
    except ConfigError as error:
        raise exits.Failure(str(error), exits.BAD_INPUT) from error
    qps, burst = options["kube_api_qps"], options["kube_api_burst"]
    found = dataclasses.replace(
        found,
        qps=float(connection.get("qps") or 0 if qps is None else qps),
        burst=int(connection.get("burst") or 100 if burst is None else burst),
        user_agent="muster-scheduler",
    )
    settings = Settings(
        gates=gates,
        limits=Limits(binds=options["concurrent_binds"]),
        election=read.election(whole, {"leaderElect": options["leader_elect"], **_named(options)}),
        seed=options["seed"],
        decision_log=options["decision_log"],
        tune_gc=True,
    )
    gc.set_threshold(50_000, 20, 100)
    client = HTTPClient(found)

    def connect_leases() -> HTTPClient:
        # The lease must be renewed in time however busy the other client is: this one knows no limit.
        return HTTPClient(dataclasses.replace(found, qps=0.0))

    engine = Engine(client, config, settings, config_source=whole, connect_leases=connect_leases, upkeep=_upkeep)
    return client, engine


async def _upkeep(client: Client, served: Served) -> None:
    """What the leader does for groups beside scheduling, where no one else in the cluster does it."""
    from muster.controllers import external_clusters
    from muster.engine.served import CRDS, NATIVE

    if served.groups == CRDS:
        await external_clusters.run_controllers(client, external_clusters.ON_CRDS)
    elif served.groups == NATIVE and "CompositePodGroup" in served.resources:
        await external_clusters.run_controllers(client, external_clusters.ON_NATIVE)


def _named(options: dict[str, Any]) -> dict[str, Any]:
    """The election flags; they bear the names that the file uses."""
    names = ("leaseDuration", "renewDeadline", "retryPeriod", "resourceName", "resourceNamespace", "resourceLock")
    return {name: options.get(name) for name in names}


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

    from muster.engine.logs import keys

    for note in notes:
        logging.getLogger("muster.cli.scheduler").info("Note", extra=keys(note=note))


async def _listen(site: Any, options: dict[str, Any]) -> None:
    from muster.engine.site import tls

    if options["secure_port"]:
        cert, key = options["tls_cert_file"] or "", options["tls_private_key_file"] or ""
        await site.listen(options["bind_address"], options["secure_port"], tls(str(cert), str(key)))
    plain: str = options["metrics_bind_address"]
    if plain and plain != "0":
        host, colon, port = plain.rpartition(":")
        if not colon or not port.isdigit():
            raise exits.Failure(f"--metrics-bind-address {plain}: write HOST:PORT", exits.USAGE)
        await site.listen(host.strip("[]") or "127.0.0.1", int(port))
