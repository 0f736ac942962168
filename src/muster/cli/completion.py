"""`muster completion SHELL`: the script that makes the shell complete our commands."""

from __future__ import annotations

import click

_SHELLS = ("bash", "zsh", "fish")


@click.command(name="completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print a completion script for bash, zsh or fish.

    It completes commands and options, and names of groups and nodes from the current cluster.
    """
    from click.shell_completion import get_completion_class

    from muster.cli.main import muster

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(muster, {}, "muster", "_MUSTER_COMPLETE").source())
