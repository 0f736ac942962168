"""What would help: changes that were tried on the planner before they are told to anyone.

Each module tries one sort of change (of the pods, of the groups, of who runs, of the nodes) and yields a suggestion
only if the root is placed with it. Cheapest first: correct what cannot match, put nodes back into service, widen the
domain, lower the minimum, wait for somebody, add nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from muster.scheduler.attempt import Outcome
from muster.scheduler.cycle import Brain
from muster.scheduler.explanation import Suggestion
from muster.scheduler.queue import Root
from muster.scheduler.suggestions.adding import add_nodes
from muster.scheduler.suggestions.correcting import fix_selectors, tolerate_taints
from muster.scheduler.suggestions.easing import lower_minimums, widen_topology
from muster.scheduler.suggestions.mending import put_nodes_back
from muster.scheduler.suggestions.question import Question
from muster.scheduler.suggestions.yielding import wait_for_others

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


Source = Callable[[Question], Iterable[Suggestion]]
Through = Callable[[Collection[Source]], Iterable[Source]]


def suggest(brain: Brain, root: Root, outcome: Outcome, through: Through = iter) -> list[Suggestion]:
    """Everything that was found to help, cheapest first. `through` may count the sources as they are asked."""
    question = Question(brain, root, outcome)
    return [suggestion for source in through(SOURCES) for suggestion in source(question)]


__all__ = ["ACTIONS", "Suggestion", "Through", "suggest"]
