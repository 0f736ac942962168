"""Trees that were bound in part and could not be completed in time: their seats are given back, as far as they can be.

A pod with a controller is deleted, because it comes again; one without a controller is kept, and the condition of the
root names it for as long as the tree waits.
"""

from __future__ import annotations

from collections.abc import Iterator

from muster.scheduler.cycle.report import report_groups
from muster.scheduler.interface.decisions import MOST_NOTE, Decision, Evict, RecordEvent
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.still_running import comes_again, running_members


def give_back(state: SchedulerState, now: float) -> Iterator[Decision]:
    """A tree that never ran and was not completed in time gives its seats back, where its pods come again."""
    limit = state.config.bind_timeout
    for key in state.checks.take_overdue(now, limit):
        top = state.top(key)
        if top is None:
            continue
        running = running_members(top, state.config.profiles)
        deleted = [member for member in running if comes_again(member)]
        yield from (Evict(member.ref, top.ref, given_back=True) for member in deleted)
        kept = sorted(member.ref.name for member in running if not comes_again(member))
        note = f"the minimum was not bound within {limit:g} s: {len(deleted)} pods are deleted"
        note += f", {len(kept)} without a controller are kept ({', '.join(kept)})" if kept else ""
        note = note[:MOST_NOTE]
        if kept:
            yield from report_groups(state, (top,), lambda group, text=note: ("Unschedulable", text))
        yield RecordEvent(top.ref, "Warning", "BindTimeout", "Binding", note)
