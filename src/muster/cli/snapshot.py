"""`muster snapshot`: the objects that scheduling depends on, in one file without secrets."""

from __future__ import annotations

import gzip
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from muster.cli import exits, output, progress, source

if TYPE_CHECKING:
    from muster.client.protocol import Client
    from muster.scheduler.simulation.snapshot import Snapshot


@click.command(name="snapshot")
@click.option("--file", "-f", type=click.Path(dir_okay=False, path_type=Path), help="Where to write; default: stdout.")
@click.option(
    "--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Default: KUBECONFIG or ~/.kube/config."
)
@click.option("--context", default=None, help="Context of the kubeconfig.")
def command(file: Path | None, kubeconfig: Path | None, context: str | None) -> int:
    """Save what scheduling decisions depend on, for `explain`, `simulate` and the other questions.

    The file holds nodes, pods, groups and volumes as far as scheduling reads them: no Secrets, no environment
    variables, no configuration values.

        muster snapshot > cluster.json.gz
    """
    from muster.certificates import write_private
    from muster.scheduler.simulation.snapshot import encode

    if file is None and sys.stdout.isatty():
        raise exits.Failure("the snapshot is binary: redirect it, or name a file with --file", exits.USAGE)
    taken_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    async def ask(client: Client) -> Snapshot:
        from muster.engine.cluster_snapshot import take_snapshot

        return await take_snapshot(client, taken_at)

    with progress.shown() as bar:
        bar.stage("Reading the cluster")
        snapshot = source.Source(None, kubeconfig, context).call(ask)
    data = gzip.compress(encode(snapshot), mtime=0)
    if file is None:
        sys.stdout.buffer.write(data)
    else:
        try:
            write_private(file, data)
        except OSError as error:
            raise exits.Failure(f"{file} cannot be written: {error.strerror}", exits.BAD_INPUT) from error
    counts = ", ".join(f"{len(found)} {kind}" for kind, found in sorted(snapshot.objects.items()) if found)
    output.note(f"{len(data) / 1024:.0f} KiB: {counts}")
    return exits.OK
