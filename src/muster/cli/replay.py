"""`muster replay`: run a decision log through the scheduler again and compare the decisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from muster.cli import exits, output

if TYPE_CHECKING:
    from muster.scheduler.cycle.scheduler import Scheduler
    from muster.scheduler.simulation.decision_log import Header, Replayed


@click.command(name="replay")
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output.option
@click.pass_context
def command(ctx: click.Context, log: Path, output_format: str) -> None:
    """Run the LOG that --decision-log wrote through the scheduler again.

    A log in several segments is run segment by segment, each on its own, the oldest first; a single older segment can
    be named as well. The exit code is 0 when every decision is the same, byte for byte; else 1, and the first
    difference is printed.
    """
    from muster.engine.decision_log import older_segments
    from muster.scheduler.simulation.decision_log import Replayed

    events = cycles = decisions = 0
    segment, difference = log, None
    for segment in (*older_segments(log), log):
        found = _replay(segment)
        events, cycles, decisions = events + found.events, cycles + found.cycles, decisions + found.decisions
        difference = found.difference
        if difference is not None:
            break
    what = f"{events} events, {cycles} turns, {decisions} decisions"
    result = Replayed(events, cycles, decisions, difference)
    if difference is None:
        output.write(result, output_format, lambda: f"The same decisions, byte for byte ({what}).")
        return
    where = f" in {segment}" if segment != log else ""
    output.write(result, output_format, lambda: f"Not the same{where}, after {what}:\n{difference}")
    ctx.exit(exits.NO)


def _replay(segment: Path) -> Replayed:
    from muster.scheduler.simulation.decision_log import BadLog, replay

    try:
        with segment.open("rb") as lines:
            return replay(lines, _scheduler)
    except (BadLog, ValueError) as error:
        raise exits.Failure(f"{segment}: {error}", exits.BAD_INPUT) from error


def _scheduler(header: Header) -> Scheduler:
    from muster.engine.options import config
    from muster.scheduler.cycle.scheduler import Scheduler

    return Scheduler(config(header.config), seed=header.seed, gates=header.feature_gates())
