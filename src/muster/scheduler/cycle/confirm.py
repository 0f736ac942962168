"""Confirm that "infeasible" is true before it is said or anybody is evicted for it.

`check_proof` shares no code with the planner. It is run where that is affordable: proofs by counting and by weights,
in clusters where it takes a few milliseconds (`MOST_WORK`). A proof that it rejects is a fault of the
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

MOST_WORK = 500  # running pods, plus pairs of a node and a shape: about 5 µs each


def confirmed(state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation) -> Verdict:
    """The verdict of an evaluation, `Undecided` instead of an infeasibility whose proof is rejected."""
    verdict = evaluation.verdict
    if not isinstance(verdict, Infeasible):
        return verdict
    if isinstance(verdict.proof, ExhaustionProof) or _work(state, evaluation.request) > MOST_WORK:
        state.measurements.add_proof(UNCHECKED)
        return verdict
    fault = check_proof(verdict, evaluation.request, state.cluster, nominated=state.nominated_against(entity))
    state.measurements.add_proof(ACCEPTED if fault is None else REJECTED)
    return verdict if fault is None else Undecided(SearchStats(verdict.steps, shortages=shortages_of(verdict)))


def _work(state: SchedulerState, request: GroupRequest) -> int:
    """How much the checker has to read."""
    return len(state.cluster.pods) + len(state.cluster.index) * len(shapes_of(request))
