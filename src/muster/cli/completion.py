"""`muster completion SHELL`: the script that makes the shell complete our commands."""

from __future__ import annotations

import click

_SHELLS = ("bash", "zsh", "fish")
_HINTS = {
    "bash": "source <(muster completion bash)   # in ~/.bashrc",
    "zsh": "source <(muster completion zsh)    # in ~/.zshrc",
    "fish": "muster completion fish > ~/.config/fish/completions/muster.fish",
}


@click.command(name="completion", epilog="\b\n" + "\n".join(_HINTS.values()))
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print a completion script for bash, zsh or fish."""
    from click.shell_completion import get_completion_class

    from muster.cli.main import muster

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(muster, {}, "muster", "_MUSTER_COMPLETE").source())
