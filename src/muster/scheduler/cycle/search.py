"""The searches that go on in later cycles: kept, continued, dropped, and concluded from the cluster as it is then.

A search is about one request on one copy of the nodes. It is dropped when the entity asks for something else. What it
found is applied to the cluster as it is when the search ends; that nothing exists is believed only if nothing that
could help has changed since the search began, or if the proof is accepted for the cluster as it is.
"""

from __future__ import annotations

from muster.scheduler.cycle.evaluate import Evaluation, current_request, evaluate_resumed
from muster.scheduler.cycle.proofs import holds_now
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.request import GroupRequest, PodGroupRequest
from muster.scheduler.placement.verdict import Infeasible, SearchStats, Undecided
from muster.scheduler.planning.paused_search import PausedSearch
from muster.scheduler.queue.entity import EntityState, QueuedEntity
from muster.scheduler.state.scheduler_state import SchedulerState
from muster.scheduler.state.searches import KeptSearch
from muster.scheduler.status.messages import shortages_of

_WAITING = frozenset((EntityState.ACTIVE, EntityState.BACKOFF, EntityState.UNSCHEDULABLE))


def of_request(state: SchedulerState, entity: QueuedEntity, request: GroupRequest) -> KeptSearch | None:
    """The search under way for an entity, if it still asks for the same."""
    kept = state.searches.get(entity.key)
    return kept if kept is not None and kept.asked == _asked(request) else None


def keep(state: SchedulerState, entity: QueuedEntity, request: GroupRequest, paused: PausedSearch) -> bool:
    """Go on with a search in later cycles; False if too many are under way."""
    return state.searches.keep(KeptSearch(entity.key, paused, _asked(request), state.signals.gains, state.version))


def drop(state: SchedulerState, key: EntityKey, now: float) -> None:
    """The search of an entity is over; the next entity that waits for a place is tried again."""
    following = state.searches.drop(key)
    entity = state.queue.entities.get(following) if following is not None else None
    if entity is not None and entity.state is EntityState.UNSCHEDULABLE:
        state.queue.requeue(entity, now)


def run_slice(state: SchedulerState, now: float) -> tuple[QueuedEntity, Evaluation] | None:
    """One slice of the search whose turn it is; an entity and its verdict if that ended its search."""
    kept = state.searches.take_turn(others_wait=state.queue.peek() is not None)
    if kept is None:
        return None
    entity = state.queue.entities.get(kept.key)
    request = current_request(state, entity) if entity is not None and entity.state in _WAITING else None
    if entity is None or request is None or _asked(request) != kept.asked:
        drop(state, kept.key, now)
        return None
    spent = kept.paused.budget.spent
    answer = kept.paused.advance()
    state.planned_steps += kept.paused.budget.spent - spent
    if answer is None:
        return None
    drop(state, kept.key, now)
    evaluation = evaluate_resumed(state, entity, request, kept, answer)
    verdict, changed = evaluation.verdict, kept.gains != state.signals.gains
    if isinstance(verdict, Infeasible) and changed and not holds_now(state, entity, evaluation):
        evaluation.verdict = Undecided(SearchStats(verdict.steps, shortages=shortages_of(verdict)))
    return entity, evaluation


def _asked(request: GroupRequest) -> object:
    """What a request asks for, comparable between cycles."""
    common = (request.key, request.minimum, request.topology, request.domains)
    if isinstance(request, PodGroupRequest):
        return (*common, request.bound, tuple((member.uid, member.shape.id) for member in request.members))
    return (*common, tuple(_asked(child) for child in request.children))
