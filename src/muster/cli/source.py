"""Where a command reads a cluster from: a live API server, or a snapshot file.

The commands that only read (`explain`, `queue`, `tree`, `topology`, `simulate`) share these options, and the scheduler
that is given the cluster's objects. They write nothing to the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from muster.cli import exits, output, progress
from muster.cli.option_groups import grouped
from muster.views.schedulers import read_snapshot, scheduler_for

if TYPE_CHECKING:
    from muster.api.gates import FeatureGates
    from muster.cli.progress import Bar
    from muster.client.protocol import Client
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.simulation.snapshot import Snapshot

T = TypeVar("T")
_FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class Source:
    """A snapshot file, or a context of a kubeconfig; opened when it is needed."""

    snapshot: Path | None
    kubeconfig: Path | None
    context: str | None
    feature_gates: str = ""

    def default_namespace(self) -> str:
        """The namespace of the context, as kubectl takes it."""
        if self.snapshot is not None:
            return "default"
        from muster.client.kubeconfig import load

        return load(self.kubeconfig, self.context).namespace or "default"

    def read(self, bar: Bar | None = None) -> Snapshot:
        """The objects of the cluster that scheduling depends on."""
        if bar is not None:
            bar.stage("Reading the cluster")
        if self.snapshot is not None:
            return self.with_gates(read_snapshot(self.snapshot))

        async def ask(client: Client) -> Snapshot:
            from muster.engine.cluster_snapshot import take_snapshot

            return await take_snapshot(client)

        return self.with_gates(self.call(ask))

    def gates(self) -> FeatureGates | None:
        """The gates that were given, if any; else the scheduler of the cluster says which it has."""
        if not self.feature_gates:
            return None
        from muster.api.gates import parse

        try:
            gates, notes = parse(self.feature_gates)
        except ValueError as error:
            raise exits.Failure(f"--feature-gates: {error}", exits.USAGE) from error
        for note in notes:
            output.note(note)
        return gates

    def with_gates(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot with the gates that were given, if any."""
        gates = self.gates()
        return snapshot if gates is None else msgspec.structs.replace(snapshot, gates=gates.switched())

    def scheduler(self, *, show_progress: bool) -> Scheduler:
        """A scheduler that has been given the cluster's objects."""
        with progress.shown(wanted=show_progress) as bar:
            return scheduler_for(self.read(bar), bar)

    def call(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Run a function with a client of the live server."""
        from muster.client.http import HTTPClient
        from muster.client.kubeconfig import load

        async def run() -> T:
            client = HTTPClient(load(self.kubeconfig, self.context))
            try:
                return await ask(client)
            finally:
                await client.close()

        return asyncio.run(run())


options = grouped(
    "source",
    Source,
    click.option("--snapshot", type=_FILE, help="Ask a file made by `muster snapshot` instead of a server."),
    click.option("--kubeconfig", type=_FILE, help="Kubeconfig; default: KUBECONFIG or ~/.kube/config."),
    click.option("--context", default=None, help="Context of the kubeconfig."),
    click.option(
        "--feature-gates",
        default="",
        metavar="A=true,B=false",
        help="Answer as a scheduler with these gates would.  [default: those of the scheduler there]",
    ),
)
