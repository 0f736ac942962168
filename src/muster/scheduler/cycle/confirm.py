"""Confirm that "infeasible" is true before it is said or anybody is evicted for it.

`check_proof` shares no code with the planner. It is run where that is affordable: proofs by counting and by weights,
over at most `MOST_CELLS` pairs of a node and a shape (about 5 µs each). A proof that it rejects is a fault of the
planner; the verdict is then `Undecided`, so nobody is evicted and the condition says that a placement may exist. What
became of each proof is measured.
"""

from __future__ import annotations

from muster.scheduler.checking.check_proof import check_proof
from muster.scheduler.cycle.evaluate import Evaluation
from muster.scheduler.placement.request import GroupRequest, shapes_of
from muster.scheduler.placement.verdict import ExhaustionProof, Infeasible, SearchStats, Undecided, Verdict
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.state.measurements import ACCEPTED, REJECTED, UNCHECKED
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.messages import shortages_of

MOST_CELLS = 1_000


def confirmed(state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation) -> Verdict:
    """The verdict of an evaluation, `Undecided` instead of an infeasibility whose proof is rejected."""
    verdict = evaluation.verdict
    if not isinstance(verdict, Infeasible):
        return verdict
    if isinstance(verdict.proof, ExhaustionProof) or _cells(state, evaluation.request) > MOST_CELLS:
        state.measurements.add_proof(UNCHECKED)
        return verdict
    fault = check_proof(verdict, evaluation.request, state.cluster, nominated=state.nominated_against(entity))
    state.measurements.add_proof(ACCEPTED if fault is None else REJECTED)
    return verdict if fault is None else Undecided(SearchStats(verdict.steps, shortages=shortages_of(verdict)))


def _cells(state: SchedulerState, request: GroupRequest) -> int:
    return len(state.cluster.index) * len(shapes_of(request))
