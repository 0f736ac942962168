"""What a failed attempt leaves behind: who shares its fate, and which changes could end it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from muster.api import types
from muster.scheduler.cycle.evaluate import current_request
from muster.scheduler.cycle.requeue_hints import fault_hints, searching_hints
from muster.scheduler.queue.entity import EntityState, QueuedEntity, RequeueHints
from tests.build.objects import (
    HOSTNAME,
    RACK,
    a_claim,
    a_class,
    a_composite,
    a_gang,
    a_node,
    a_pod,
    apart,
    near,
    pods,
    using,
)
from tests.build.scheduler import TestWorld, a_world

TOO_MUCH = 9


def a_full_world() -> TestWorld:
    return a_world([a_node("n0", cpu=4)])


def entity_of(world: TestWorld, name: str) -> QueuedEntity:
    return next(one for one in world.scheduler.state.queue.entities.values() if one.key.name == name)


def hints_of(world: TestWorld, name: str) -> RequeueHints:
    return entity_of(world, name).hints


def hints_after(world: TestWorld, *objects: Any) -> RequeueHints:
    """Of the only entity that waits, once these objects have come."""
    (waiting,) = world.add(*objects).run().scheduler.state.queue.waiting
    return waiting.hints


def share_a_class(*objects: Any) -> bool:
    """Whether the two entities of these objects wait as one class."""
    world = a_full_world().add(*objects).run()
    state = world.scheduler.state
    assert {entity.state for entity in state.queue.entities.values()} == {EntityState.UNSCHEDULABLE}
    assert len(state.queue.entities) == 2
    return len(state.queue.waiting) == 1


# --- who is interchangeable ------------------------------------------------------------------------


def test_pods_that_differ_in_their_names_and_ages_alone_share_a_class():
    assert share_a_class(a_pod("p", cpu=TOO_MUCH), a_pod("q", cpu=TOO_MUCH, created=5))


@pytest.mark.parametrize(
    "fields",
    [{"cpu": TOO_MUCH + 1}, {"priority": 1}, {"policy": "Never"}, {"nodeSelector": {"disk": "ssd"}}],
    ids=["request", "priority", "right to preempt", "node selector"],
)
def test_pods_that_ask_for_something_else_do_not_share_a_class(fields: dict[str, Any]):
    assert not share_a_class(a_pod("p", cpu=TOO_MUCH), a_pod("q", **({"cpu": TOO_MUCH} | fields)))


def gangs(*sizes: tuple[int, int], **fields: Any) -> list[Any]:
    """Gangs a, b, ...: minimum and pods."""
    found: list[Any] = []
    for name, (minimum, count) in zip("ab", sizes, strict=False):
        found += [a_gang(name, minimum, **fields), *pods(count, name, cpu=TOO_MUCH)]
    return found


def test_gangs_of_equal_size_share_a_class():
    assert share_a_class(*gangs((2, 3), (2, 3)))


@pytest.mark.parametrize("sizes", [((2, 3), (3, 3)), ((2, 2), (2, 3))], ids=["minimum", "pods"])
def test_gangs_of_another_size_do_not_share_a_class(sizes: tuple[tuple[int, int], ...]):
    assert not share_a_class(*gangs(*sizes))


def test_a_gang_that_must_be_in_one_rack_is_not_in_the_class_of_one_that_need_not():
    assert not share_a_class(*gangs((1, 1)), a_gang("b", 1, topology=RACK), *pods(1, "b", cpu=TOO_MUCH))


def a_composite_of(name: str, *cpus: int) -> list[Any]:
    """A tree of one gang for each size of pod, in this order."""
    found: list[Any] = [a_composite(name, len(cpus))]
    for child, cpu in zip("ab", cpus, strict=True):
        found += [a_gang(f"{name}{child}", 1, parent=name), a_pod(f"{name}{child}-0", f"{name}{child}", cpu=cpu)]
    return found


def test_trees_share_a_class_whatever_the_order_of_their_children():
    assert share_a_class(*a_composite_of("x", TOO_MUCH, 1), *a_composite_of("y", 1, TOO_MUCH))
    assert not share_a_class(*a_composite_of("x", TOO_MUCH, 1), *a_composite_of("y", TOO_MUCH, TOO_MUCH))


def lasting(pod: types.Pod, duration: str) -> types.Pod:
    body = msgspec.to_builtins(pod)
    body["metadata"]["annotations"] = {types.EXPECTED_DURATION: duration}
    return msgspec.convert(body, types.Pod)


def test_pods_that_are_gone_in_time_are_not_in_the_class_of_those_that_are_not():
    p, q = a_pod("p", cpu=TOO_MUCH, owner="job"), a_pod("q", cpu=TOO_MUCH, owner="job")
    assert share_a_class(lasting(p, "60s"), lasting(q, "60s"))
    assert not share_a_class(lasting(p, "60s"), q)


def test_who_is_bound_in_part_is_not_in_the_class_of_those_that_are_not():
    world = a_full_world().add(a_gang("a", 2), a_pod("a-0", "a", node="n0"), a_pod("a-1", "a", cpu=TOO_MUCH))
    world.add(a_gang("b", 1), a_pod("b-0", "b", cpu=TOO_MUCH)).run()
    assert entity_of(world, "a").partly_bound
    assert hints_of(world, "a").key != hints_of(world, "b").key


# --- what can end a failure ------------------------------------------------------------------------


def test_every_shape_of_a_gang_has_a_row_with_what_one_pod_requests():
    world = a_full_world()
    hints = hints_after(world, a_gang("g", 3), *pods(2, "g", cpu=TOO_MUCH), a_pod("small", "g", cpu=1))
    row = world.scheduler.state.cluster.row["cpu"]
    assert hints.requests is not None
    assert hints.least is not None
    assert sorted(hints.requests[:, row].tolist()) == [1000, 1000 * TOO_MUCH]
    assert hints.least[row] == 1000 + 2 * 1000 * TOO_MUCH


def test_the_plugins_that_rejected_the_nodes_are_kept():
    assert hints_after(a_full_world(), a_pod("p", cpu=TOO_MUCH)).rejected_by == {"NodeResourcesFit"}
    assert hints_after(a_full_world(), a_pod("p", nodeSelector={"disk": "ssd"})).rejected_by == {"NodeAffinity"}


@pytest.mark.parametrize(("fields", "proven"), [({}, True), ({"affinity": apart(HOSTNAME, app="x")}, False)])
def test_a_failure_is_proven_if_nodes_alone_decided(fields: dict[str, Any], proven: bool):
    hints = hints_after(a_full_world(), a_pod("p", cpu=TOO_MUCH, **fields))
    assert (hints.proven, hints.undecided) == (proven, False)


def test_a_search_that_ended_without_an_answer_leaves_the_failure_undecided_and_unproven():
    world = a_world([a_node(f"n{i}", cpu=13) for i in range(5)])
    world.scheduler.state.config = replace(world.scheduler.state.config, budget_steps=1)
    sizes = [7, 7, 6, 6, 6, 5, 5, 5, 4, 4, 4, 3, 3]
    world.add(a_gang("g", len(sizes)), *[a_pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(sizes)]).run()
    hints = hints_of(world, "g")
    assert (hints.proven, hints.undecided) == (False, True)


def test_a_choice_of_victims_without_a_result_leaves_the_failure_unproven():
    world = a_full_world().add(a_pod("p", cpu=TOO_MUCH))
    entity = entity_of(world, "p")
    world.scheduler.state.preemptions.set_undecided(entity.key)
    world.run()
    assert (entity.hints.proven, entity.hints.undecided) == (False, False)


@pytest.mark.parametrize(("policy", "preempts"), [(None, True), ("Never", False)])
def test_room_that_evictions_could_make_counts_for_who_may_preempt(policy: str | None, preempts: bool):
    assert hints_after(a_full_world(), a_pod("p", cpu=TOO_MUCH, policy=policy)).preempts is preempts


def test_a_pod_without_rules_beyond_its_node_waits_for_no_plugin():
    hints = hints_after(a_full_world(), a_pod("p", cpu=TOO_MUCH))
    assert hints.plugins == frozenset()
    assert not hints.has_terms


def test_a_pod_with_terms_waits_for_the_plugin_that_reads_them():
    hints = hints_after(a_full_world(), a_pod("p", affinity=near(HOSTNAME, app="x")))
    assert "InterPodAffinity" in hints.plugins
    assert hints.has_terms


def test_a_pod_with_a_claim_waits_for_storage():
    world = a_full_world().add(a_class(waits=False), a_claim("data"))
    hints = hints_after(world, using("data", name="p"))
    assert "VolumeBinding" in hints.plugins
    assert not hints.has_terms


def test_the_attempt_knew_of_every_change_before_it_and_of_none_after_it():
    world = a_full_world()
    hints, state = hints_after(world, a_pod("p", cpu=TOO_MUCH)), world.scheduler.state
    assert (hints.stamp, hints.version) == (state.signals.stamp, state.version)
    world.add(a_node("n1"))
    assert hints.stamp < state.signals.stamp
    assert hints.version < state.version


# --- while something is under way ------------------------------------------------------------------


def test_while_victims_leave_an_entity_waits_alone_for_free_room_and_its_own_seats_count():
    world = a_full_world()
    world.slow_victims = True
    world.add(a_pod("low", cpu=4, node="n0"), a_pod("high", cpu=4, priority=5)).run()
    entity = entity_of(world, "high")
    assert entity.state is EntityState.PREEMPTING
    hints = entity.hints
    assert (hints.holder, hints.preempts, hints.proven) == (entity.key, False, False)
    assert hints.key == ("preempting", entity.key)


def test_while_a_search_goes_on_an_entity_waits_alone_and_every_gain_counts():
    world = a_full_world().add(a_pod("p", cpu=TOO_MUCH), a_pod("q", cpu=TOO_MUCH)).run()
    state = world.scheduler.state
    both = (entity_of(world, "p"), entity_of(world, "q"))
    p, q = (searching_hints(state, one, current_request(state, one)) for one in both)
    assert p.key != q.key
    assert (p.proven, p.preempts, p.holder) == (False, True, None)


def test_after_a_fault_no_change_of_the_cluster_can_help():
    world = a_full_world().add(a_pod("p", cpu=TOO_MUCH)).run()
    hints = fault_hints(world.scheduler.state, entity_of(world, "p"))
    assert (hints.request, hints.requests, hints.plugins) == (None, None, frozenset())
