"""Confirm that "infeasible" is true before it is said or anybody is evicted for it.

`check_proof` shares no code with the planner. It is run where it can judge and is affordable: proofs by counting and by
weights, of pods that only plugins it knows of concern, in clusters where it takes a few milliseconds (`MOST_WORK`). A
proof that it rejects is a fault of the planner; the verdict is then `Undecided`, so nobody is evicted and the condition
says that a placement may exist. What became of each proof is measured.
"""

from __future__ import annotations

from muster.scheduler.checking.check_proof import check_proof
from muster.scheduler.cycle.evaluate import Evaluation
from muster.scheduler.placement.request import GroupRequest, shapes_of
from muster.scheduler.placement.verdict import ExhaustionProof, Infeasible, SearchStats, Undecided, Verdict
from muster.scheduler.queue.entity import QueuedEntity
from muster.scheduler.runtime.profile import profile_of
from muster.scheduler.state.measurements import ACCEPTED, REJECTED, UNCHECKED
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.status.messages import shortages_of

# What the checker knows of, and plugins that only score. Volumes, devices and plugins of users it does not judge.
CHECKED_PLUGINS = frozenset(
    (
        "ImageLocality",
        "InterPodAffinity",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "PodTopologySpread",
        "TaintToleration",
    )
)
MOST_WORK = 500  # running pods, plus pairs of a node and a shape: about 5 µs each


def checked_verdict(state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation) -> Verdict:
    """The verdict of an evaluation, `Undecided` instead of an infeasibility whose proof is rejected."""
    verdict = evaluation.verdict
    if not isinstance(verdict, Infeasible):
        return verdict
    if not _is_checkable(state, evaluation.request, verdict):
        state.measurements.add_proof(UNCHECKED)
        return verdict
    fault = check_proof(verdict, evaluation.request, state.cluster, nominated=state.nominated_against(entity))
    state.measurements.add_proof(ACCEPTED if fault is None else REJECTED)
    return verdict if fault is None else Undecided(SearchStats(verdict.steps, shortages=shortages_of(verdict)))


def holds_now(state: SchedulerState, entity: QueuedEntity, evaluation: Evaluation) -> bool:
    """Whether the proof of an older infeasibility is checkable, and accepted for the cluster as it is."""
    verdict = evaluation.verdict
    assert isinstance(verdict, Infeasible)
    if not _is_checkable(state, evaluation.request, verdict):
        return False
    return check_proof(verdict, evaluation.request, state.cluster, nominated=state.nominated_against(entity)) is None


def _is_checkable(state: SchedulerState, request: GroupRequest, verdict: Infeasible) -> bool:
    shapes = shapes_of(request)
    if isinstance(verdict.proof, ExhaustionProof):
        return False
    if len(state.cluster.pods) + len(state.cluster.index) * len(shapes) > MOST_WORK:
        return False
    return not any(
        plugin.concerns(shape)
        for shape in shapes.values()
        for plugin in profile_of(shape).filters
        if plugin.name not in CHECKED_PLUGINS
    )
