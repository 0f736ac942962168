"""`muster up`: a Kubernetes API with gang scheduling in one process, until Ctrl-C."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from muster.cli import dashboard, exits, node_options
from muster.cli.decision_log_options import decision_log_size
from muster.cli.option_groups import grouped

if TYPE_CHECKING:
    from muster.plane.options import Options
    from muster.plane.plane import Plane

DEFAULT_DATA = Path("~/.muster")
MANAGERS = ("jobset", "lws")


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of `muster up`."""

    port: int
    bind_address: str
    data: Path | None
    in_memory: bool
    kubeconfig: Path | None
    nodes: node_options.NodeFlags
    no_scheduler: bool
    no_controllers: bool
    workloads: bool
    simulated_managers: tuple[str, ...]
    feature_gates: str
    config: Path | None
    token_file: Path | None
    webhook_endpoints: tuple[str, ...]
    decision_log: Path | None
    no_decision_log: bool
    decision_log_max_size: int
    no_dashboard: bool
    verbose: int


def _managers(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name for part in value.split(",") if (name := part.strip())))
    unknown = [name for name in names if name not in MANAGERS]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r} cannot be simulated; known: {', '.join(MANAGERS)}")
    return names


@click.command(name="up")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=6443, show_default=True, help="Port; 0 takes a spare one."
)
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Directory that keeps everything across restarts.  [default: {DEFAULT_DATA}]",
)
@click.option("--memory", "in_memory", is_flag=True, help="Keep nothing.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the kubeconfig.  [default: kubeconfig in the data directory]",
)
@node_options.options(3, "Simulated nodes; 0: none.  [default: 3]")
@click.option("--no-scheduler", is_flag=True, help="Leave pods to another scheduler.")
@click.option("--no-controllers", is_flag=True, help="Leave upkeep to other controllers.")
@click.option(
    "--workloads",
    type=bool,
    is_flag=False,
    flag_value="true",
    default=True,
    show_default=True,
    help="Make groups for Jobs, JobSets, LeaderWorkerSets and the like.",
)
@click.option(
    "--with",
    "simulated_managers",
    metavar="jobset,lws",
    default="",
    callback=_managers,
    help="Simulate the managers of JobSet (jobset) and LeaderWorkerSet (lws).",
)
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="Switch features.")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="KubeSchedulerConfiguration."
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help='Bearer tokens, a line each: token,user,uid,"group,group".',
)
@click.option(
    "--webhook-endpoint",
    "webhook_endpoints",
    multiple=True,
    metavar="NAMESPACE/NAME=HOST:PORT",
    help="Where a Service that webhooks name is reached from here; repeat for several.",
)
@click.option(
    "--decision-log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Record events and decisions for `muster replay`.  [default: decisions.jsonl in the data directory]",
)
@click.option("--no-decision-log", is_flag=True, help="Record none.")
@decision_log_size
@click.option("--no-dashboard", is_flag=True, help="Serve no pages for a browser.")
@click.option("-v", "--verbose", count=True, help="Log more; twice for every request.")
@grouped("options", UpOptions)
def command(options: UpOptions) -> None:
    """Start an API server, the scheduler and simulated nodes in one process.

    Then use plain kubectl. Everything is kept in the data directory unless --memory is given.
    """
    logging.basicConfig(
        level=(logging.WARNING, logging.INFO, logging.DEBUG)[min(options.verbose, 2)],
        format="%(levelname).1s%(asctime)s %(name)s] %(message)s",
        datefmt="%m%d %H:%M:%S",
    )
    gc.disable()  # until everything runs: code and first objects are loaded, and none of it is garbage
    plane_options = _plane_options(options)
    with _runner() as runner:
        runner.run(_serve(plane_options, with_dashboard=not options.no_dashboard))


def _runner() -> asyncio.Runner:
    if sys.platform == "linux":
        import uvloop

        return asyncio.Runner(loop_factory=uvloop.new_event_loop)
    return asyncio.Runner()


def _plane_options(options: UpOptions) -> Options:
    from muster.api import gates
    from muster.plane.options import Options

    if options.in_memory and options.data is not None:
        raise click.UsageError("--memory keeps nothing, so it cannot be combined with --data")
    try:
        chosen, notes = gates.parse(options.feature_gates)
    except ValueError as error:
        raise click.UsageError(f"--feature-gates: {error}") from None
    for note in notes:
        click.echo(note, err=True)
    directory = None if options.in_memory else (options.data or DEFAULT_DATA).expanduser().absolute()
    kubeconfig = options.kubeconfig
    if kubeconfig is None:
        kubeconfig = directory / "kubeconfig" if directory is not None else _temporary_kubeconfig()
    return Options(
        data=directory,
        host=options.bind_address,
        port=options.port,
        kubeconfig=kubeconfig.expanduser().absolute(),
        token_file=options.token_file,
        webhook_endpoints=_webhook_endpoints(options.webhook_endpoints),
        controllers=not options.no_controllers,
        workloads=options.workloads,
        simulated_managers=options.simulated_managers,
        scheduler=not options.no_scheduler,
        scheduler_config=options.config,
        nodes=options.nodes.options(),
        gates=chosen,
        watch_loop=True,
        decision_log=_decision_log(options, directory),
        decision_log_size=options.decision_log_max_size,
    )


