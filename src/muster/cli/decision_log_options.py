"""The option for the size of a decision log, which `muster scheduler` and `muster up` share."""

from __future__ import annotations

import click

SMALLEST = 1 << 16


def _bytes(ctx: click.Context, param: click.Parameter, text: str) -> int:
    """A quantity as a number of bytes."""
    from muster.api import quantity

    try:
        size = quantity.value(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if size < SMALLEST:
        raise click.BadParameter("it must be at least 64Ki")
    return size


decision_log_size = click.option(
    "--decision-log-max-size",
    callback=_bytes,
    default="256Mi",
    show_default=True,
    help="Size of the decision log; beyond it the oldest part goes.",
)
