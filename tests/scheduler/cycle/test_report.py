"""What conditions and events of failed entities say."""

from __future__ import annotations

from dataclasses import replace

from muster.scheduler.cycle.report import clear_nominations, report_groups, report_pod
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface.decisions import MOST_NOTE
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import a_world


def test_a_rack_that_came_nearest_is_named():
    world = a_world([a_node(f"n{i}", cpu=2, rack=f"r{i // 2}") for i in range(4)])

    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()

    assert world.bound() == {}
    assert "rack r" in world.condition("PodGroup", "g").message
    assert "4 of 5 seats" in world.condition("PodGroup", "g").message


def test_an_undecided_group_passes_its_reason_to_its_pods():
    sizes = [7, 7, 6, 6, 6, 5, 5, 5, 4, 4, 4, 3, 3]
    world = a_world([a_node(f"n{i}", cpu=13) for i in range(5)])
    world.scheduler.state.config = replace(world.scheduler.state.config, budget_steps=1)
    world.add(a_gang("g", len(sizes)), *[a_pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(sizes)]).run()
    for kind, name in (("PodGroup", "g"), ("Pod", "g-0"), ("Pod", "g-12")):
        condition = world.condition(kind, name)
        assert (condition.status, condition.reason) == ("False", "PlacementNotGuaranteed")
        assert condition.message.startswith("no placement found within the budget, one may exist")


def test_single_pods_without_room_carry_the_usual_message():
    world = a_world([a_node("n0", cpu=1), a_node("n1", cpu=1)])
    world.add(a_pod("big", cpu=2)).run()

    assert world.condition("Pod", "big").message == "0/2 nodes are available: 2 Insufficient cpu."


def test_a_composite_reports_for_its_own_level():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_composite("root", 2), a_gang("a", 1, parent="root"), a_gang("b", 2, parent="root"))
    world.add(*pods(1, "a"), *pods(2, "b")).run()

    assert world.bound() == {}
    assert world.condition("CompositePodGroup", "root").reason == "Unschedulable"

    world.add(a_node("n1", cpu=1)).run()

    assert len(world.bound()) == 3
    assert world.condition("CompositePodGroup", "root").status == "True"


def test_a_condition_and_an_event_are_written_once_for_each_group():
    world = a_world([a_node("n0")]).add(a_composite("top", 1), a_gang("g", 1, parent="top"), *pods(1, "g"))
    state = world.scheduler.state
    (entity,) = state.queue.entities.values()
    assert entity.group is not None
    groups = list(entity.group.subtree())
    written = list(report_groups(state, groups, lambda group: ("Unschedulable", group.key.name)))
    assert [type(each) for each in written] == [d.SetCondition, d.RecordEvent] * 2
    assert [each.about.name for each in written if isinstance(each, d.RecordEvent)] == ["top", "g"]
    assert list(report_groups(state, groups, lambda group: ("Unschedulable", group.key.name))) == []


def test_what_a_pod_says_already_is_not_written_again():
    world = a_world([a_node("n0", cpu=1)]).add(a_pod("big", cpu=2)).run()
    world.restart()
    member = world.scheduler.state.forest.members["pod-big"]
    message = world.condition("Pod", "big").message
    assert list(report_pod(world.scheduler.state, member, message)) == []
    assert len(list(report_pod(world.scheduler.state, member, "something else"))) == 2


def test_notes_of_events_are_cut_where_the_api_cuts_them():
    world = a_world([a_node("n0")]).add(a_pod("p"))
    written = list(report_pod(world.scheduler.state, world.scheduler.state.forest.members["pod-p"], "x" * 2000))
    assert [len(each.note) for each in written if isinstance(each, d.RecordEvent)] == [MOST_NOTE]


def test_nominations_are_cleared_on_the_pods_that_have_one():
    world = a_world([a_node("n0")]).add(a_gang("g", 2), *pods(2, "g"))
    world._replace_status(world.scheduler.state.forest.members["pod-g-1"].ref, nominated_node_name="n0")
    (entity,) = world.scheduler.state.queue.entities.values()
    cleared = list(clear_nominations(world.scheduler.state, entity))
    assert cleared == [d.Nominate(world.scheduler.state.forest.members["pod-g-1"].ref, "")]