def _webhook_endpoints(given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        service, _, address = each.partition("=")
        namespace, _, name = service.partition("/")
        if not namespace or not name or not address.rpartition(":")[2].isdigit() or not address.rpartition(":")[0]:
            raise click.UsageError(f"--webhook-endpoint: {each!r} is not NAMESPACE/NAME=HOST:PORT")
        found[service] = address
    return found


def _decision_log(options: UpOptions, directory: Path | None) -> Path | None:
    """Where decisions are recorded; None for nowhere."""
    if options.no_decision_log:
        return None
    if options.decision_log is not None:
        return options.decision_log.expanduser().absolute()
    return directory / "decisions.jsonl" if directory is not None else None


def _temporary_kubeconfig() -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="muster-")) / "kubeconfig"


async def _serve(options: Options, *, with_dashboard: bool = True) -> None:
    """Run until a signal, or until a part fails."""
    from muster.api.errors import ApiError
    from muster.plane.plane import Plane
    from muster.server.store.records import StoreError, StoreLockedError

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    plane = Plane(options)
    try:
        started = await _start(stop, plane)
    except StoreLockedError as error:
        choices = "stop it first, or choose another directory with --data"
        raise exits.Failure(f"{error}; {choices}", exits.UNAVAILABLE) from None
    except (StoreError, ApiError) as error:
        raise exits.Failure(f"cannot start: {error}", exits.UNAVAILABLE) from None
    except OSError as error:
        raise exits.Failure(_cannot_start(options, error), exits.UNAVAILABLE) from None
    except ValueError as error:
        raise exits.Failure(str(error), exits.BAD_INPUT) from None
    finally:
        gc.enable()
    try:
        if started:
            async with dashboard.beside(plane, wanted=with_dashboard) as pages:
                _print_welcome(plane, pages)
                await _until(stop, plane)
    except StoreError as error:
        raise exits.Failure(str(error), exits.UNAVAILABLE) from None
    finally:
        await plane.stop()
        _remove_kubeconfig(options)
    click.echo("Stopped.")


async def _start(stop: asyncio.Event, plane: Plane) -> bool:
    """Bring the plane up; False if a signal came first, and everything is stopped again."""
    starting, stopping = asyncio.create_task(plane.start()), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            await starting
        return starting.done()
    finally:
        stopping.cancel()
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)


async def _until(stop: asyncio.Event, plane: Plane) -> None:
    stopping, failing = asyncio.create_task(stop.wait()), asyncio.create_task(plane.failure())
    try:
        await asyncio.wait({stopping, failing}, return_when=asyncio.FIRST_COMPLETED)
        if failing.done() and not stop.is_set():
            raise failing.result()
    finally:
        stopping.cancel()
        failing.cancel()


def _cannot_start(options: Options, error: OSError) -> str:
    import errno

    if error.errno == errno.EADDRINUSE:
        return f"{options.host}:{options.port} is already in use; choose another port with --port, or 0 for a spare one"
    return f"cannot start: {error}"


def _print_welcome(plane: Plane, pages: str) -> None:
    options = plane.options
    kept = f"kept in {options.data}" if options.data is not None else "kept in memory only"
    click.echo(f"Muster is up at {plane.url} ({kept}). The kubeconfig is {options.kubeconfig}")
    if pages:
        click.echo(f"The dashboard is at {pages} (opens one session; muster dashboard gives another)")
    click.echo("Next:")
    click.echo(f"  export KUBECONFIG={options.kubeconfig}")
    click.echo("  kubectl get nodes")
    click.echo("  kubectl create job hello --image=busybox -- echo hello")
    click.echo("Ctrl-C stops it.")


def _remove_kubeconfig(options: Options) -> None:
    """Remove the kubeconfig of a server that kept nothing, if it lies in a temporary directory of ours."""
    file = options.kubeconfig
    if options.data is None and file is not None and file.parent.name.startswith("muster-"):
        file.unlink(missing_ok=True)
        if not any(file.parent.iterdir()):
            file.parent.rmdir()
