"""`muster node fail|recover NAME`: make simulated nodes fail, and recover."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from muster.cli import cluster_names, exits


@click.group(name="node")
def command() -> None:
    """Fail and recover simulated nodes."""


def _connection(function: click.decorators.FC) -> click.decorators.FC:
    function = click.option("--context", help="Context of the kubeconfig.")(function)
    return click.option(
        "--kubeconfig",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Kubeconfig; default: as kubectl finds it.",
    )(function)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=cluster_names.nodes)
@_connection
def fail(names: tuple[str, ...], kubeconfig: Path | None, context: str | None) -> None:
    """Cut the power of nodes: their kubelets fall silent and their pods stop."""
    asyncio.run(_set_failed(names, True, kubeconfig, context))


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=cluster_names.nodes)
@_connection
def recover(names: tuple[str, ...], kubeconfig: Path | None, context: str | None) -> None:
    """Give nodes their power back."""
    asyncio.run(_set_failed(names, False, kubeconfig, context))


async def _set_failed(names: tuple[str, ...], failed: bool, kubeconfig: Path | None, context: str | None) -> None:
    from muster.api.errors import ApiError
    from muster.api.resources import NODES
    from muster.client.config import ConfigError
    from muster.client.http import HTTPClient
    from muster.client.kubeconfig import load
    from muster.nodes.inventory import FAILED, SIMULATED

    try:
        config = load(kubeconfig, context)
    except ConfigError as error:
        raise exits.Failure(str(error), exits.BAD_INPUT) from None
    async with HTTPClient(config) as client:
        for name in names:
            try:
                node = await client.get(NODES, name)
            except ApiError as error:
                raise exits.Failure(error.message, exits.NO if error.code == 404 else exits.UNAVAILABLE) from None
            if SIMULATED not in (node["metadata"].get("labels") or {}):
                raise exits.Failure(f"node {name} is not simulated; only simulated nodes can be switched")
            await client.patch(NODES, name, {"metadata": {"annotations": {FAILED: "true" if failed else None}}})
            click.echo(f"node/{name} {'failed' if failed else 'recovered'}")
