"""`muster replay`: run a decision log through the scheduler again and compare the decisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from muster.cli import exits, output

if TYPE_CHECKING:
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.simulation.decision_log import Header


@click.command(name="replay")
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output.option
@click.pass_context
def command(ctx: click.Context, log: Path, output_format: str) -> None:
    """Run the LOG that `muster scheduler --decision-log LOG` wrote through the scheduler again.

    The exit code is 0 when every decision is the same, byte for byte; else 1, and the first difference is printed.
    """
    from muster.scheduler.simulation.decision_log import BadLog, replay

    try:
        with log.open("rb") as lines:
            found = replay(lines, _scheduler)
    except (BadLog, ValueError) as error:
        raise exits.Failure(f"{log}: {error}", exits.BAD_INPUT) from error
    what = f"{found.events} events, {found.cycles} turns, {found.decisions} decisions"
    if found.difference is None:
        output.write(found, output_format, lambda: f"The same decisions, byte for byte ({what}).")
        return
    output.write(found, output_format, lambda: f"Not the same, after {what}:\n{found.difference}")
    ctx.exit(exits.NO)


def _scheduler(header: Header) -> Scheduler:
    from muster.engine.options import config
    from muster.scheduler.cycle.scheduler import Scheduler

    return Scheduler(config(header.config), seed=header.seed, gates=header.feature_gates())
