"""Printing: the same data as a table for people, or as JSON or YAML for programs.

Tables are plain columns, the same on a terminal and in a pipe. Everything heavy is imported when it is
used, because most commands print a few lines and end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

FORMATS = ("table", "json", "yaml")

option = click.option(
    "--output",
    "-o",
    "output_format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print the answer.",
)


def write(data: Any, output_format: str, text: Callable[[], str]) -> None:
    """Print data in the chosen format; `text` makes the form for people."""
    if output_format == "json":
        click.echo(to_json(data))
    elif output_format == "yaml":
        click.echo(_to_yaml(data), nl=False)
    else:
        shown = text()
        if shown:
            click.echo(shown)


def _to_yaml(data: Any) -> str:
    import msgspec

    from muster.cli.yaml_text import to_yaml

    return to_yaml(msgspec.to_builtins(data))


def to_json(data: Any) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows under headings, in columns as kubectl prints them; numbers are not aligned specially."""
    cells = [[str(column).upper() for column in columns], *[[_cell(value) for value in row] for row in rows]]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def _cell(value: Any) -> str:
    return "<none>" if value is None or value == "" else str(value)


def note(message: str) -> None:
    """A remark beside the answer, for people: it goes to stderr."""
    click.echo(message, err=True)
