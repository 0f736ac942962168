"""Where a question about a cluster gets its facts: a live API server, or a snapshot file.

The commands that only read (`explain`, `queue`, `tree`, `topology`, `simulate`) share these options and this way to a
brain that can be asked. Nothing is ever written to the cluster by them.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from muster.cli import exits

if TYPE_CHECKING:
    from muster.cli.progress import Bar
    from muster.client.protocol import Client
    from muster.scheduler.config import Config
    from muster.scheduler.cycle import Brain
    from muster.scheduler.snapshot import Snapshot

T = TypeVar("T")
_FILE = click.Path(dir_okay=False, path_type=Path)
MOST_BYTES = 2 << 30


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--snapshot`, `--kubeconfig`, `--context`, as one value."""

    @click.option("--snapshot", type=_FILE, help="Ask a file made by `muster snapshot` instead of a server.")
    @click.option("--kubeconfig", type=_FILE, help="Kubeconfig; default: KUBECONFIG or ~/.kube/config.")
    @click.option("--context", default=None, help="Context of the kubeconfig.")
    @wraps(command)
    def wrapped(snapshot: Path | None, kubeconfig: Path | None, context: str | None, **others: Any) -> Any:
        return command(source=Source(snapshot, kubeconfig, context), **others)

    return wrapped


class Source:
    """A place to ask, opened when it is needed."""

    def __init__(self, snapshot: Path | None, kubeconfig: Path | None, context: str | None) -> None:
        self.snapshot = snapshot
        self.kubeconfig = kubeconfig
        self.context = context

    def default_namespace(self) -> str:
        """The namespace of the context, as kubectl takes it."""
        if self.snapshot is not None:
            return "default"
        from muster.client.kubeconfig import load

        return load(self.kubeconfig, self.context).namespace or "default"

    def facts(self, bar: Bar | None = None) -> Snapshot:
        """What the cluster looks like."""
        if bar is not None:
            bar.stage("Reading the cluster")
        if self.snapshot is not None:
            return read_snapshot(self.snapshot)

        async def ask(client: Client) -> Snapshot:
            from muster.engine.cluster_snapshot import take_snapshot

            return await take_snapshot(client)

        return self.call(ask)

    def call(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Ask a live server something."""
        from muster.client.http import HTTPClient
        from muster.client.kubeconfig import load

        async def run() -> T:
            client = HTTPClient(load(self.kubeconfig, self.context))
            try:
                return await ask(client)
            finally:
                await client.close()

        return asyncio.run(run())


def read_snapshot(path: Path) -> Snapshot:
    """Open a snapshot file, packed or plain."""
    from muster.scheduler.snapshot import BadSnapshot, decode

    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            with gzip.open(path) as packed:
                data = packed.read(MOST_BYTES)
        return decode(data)
    except (OSError, EOFError) as error:
        raise exits.Failure(f"{path}: {error}", exits.BAD_INPUT) from error
    except BadSnapshot as error:
        raise exits.Failure(f"{path}: {error}", exits.BAD_INPUT) from error


def config_for(snapshot: Snapshot) -> Config:
    """The default profile for every scheduler name in sight, so that every pending pod can be asked about."""
    from muster.scheduler.config import default_config

    return default_config(*sorted({*snapshot.schedulers, "default-scheduler", "muster"}))


def brain_for(snapshot: Snapshot, bar: Bar | None = None) -> Brain:
    """A brain that knows the cluster."""
    from muster.scheduler.snapshot import brain_of

    if bar is None:
        return brain_of(snapshot, config_for(snapshot))
    total = len(snapshot)
    return brain_of(snapshot, config_for(snapshot), lambda events: bar.through(events, "Taking it in", total))
