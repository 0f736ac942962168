"""Screens that follow a cluster: asked again every few seconds and painted over, on a terminal only."""

from __future__ import annotations

import time
from collections.abc import Callable

import click

INTERVAL_SECONDS = 2.0

option = click.option("--watch", "-w", is_flag=True, help="Keep the screen up to date until Ctrl-C.")


def show(screen: Callable[[], str], watch: bool) -> None:
    """Print a screen once, or keep it up to date."""
    if not watch:
        click.echo(screen())
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        while True:
            click.echo(screen())
            click.echo("")
            time.sleep(INTERVAL_SECONDS)
    with Live(Text(screen()), console=console, screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(INTERVAL_SECONDS)
            live.update(Text(screen()), refresh=True)


def fit(text: str, width: int) -> str:
    """A text cut to a width, with a mark that it was."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def width() -> int:
    """The width of the terminal, or a readable default in a pipe."""
    from shutil import get_terminal_size

    return get_terminal_size((120, 40)).columns
