"""`muster dashboard`: the cluster, the queue and one gang as pages in a browser."""

from __future__ import annotations

import asyncio
import signal
import webbrowser
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from muster.cli import exits, source
from muster.cli.option_groups import grouped

if TYPE_CHECKING:
    import ssl

    from muster.client.http import HTTPClient
    from muster.dashboard.recording import Recording
    from muster.dashboard.server import DashboardServer
    from muster.dashboard.source import Source
    from muster.plane.plane import Plane
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.simulation.decision_log import Header
    from muster.scheduler.simulation.snapshot import Snapshot

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
SERVICE, NAMESPACE = "muster-dashboard", "muster-system"


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """How the pages are served."""

    port: int
    no_browser: bool
    bind_address: str
    tls: bool
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    allowed_host: tuple[str, ...]


@click.command(name="dashboard")
@click.option("--decision-log", type=_FILE, help="Open a recording of `muster scheduler --decision-log`.")
@click.option("--installed", is_flag=True, help="Reach the dashboard that `muster install --dashboard` installed.")
@click.option("--namespace", "-n", default=NAMESPACE, show_default=True, help="Where it is installed.")
@source.options
@grouped(
    "serving",
    ServingOptions,
    click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port.  [default: a spare one]"),
    click.option("--no-browser", is_flag=True, help="Only print the address."),
    click.option("--bind-address", default="127.0.0.1", show_default=True, help="Address to listen on."),
    click.option("--tls", is_flag=True, help="Serve others: over TLS, each signs in with a bearer token."),
    click.option("--tls-cert-file", type=_FILE, help="Certificate for --tls; default: a new one."),
    click.option("--tls-private-key-file", type=_FILE, help="Its key."),
    click.option("--allowed-host", multiple=True, help="A further host name by which it is reached; repeatable."),
)
def command(
    decision_log: Path | None, installed: bool, namespace: str, source: source.Source, serving: ServingOptions
) -> int:
    """Open the dashboard on the current cluster, on a snapshot (--snapshot) or on a recording (--decision-log).

    Pages are served to this machine only, and show what the kubeconfig's user may see. Nothing is changed.
    """
    _check(decision_log, installed, source, serving)
    if installed:
        return _forward(namespace, source, serving)
    asyncio.run(_serve(decision_log, source, serving))
    return exits.OK


def _check(decision_log: Path | None, installed: bool, source: source.Source, serving: ServingOptions) -> None:
    if decision_log is not None and source.snapshot is not None:
        raise click.UsageError("--decision-log and --snapshot are two sources: choose one")
    if decision_log is not None and source.feature_gates:
        raise click.UsageError("--feature-gates: a recording says itself which gates its scheduler had")
    if (installed or serving.tls) and (decision_log is not None or source.snapshot is not None):
        raise click.UsageError("a file is shown on this machine only: it cannot be combined with --installed or --tls")
    if not serving.tls and serving.bind_address not in ("127.0.0.1", "::1", "localhost"):
        raise click.UsageError("--bind-address: without --tls the dashboard listens on the loopback address only")
    if (serving.tls_cert_file is None) != (serving.tls_private_key_file is None):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file belong together")


async def _serve(decision_log: Path | None, chosen: source.Source, serving: ServingOptions) -> None:
    from muster.dashboard.server import DashboardServer, Listen

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    past = recording(decision_log) if decision_log is not None else None
    board, client = _source(chosen, past)
    listen = Listen(serving.bind_address, serving.port, _tls(serving), serving.allowed_host)
    server = DashboardServer(board, listen, past)
    try:
        await server.start()
    except OSError as error:
        raise exits.Failure(f"cannot listen on {listen.host}:{listen.port}: {error}", exits.UNAVAILABLE) from None
    try:
        await _until_stopped(server, serving, stop)
    finally:
        await server.close()
        if client is not None:
            await client.close()
    click.echo("Stopped.")


@asynccontextmanager
async def beside(plane: Plane, *, wanted: bool = True) -> AsyncGenerator[str]:
    """Serves the pages of a control plane in this process for the time of the block; gives their address."""
    if not wanted:
        yield ""
        return
    from muster.dashboard.live_cluster import LiveCluster
    from muster.dashboard.server import DashboardServer, Listen

    log = plane.options.decision_log
    past = recording(log) if log is not None else None
    cluster = LiveCluster(plane.client, plane.url, gates=plane.options.gates)
    async with DashboardServer(cluster, Listen(), past) as server:
        yield server.link()


async def _until_stopped(server: DashboardServer, serving: ServingOptions, stop: asyncio.Event) -> None:
    link = server.link()
    click.echo(f"The dashboard is at {link}")
    if not serving.tls:
        click.echo("The address opens one session in one browser. Ctrl-C stops it.")
        if not serving.no_browser:
            await asyncio.to_thread(webbrowser.open, link)
    await stop.wait()


def _source(chosen: source.Source, past: Recording | None) -> tuple[Source, HTTPClient | None]:
    from muster.dashboard.source import SnapshotSource

    if past is not None:
        return past, None
    if chosen.snapshot is not None:
        return SnapshotSource(chosen.read(), chosen.snapshot.name), None
    from muster.client.http import HTTPClient
    from muster.client.kubeconfig import load
    from muster.dashboard.live_cluster import LiveCluster

    config = load(chosen.kubeconfig, chosen.context)
    client = HTTPClient(config)
    return LiveCluster(client, config.context or config.server, gates=chosen.gates()), client


def recording(path: Path) -> Recording:
    """The recording in a file."""
    from muster.dashboard.recording import Recording

    return Recording(path, _recorded_scheduler)


def _recorded_scheduler(header: Header, snapshot: Snapshot) -> Scheduler:
    """A scheduler as it was recorded, with the objects of one moment."""
    from muster.engine.options import config
    from muster.scheduler.simulation.snapshot import scheduler_of

    known = msgspec.structs.replace(snapshot, gates=header.feature_gates().switched())
    return scheduler_of(known, config(header.config))


def _tls(serving: ServingOptions) -> ssl.SSLContext | None:
    if not serving.tls:
        return None
    from muster.cli.scheduler import serving_tls

    return serving_tls(serving.tls_cert_file, serving.tls_private_key_file)


def _forward(namespace: str, chosen: source.Source, serving: ServingOptions) -> int:
    """kubectl's port-forward to the dashboard in the cluster, with the address printed."""
    import shutil
    import subprocess

    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise exits.Failure("kubectl is needed to reach a dashboard in a cluster, and is not installed", exits.USAGE)
    port = serving.port or 8443
    arguments = [kubectl, "port-forward", f"--namespace={namespace}", f"service/{SERVICE}", f"{port}:443"]
    if chosen.kubeconfig is not None:
        arguments.append(f"--kubeconfig={chosen.kubeconfig}")
    if chosen.context is not None:
        arguments.append(f"--context={chosen.context}")
    click.echo(f"The dashboard is at https://127.0.0.1:{port}/ once the connection is there.")
    click.echo("It asks for a bearer token, for instance of: kubectl create token NAME. Ctrl-C ends the connection.")
    if not serving.no_browser:
        webbrowser.open(f"https://127.0.0.1:{port}/")
    done = subprocess.run(arguments, check=False)
    return exits.OK if done.returncode in (0, -signal.SIGINT) else exits.UNAVAILABLE
