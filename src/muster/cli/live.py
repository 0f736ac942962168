"""Screens that follow a cluster: asked again every few seconds and painted over, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

import click

from muster.api.errors import ApiError

INTERVAL_SECONDS = 2.0
COLOURS = {"●": "green", "○": "yellow", "█": "cyan"}

option = click.option("--watch", "-w", is_flag=True, help="Keep the screen up to date until Ctrl-C.")


def show(screen: Callable[[], str], watch: bool) -> None:
    """Print a screen once, or keep it up to date. Ctrl-C is the way to end a watch, and no failure."""
    if not watch:
        click.echo(paint(screen()))
        return
    try:
        _paint_over(screen) if sys.stdout.isatty() else _print_on(screen)
    except KeyboardInterrupt:
        return


def _print_on(screen: Callable[[], str]) -> None:
    while True:
        click.echo(f"{screen()}\n")
        time.sleep(INTERVAL_SECONDS)


def _paint_over(screen: Callable[[], str]) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    text, trouble = screen(), ""
    with Live(console=Console(), screen=True, auto_refresh=False) as live:
        while True:
            now = datetime.now(UTC).strftime("%H:%M:%S")
            footer = trouble or f"{now} UTC, every {INTERVAL_SECONDS:.0f} s; Ctrl-C ends"
            live.update(Text.from_ansi(paint(f"{text}\n\n{fit(footer, width())}")), refresh=True)
            time.sleep(INTERVAL_SECONDS)
            try:
                text, trouble = screen(), ""
            except (ConnectionError, TimeoutError, ApiError) as error:
                trouble = f"the server does not answer since {now} UTC: {str(error) or type(error).__name__}"


def paint(text: str) -> str:
    """Marks and bars in colour; `click.echo` takes the colour out again where it is not shown."""
    for mark, colour in COLOURS.items():
        text = text.replace(mark, click.style(mark, fg=colour))
    return text


def fit(text: str, width: int) -> str:
    """A text cut to a width, with a mark that it was."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def width() -> int:
    """The width of the terminal, or a readable default in a pipe."""
    from shutil import get_terminal_size

    return get_terminal_size((120, 40)).columns
