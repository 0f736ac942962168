"""Suggestions: changes that would help, each verified by the planner.

Each module tries one sort of change (of pod specs, of groups, of nodes and running pods) and yields a suggestion only
if the entity is placed with it. Cheapest first: correct what cannot match, put nodes back into service, widen the
domain, lower the minimum, wait for another entity to end, add nodes. What the server refuses to change on an object
that exists says that the object must be made anew, and comes after everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Set

from muster.scheduler.cycle.evaluate import Evaluation
from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.explain.explanation import Suggestion
from muster.scheduler.explain.suggestions.change_trial import CHANGEABLE, ChangeTrial
from muster.scheduler.explain.suggestions.fix_pod_spec import fix_selectors, tolerate_taints
from muster.scheduler.explain.suggestions.more_capacity import add_nodes, put_nodes_back, wait_for_others
from muster.scheduler.explain.suggestions.relax_group import lower_minimums, widen_topology
from muster.scheduler.queue.entity import QueuedEntity

ACTIONS = (
    "fix-selector",
    "tolerate-taint",
    "uncordon",
    "mend-nodes",
    "widen-topology",
    "lower-minimum",
    "wait-for",
    "add-nodes",
)
SOURCES = (
    fix_selectors,
    tolerate_taints,
    put_nodes_back,
    widen_topology,
    lower_minimums,
    wait_for_others,
    add_nodes,
)
Source = Callable[[ChangeTrial], Iterable[Suggestion]]
Through = Callable[[Collection[Source]], Iterable[Source]]


def suggest(
    scheduler: Scheduler,
    entity: QueuedEntity,
    evaluation: Evaluation,
    through: Through = iter,
    changeable: Set[str] = CHANGEABLE,
) -> list[Suggestion]:
    """Everything that was found to help, cheapest first. `through` may count the sources as they are tried."""
    trial = ChangeTrial(scheduler, entity, evaluation, changeable)
    found = [suggestion for source in through(SOURCES) for suggestion in source(trial)]
    return sorted(found, key=lambda suggestion: suggestion.recreate != "")


__all__ = ["ACTIONS", "CHANGEABLE", "Suggestion", "Through", "suggest"]
