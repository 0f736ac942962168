"""`--watch`: a screen that is made again every few seconds; on a terminal it replaces the one before."""

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
        click.echo(colour(screen()))
        return
    try:
        _replace(screen) if sys.stdout.isatty() else _append(screen)
    except KeyboardInterrupt:
        return


def _append(screen: Callable[[], str]) -> None:
    while True:
        click.echo(f"{screen()}\n")
        time.sleep(INTERVAL_SECONDS)


def _replace(screen: Callable[[], str]) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    text, error_text = screen(), ""
    with Live(console=Console(), screen=True, auto_refresh=False) as live:
        while True:
            now = datetime.now(UTC).strftime("%H:%M:%S")
            footer = error_text or f"{now} UTC, every {INTERVAL_SECONDS:.0f} s; Ctrl-C ends"
            live.update(Text.from_ansi(colour(f"{text}\n\n{fit(footer, width())}")), refresh=True)
            time.sleep(INTERVAL_SECONDS)
            try:
                text, error_text = screen(), ""
            except (ConnectionError, TimeoutError, ApiError) as error:
                error_text = f"the server does not answer since {now} UTC: {str(error) or type(error).__name__}"


def colour(text: str) -> str:
    """Colours marks and bars; `click.echo` takes the colours out again where they are not shown."""
    for mark, name in COLOURS.items():
        text = text.replace(mark, click.style(mark, fg=name))
    return text


def fit(text: str, width: int) -> str:
    """Cuts a text to a width; an ellipsis shows that it was cut."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def width() -> int:
    """The width of the terminal, or a readable default in a pipe."""
    from shutil import get_terminal_size

    return get_terminal_size((120, 40)).columns
