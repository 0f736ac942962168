"""Groups that expect members which do not exist yet: the first start only if all fit, and the seats are held."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api import types
from muster.scheduler.interface import decisions as d
from muster.scheduler.queue.entity import EntityState
from tests.build.objects import (
    RACK,
    a_composite,
    a_gang,
    a_node,
    a_pod,
    apart_from_label,
    expects,
    expects_all,
    pods,
)
from tests.build.scheduler import TestWorld, a_world

NEW_YEAR = 1767225600.0  # 2026-01-01T00:00:00Z, when test objects are created
HIGH, LOW = 100, 10


def world_of(*nodes: types.Node, **options: Any) -> TestWorld:
    world = a_world(**options)
    world.now = NEW_YEAR
    return world.add(*nodes)


def held(world: TestWorld) -> list[tuple[str, str]]:
    """The seats held for members that do not exist, by uid and node."""
    nominations = world.scheduler.state.nominations
    return [(one.uid, one.node) for key in nominations.holding() for one in nominations.held(key)]


def arrives(world: TestWorld, name: str, group: str = "g", **fields: Any) -> None:
    """A member is created now."""
    world.add(a_pod(name, group, created=int(world.now - NEW_YEAR), **fields)).run()


def reasons(world: TestWorld) -> list[str]:
    return [event.reason for event in world.events]


# --- the first member ------------------------------------------------------------------------------


def test_the_first_member_starts_and_the_seats_of_the_others_are_held():
    world = world_of(a_node("n0", cpu=2), a_node("n1", cpu=2))
    world.add(a_gang("g", 4, expects=expects(4)), a_pod("g-0", "g")).run()
    assert len(world.bound()) == 1
    assert len(held(world)) == 3
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "WaitingForExpectedMembers")
    assert condition.message == (
        "1 of 4 members are bound; seats for 3 expected members are held on 2 nodes until 2026-01-01T00:05:00Z"
    )
    assert "SeatsHeld" in reasons(world)


def test_no_member_starts_without_room_for_all():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 4, expects=expects(4)), a_pod("g-0", "g")).run()
    assert world.bound() == {}
    assert held(world) == []
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.reason == "Unschedulable"
    assert "3 of 4 seats" in condition.message
    assert "3 members do not exist yet and are planned for" in condition.message
    world.add(a_node("n1", cpu=1)).run()
    assert len(world.bound()) == 1
    assert len(held(world)) == 3


def test_without_enough_expected_members_the_group_waits_for_pods():
    world = world_of(a_node("n0", cpu=8))
    world.add(a_gang("g", 4, expects=expects(3)), a_pod("g-0", "g")).wait(3)
    assert world.bound() == {}
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.message == "1 of 4 members exist, 2 more are expected"


def test_members_beyond_the_minimum_have_no_seats_held():
    world = world_of(a_node("n0", cpu=8))
    world.add(a_gang("g", 2, expects=expects(5)), a_pod("g-0", "g")).run()
    assert len(held(world)) == 1


def test_the_shape_of_the_others_may_be_another():
    world = world_of(a_node("n0", cpu=1), a_node("n1", cpu=6))
    templates = expects_all((1, a_pod(cpu=1), "created"), (2, a_pod(cpu=3), "ready"))
    world.add(a_gang("g", 3, expects=templates), a_pod("g-0", "g", cpu=1)).run()
    assert world.bound() == {"g-0": "n0"}
    assert [node for _, node in held(world)] == ["n1", "n1"]


def test_limits_without_requests_count_as_requests():
    like = a_pod(cpu=None, container={"resources": {"limits": {"cpu": "2"}}})
    world = world_of(a_node("n0", cpu=4))
    world.add(a_gang("g", 3, expects=expects(3, like)), a_pod("g-0", "g", cpu=1)).run()
    assert world.bound() == {}


# --- members that come -----------------------------------------------------------------------------


def test_every_member_that_comes_takes_a_held_seat_and_the_group_is_scheduled_with_the_last():
    world = world_of(a_node("n0", cpu=2), a_node("n1", cpu=2))
    world.add(a_gang("g", 4, expects=expects(4)), a_pod("g-0", "g")).run()
    nodes = [node for _, node in held(world)]
    for i in (1, 2, 3):
        world.add(*pods(2, name=f"thief-{i}", priority=0)).run()
        arrives(world, f"g-{i}")
        assert len(world.bound("g")) == i + 1
        assert len(held(world)) == 3 - i
    assert sorted(world.bound("g").values()) == sorted([*nodes, world.bound()["g-0"]])
    assert world.bound("thief") == {}
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.status == "True"


def test_a_member_that_comes_does_not_move_the_seats_of_the_others():
    world = world_of(*[a_node(f"n{i}", cpu=1) for i in range(6)])
    world.add(a_gang("g", 4, expects=expects(4)), a_pod("g-0", "g")).run()
    before = dict(held(world))
    world.add(*[a_node(f"better-{i}", cpu=8) for i in range(3)]).run()
    arrives(world, "g-1")
    assert dict(held(world)).items() <= before.items()
    assert world.bound()["g-1"] in before.values()


def test_a_member_with_other_requests_is_planned_anew_and_its_seat_goes():
    world = world_of(a_node("n0", cpu=3), a_node("n1", cpu=2))
    world.add(
        a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g", nodeSelector={"kubernetes.io/hostname": "n0"})
    ).run()
    assert len(held(world)) == 2
    arrives(world, "g-1", cpu=2)
    assert len(world.bound("g")) == 2
    assert len(held(world)) == 1


def test_the_time_begins_again_with_every_member():
    world = world_of(a_node("n0", cpu=4))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).wait(200)
    arrives(world, "g-1")
    world.wait(200)
    assert len(held(world)) == 1
    world.wait(101)
    assert held(world) == []


def test_a_member_that_cannot_be_placed_yet_gives_the_others_their_time_too():
    world = world_of(a_node("n0", cpu=4))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).wait(200)
    arrives(world, "g-1", gates=["kueue.x-k8s.io/admission"])
    world.wait(200)
    assert len(held(world)) == 2


def test_when_the_time_is_over_the_seats_are_given_back_and_the_group_says_so():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.add(a_pod("other", cpu=2)).wait(299)
    assert "other" not in world.bound()
    world.wait(2)
    assert held(world) == []
    assert "other" in world.bound()
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.reason == "ExpectedMembersMissing"
    assert condition.message == (
        "2 expected members did not come within 300 s of the last one: seats are no longer held for them"
    )
    assert reasons(world).count("ExpectedMembersMissing") == 1
    assert world.evicted() == []  # what is bound stays bound
    assert set(world.bound()) == {"g-0", "other"}


def test_a_late_member_starts_only_with_room_for_the_rest():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).wait(301)
    world.add(a_pod("other", cpu=1)).run()
    arrives(world, "g-1")
    assert "g-1" not in world.bound()
    world.remove("Pod", "other")
    world.run()
    assert "g-1" in world.bound()
    assert len(held(world)) == 1


def test_a_gated_member_keeps_the_seat_of_its_ordinal():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    arrives(world, "g-1", gates=["kueue.x-k8s.io/admission"])
    assert len(held(world)) == 2
    assert set(world.bound()) == {"g-0"}
    world.add(a_pod("g-1", "g")).run()
    assert set(world.bound()) == {"g-0", "g-1"}
    assert len(held(world)) == 1


# --- whom the seats are kept from ------------------------------------------------------------------


@pytest.mark.parametrize(("priority", "gets_it"), [(0, False), (-5, False), (1, True)])
def test_higher_priority_may_take_a_held_seat_equal_and_lower_may_not(priority: int, gets_it: bool):
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.add(a_pod("other", cpu=2, priority=priority, policy="Never")).run()
    assert ("other" in world.bound()) == gets_it


def test_seats_that_a_higher_priority_took_are_said_to_be_lost_and_found_again():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.add(a_pod("other", cpu=1, priority=HIGH)).run()
    assert held(world) == []
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.reason == "Unschedulable"
    assert "1 of 2 seats" in condition.message
    world.remove("Pod", "other")
    world.run()
    assert len(held(world)) == 2


def test_a_seat_on_a_node_that_goes_is_held_elsewhere():
    world = world_of(a_node("n0", cpu=1), a_node("n1", cpu=1), a_node("n2", cpu=1))
    world.add(a_gang("g", 2, expects=expects(2)), a_pod("g-0", "g")).run()
    ((_, node),) = held(world)
    world.remove("Node", node)
    world.run()
    ((_, other),) = held(world)
    assert other not in (node, world.bound()["g-0"])


def test_nobody_is_evicted_for_expected_members_alone():
    world = world_of(a_node("n0", cpu=1), a_node("n1", cpu=2))
    near_n1 = {"kubernetes.io/hostname": "n1"}
    like = a_pod(nodeSelector={"kubernetes.io/hostname": "n0"})
    world.add(a_gang("g", 2, priority=HIGH, expects=expects(2, like)))
    world.add(a_pod("g-0", "g", priority=HIGH, nodeSelector=near_n1)).run()
    ((_, node),) = held(world)
    world.add(a_pod("low", priority=LOW)).run()
    assert world.bound()["low"] == world.bound()["g-0"] == "n1"
    world.add(a_gang("g", 2, priority=HIGH, expects=expects(2)))  # they may be anywhere now
    world.remove("Node", node)
    world.run()
    assert held(world) == []
    assert world.evicted() == []


def test_victims_are_evicted_for_expected_members_as_part_of_the_whole_plan():
    world = world_of(a_node("n0", cpu=4))
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(4)])
    like = a_pod(priority=HIGH)
    world.add(a_gang("g", 3, priority=HIGH, expects=expects(3, like)), a_pod("g-0", "g", priority=HIGH)).run()
    assert len(world.evicted()) == 3
    assert set(world.bound("g")) == {"g-0"}
    assert len(held(world)) == 2


def test_while_victims_leave_the_seats_of_expected_members_are_nominated_too():
    world = world_of(a_node("n0", cpu=4))
    world.slow_victims = True
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(4)])
    world.add(a_gang("g", 3, priority=HIGH, expects=expects(3)), a_pod("g-0", "g", priority=HIGH)).run()
    state = world.scheduler.state
    assert len(state.nominations.of(next(iter(state.queue.entities)))) == 3
    assert held(world) == []  # held from the first bind on
    first = min(name for name in world.bound() if world.pod(name).metadata.deletion_timestamp)
    world.remove("Pod", first)
    world.add(*pods(4, name="thief", priority=LOW)).run()
    assert world.bound("thief") == {}
    world.reap()
    world.run()
    assert set(world.bound("g")) == {"g-0"}
    assert len(held(world)) == 2
    assert world.bound("thief") == {}


def test_not_even_an_eviction_helps_a_group_whose_members_to_come_never_fit():
    world = world_of(a_node("n0", cpu=2))
    world.add(*[a_pod(f"low-{i}", priority=LOW, node="n0") for i in range(2)])
    world.add(a_gang("g", 3, priority=HIGH, expects=expects(3)), a_pod("g-0", "g", priority=HIGH)).run()
    assert world.evicted() == []
    assert world.bound("g") == {}


# --- topology and trees ----------------------------------------------------------------------------


def test_the_domain_is_chosen_for_all():
    world = world_of(a_node("a0", cpu=3, rack="a"), a_node("b0", cpu=2, rack="b"), a_node("b1", cpu=2, rack="b"))
    world.add(a_gang("g", 4, topology=RACK, expects=expects(4)), a_pod("g-0", "g")).run()
    assert world.domain("g-0") == "b"
    assert {node for _, node in held(world)} <= {"b0", "b1"}
    for i in (1, 2, 3):
        arrives(world, f"g-{i}")
    assert len(world.bound("g")) == 4
    assert {world.domain(name) for name in world.bound("g")} == {"b"}


def test_a_group_that_does_not_exist_yet_is_held_for_in_its_tree():
    world = world_of(a_node("n0", cpu=2), a_node("n1", cpu=2))
    world.add(a_composite("tree", 2), a_gang("first", 2, parent="tree"))
    world.add(a_gang("then", 2, parent="tree", expects=expects(2)))
    world.add(*pods(2, "first")).run()
    assert len(world.bound("first")) == 2
    assert [uid for uid, _ in held(world)] == ["ns/then/0", "ns/then/1"]
    condition = world.condition("PodGroup", "then")
    assert condition is not None
    assert condition.message.startswith("0 of 2 members are bound; seats for 2 expected members are held")
    root = world.condition("CompositePodGroup", "tree")
    assert root is not None
    assert root.message.startswith("seats for 2 expected members are held")
    arrives(world, "then-0", "then")
    arrives(world, "then-1", "then")
    assert len(world.bound()) == 4
    assert held(world) == []


def test_nothing_of_a_tree_starts_if_a_group_that_comes_later_would_not_fit():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_composite("tree", 2), a_gang("first", 2, parent="tree"))
    world.add(a_gang("then", 2, parent="tree", expects=expects(2)))
    world.add(*pods(2, "first")).run()
    assert world.bound() == {}


def test_of_two_groups_the_one_that_exists_is_started_where_one_is_enough():
    world = world_of(a_node("n0", cpu=2))
    world.add(a_composite("tree", 1), a_gang("b-real", 2, parent="tree"))
    world.add(a_gang("a-later", 2, parent="tree", expects=expects(2)))
    world.add(*pods(2, "b-real")).run()
    assert len(world.bound("b-real")) == 2


def test_rules_between_members_count_for_those_to_come():
    labels = {"app": "x"}
    like = a_pod(labels=labels, affinity=apart_from_label("app"))
    world = world_of(a_node("n0"), a_node("n1"))
    world.add(
        a_gang("g", 3, expects=expects(3, like)), a_pod("g-0", "g", labels=labels, affinity=apart_from_label("app"))
    )
    world.run()
    assert world.bound() == {}
    world.add(a_node("n2")).run()
    assert len(world.bound()) == 1
    assert len({node for _, node in held(world)} | set(world.bound().values())) == 3


# --- the end ---------------------------------------------------------------------------------------


def test_seats_are_released_when_the_group_goes():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.remove("PodGroup", "g")
    world.run()
    assert held(world) == []


def test_seats_are_released_when_nothing_of_the_tree_is_bound_any_more():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.add(a_pod("other", cpu=3)).run()
    world.remove("Pod", "g-0")
    world.run()
    assert held(world) == []
    assert set(world.bound()) == {"other"}


def test_seats_are_released_when_nobody_is_expected_any_more():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.add(a_gang("g", 1)).run()
    assert held(world) == []


def test_a_refused_bind_of_the_first_member_holds_nothing_and_the_next_attempt_does():
    world = world_of(a_node("n0", cpu=3))
    world.refuse_binds.add("g-0")
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.wait(5)
    assert set(world.bound()) == {"g-0"}
    assert len(held(world)) == 2


def test_a_group_that_was_recreated_starts_as_a_whole_again():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), *pods(3, "g")).run()
    assert len(world.bound()) == 3
    for i in range(3):
        world.remove("Pod", f"g-{i}")
    world.add(a_pod("other", cpu=1)).run()
    arrives(world, "g-0")
    assert world.bound() == {"other": "n0"}
    world.remove("Pod", "other")
    world.run()
    assert set(world.bound()) == {"g-0"}
    assert len(held(world)) == 2


# --- after a restart -------------------------------------------------------------------------------


def test_after_a_restart_the_seats_are_held_again_before_anybody_is_placed():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.add(*pods(2, name="thief", priority=0))
    world.restart()
    world.run()
    assert len(held(world)) == 2
    assert world.bound("thief") == {}
    arrives(world, "g-1")
    arrives(world, "g-2")
    assert len(world.bound("g")) == 3


def test_after_a_restart_the_time_goes_on_as_the_objects_say():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).wait(200)
    world.restart()
    world.wait(90)
    assert len(held(world)) == 2
    world.wait(15)
    assert held(world) == []
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.reason == "ExpectedMembersMissing"


def test_what_ended_while_nobody_watched_is_said_after_the_restart():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.now += 1000
    world.restart()
    world.run()
    assert held(world) == []
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.reason == "ExpectedMembersMissing"


def test_seats_that_cannot_be_had_any_more_after_a_restart_are_said_to_be_missing():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.add(a_pod("squatter", cpu=2, node="n0"))
    world.restart()
    world.run()
    assert held(world) == []
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.reason == "Unschedulable"
    world.remove("Pod", "squatter")
    world.run()
    assert len(held(world)) == 2


# --- what cannot be read ---------------------------------------------------------------------------


def test_an_annotation_that_cannot_be_read_expects_nobody_and_is_said_on_the_group():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects="[{}]"), a_pod("g-0", "g")).wait(3)
    assert world.bound() == {}
    condition = world.condition("PodGroup", "g")
    assert condition is not None
    assert condition.reason == "WaitingForMembers"
    assert "expected-members][0].count" in condition.message
    (event,) = [event for event in world.events if event.reason == "InvalidExpectedMembers"]
    assert event.about.name == "g"
    world.add(a_gang("g", 3, expects=expects(3))).run()
    assert set(world.bound()) == {"g-0"}


def test_what_is_left_in_the_queue_is_nothing():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    assert list(world.scheduler.state.queue.entities) == []
    assert not any(isinstance(one, d.Nominate) for one in world.log)
    world.add(a_pod("other", cpu=1, priority=HIGH)).run()
    (entity,) = world.scheduler.state.queue.entities.values()
    assert entity.state is EntityState.UNSCHEDULABLE
    world.wait(301)
    assert list(world.scheduler.state.queue.entities) == []


# --- members that come when others are completed ---------------------------------------------------


def test_nothing_is_held_for_members_that_come_when_others_are_completed():
    world = world_of(a_node("n0", cpu=2))
    world.add(a_gang("g", 1, expects=expects(2, after="completed")), a_pod("g-0", "g"), a_pod("other")).run()
    assert held(world) == []
    assert set(world.bound()) == {"g-0", "other"}
    assert "LaterMembersNeverFit" not in reasons(world)


@pytest.mark.parametrize(
    ("count", "topology", "text"),
    [
        (5, None, "5 members to come when others are completed will not fit: the empty cluster has 4 seats for them"),
        (3, RACK, "the best rack of the empty cluster has 2 seats"),
        (4, None, ""),
        (2, RACK, ""),
    ],
)
def test_it_is_said_if_they_would_not_even_fit_into_the_empty_cluster(count: int, topology: str | None, text: str):
    world = world_of(a_node("n0", cpu=2, rack="a"), a_node("n1", cpu=2, rack="b"))
    world.add(a_pod("busy", cpu=2, node="n0"))
    world.add(a_gang("g", count, topology=topology, expects=expects(count, after="completed"))).run()
    world.add(a_pod("g-0", "g")).run()
    notes = [event.note for event in world.events if event.reason == "LaterMembersNeverFit"]
    assert [text in note for note in notes] == ([True] if text else [])


# --- beside other rules ----------------------------------------------------------------------------


def test_the_seat_of_a_member_that_came_otherwise_and_does_not_fit_is_free_for_others():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    arrives(world, "g-1", cpu=64)
    assert len(held(world)) == 1
    world.add(a_pod("other", cpu=1)).run()
    assert "other" in world.bound()


def test_seats_go_with_their_group_into_the_tree_that_it_joins():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.add(a_composite("tree", 1), a_gang("g", 3, parent="tree", expects=expects(3))).run()
    assert [key.name for key in world.scheduler.state.nominations.holding()] == ["tree"]
    assert len(held(world)) == 2


def test_a_tree_that_expects_members_is_not_given_back_for_being_bound_in_part():
    world = world_of(a_node("n0", cpu=3))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g", owner="Job/x")).run()
    arrives(world, "g-1", owner="Job/x", gates=["hold"])
    world.wait(1000)
    assert world.evicted() == []


def test_seats_are_never_reserved_for_members_to_come_alone():
    args = {"expectedMembersTimeoutSeconds": 900, "reservations": {"patienceSeconds": 10}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "Muster", "args": args}]}],
    }
    world = world_of(a_node("n0", cpu=3), config=config)
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.add(a_pod("other", cpu=1, priority=HIGH)).wait(60)
    assert [entity.key.name for entity in world.scheduler.state.queue.entities.values()] == ["g"]
    assert list(world.scheduler.state.reservations) == []


def test_how_long_members_to_come_will_run_is_not_known():
    world = world_of(a_node("n0", cpu=1))
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g", activeDeadlineSeconds=10)).run()
    (entity,) = world.scheduler.state.queue.entities.values()
    assert world.scheduler.state.longest_run(entity) is None
