"""No entity is stuck: whatever happens to a tree while its binds are in flight, once all is answered it is scheduled.

First every order of the events around a child group that is deleted while its binds are in flight; then random lives
of random trees. At the end of each, nothing waits for an answer that has come, and a scheduler that is started with the
same objects finds nothing to do.
"""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.scheduler.cycle.scheduler import Scheduler
from muster.scheduler.groups.group import PENDING, entity_key
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.queue.entity import EntityState
from tests.build.delayed_api import DelayedApi, a_delayed_api
from tests.build.examples import examples
from tests.build.objects import a_composite, a_gang, a_node, pods
from tests.build.random_life import CHOICES, Deed, Life

STEPS = ("group", "pods", "execute", "answer", "again")
ORDERS = [
    order
    for length in (3, 4, 5)
    for order in permutations(STEPS, length)
    if {"group", "execute", "answer"} <= set(order)
    and order.index("execute") < order.index("answer")
    and ("again" not in order or order.index("group") < order.index("again"))
]
CHILDREN = {"leaf": ("g",), "composite": ("c",), "both": ("c", "g")}


def a_tree_whose_binds_are_in_flight() -> DelayedApi:
    """Composite `cc` with composite `c` and gang `h`; of `c` the gang `g`, whose two binds are under way."""
    api = a_delayed_api([a_node("n0", cpu=2)])
    api.create(a_composite("cc", 1))
    api.create(a_composite("c", 1, parent="cc"))
    api.create(a_gang("g", 2, parent="c"))
    api.create(a_gang("h", 2, parent="cc"))
    for pod in pods(2, "g"):
        api.create(pod)
    api.deliver()
    api.cycles()
    assert [call.pod.name for call in api.calls] == ["g-0", "g-1"]
    return api


def happen(api: DelayedApi, step: str, child: str, succeed: bool) -> None:
    """One step, seen by the scheduler at once."""
    groups = {"g": a_gang("g", 2, parent="c"), "c": a_composite("c", 1, parent="cc")}
    match step:
        case "group":
            for name in CHILDREN[child]:
                api.remove(groups[name].kind, name)
        case "pods":
            for name in ("g-0", "g-1"):
                api.remove("Pod", name)
        case "execute":
            api.execute(succeed=succeed)
        case "answer":
            api.answer()
        case _:
            for name in CHILDREN[child]:
                api.create(groups[name])
    api.deliver()
    api.cycles()


def check_nothing_is_stuck(api: DelayedApi) -> None:
    """Nothing waits for an answer that has come, and a scheduler without a past would neither bind nor evict."""
    state = api.scheduler.state
    state.check()
    assert state.assumed.in_flight() == 0
    for entity in state.queue.entities.values():
        assert entity.state not in (EntityState.BINDING, EntityState.PREEMPTING), f"{entity.key} is {entity.state}"
    queued = {entity_key(member) for member in state.forest.members.values() if member.state == PENDING}
    assert queued == state.queue.entities.keys()
    fresh, decisions = api.fresh_scheduler()
    assert decisions == []
    assert _outcomes(fresh) == _outcomes(api.scheduler)


def _outcomes(scheduler: Scheduler) -> dict[EntityKey, tuple[EntityState, str]]:
    """The state of each entity, and why it is unschedulable; which group of a cycle is its top depends on the past."""
    state = scheduler.state
    entities = [entity for entity in state.queue.entities.values() if not state.checks.is_invalid(entity.key)]
    return {e.key: (e.state, e.reason if e.state is EntityState.UNSCHEDULABLE else "") for e in entities}


@pytest.mark.parametrize("succeed", [True, False], ids=["accepted", "refused"])
@pytest.mark.parametrize("child", CHILDREN)
@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_a_child_group_is_deleted_while_its_binds_are_in_flight(order: tuple[str, ...], child: str, succeed: bool):
    api = a_tree_whose_binds_are_in_flight()
    for pod in pods(2, "h"):
        api.create(pod)  # while `cc` waits for the binds of `g`
    for step in order:
        happen(api, step, child, succeed)
    api.create(a_node("n1", cpu=4))
    api.settle()
    check_nothing_is_stuck(api)
    assert len(api.bound("h-")) == 2
    if "pods" not in order:
        left_without_group = not succeed and "again" not in order  # what was refused is not tried again so soon
        assert len(api.bound("g-")) == (0 if left_without_group else 2)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(CHOICES), st.integers(0, 1 << 16)), min_size=30, max_size=60))
def test_no_entity_is_stuck(deeds: list[Deed]):
    life = Life()
    life.live(deeds)
    life.api.settle()
    check_nothing_is_stuck(life.api)
