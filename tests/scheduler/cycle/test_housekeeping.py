"""Work that is due before an entity is tried: wait reasons, faults, minimums reached or lost, seats given back."""

from __future__ import annotations

from muster.api import groups as api
from muster.scheduler.cycle.housekeeping import next_due
from muster.scheduler.interface import decisions as d
from tests.build.objects import a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world


def until(world: TestWorld, kind: type) -> None:
    """Turns until a decision of a kind was carried out."""
    while not any(isinstance(decision, kind) for decision in world.log):
        assert world.step(), f"no {kind.__name__} came"


def stuck(owner: str | None) -> TestWorld:
    """Two of three members are bound when the room for the third is taken for good."""
    world = a_world([a_node("n0", cpu=3)])
    world.refuse_binds = {"g-2"}
    world.add(a_gang("g", 3), *pods(3, "g", owner=owner))
    until(world, d.Bind)
    return world.add(a_pod("squatter", node="n0")).run()


def test_members_wait_until_the_quorum_exists_and_the_group_says_how_many_are_missing():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 8), *pods(6, "g")).run()

    assert world.condition("PodGroup", "g") is None, "nothing is said in the first two seconds"
    world.wait(3)

    assert world.bound() == {}
    condition = world.condition("PodGroup", "g")
    assert (condition.reason, condition.message) == ("WaitingForMembers", "6 of 8 members exist")


def test_waiting_is_said_at_most_once_in_ten_seconds():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 8), *pods(2, "g"))
    world.wait(3)
    for number in range(2, 6):
        world.add(a_pod(f"g-{number}", "g"))
        world.wait(1)

    said = [e for e in world.events if e.reason == "WaitingForMembers"]
    assert [e.note for e in said] == ["2 of 8 members exist"]
    world.wait(10)
    assert world.condition("PodGroup", "g").message == "6 of 8 members exist"


def test_pods_of_a_missing_group_are_told_so():
    world = a_world([a_node("n0")])
    world.add(*pods(2, "nobody"))

    world.wait(3)

    condition = world.condition("Pod", "nobody-0")
    assert (condition.status, condition.reason) == ("False", "WaitingForPodGroup")


def of_pod(world: TestWorld, name: str) -> list[d.RecordEvent]:
    return [event for event in world.events if (event.about.kind, event.about.name) == ("Pod", name)]


def test_a_pod_of_a_missing_group_gets_one_event():
    world = a_world([a_node("n0")]).add(*pods(2, "nobody")).wait(60)
    (event,) = of_pod(world, "nobody-1")
    assert (event.kind, event.reason) == ("Warning", "FailedScheduling")
    assert event.note == "pod group nobody does not exist"


def test_members_of_an_incomplete_gang_say_which_group_and_how_many():
    world = a_world([a_node("n0", cpu=8)]).add(a_gang("g", 4), *pods(2, "g")).wait(3)
    condition = world.condition("Pod", "g-1")
    assert (condition.status, condition.reason) == ("False", "WaitingForMembers")
    assert condition.message == "pod group g waits: 2 of 4 members exist"
    world.add(a_pod("g-2", "g")).wait(30)
    assert world.condition("Pod", "g-0").message == "pod group g waits: 3 of 4 members exist"
    assert [event.note for event in of_pod(world, "g-0")] == ["pod group g waits: 2 of 4 members exist"]


def test_the_pods_of_a_tree_say_what_their_own_group_waits_for():
    world = a_world([a_node("n0", cpu=8)]).add(a_composite("top", 2), a_gang("a", 1, parent="top"), *pods(1, "a"))
    world.add(a_gang("b", 2, parent="top"), *pods(1, "b")).wait(3)
    assert world.condition("Pod", "b-0").message == "pod group b waits: 1 of 2 members exist"
    above = "pod group a waits: composite pod group top is incomplete: 1 of 2 child groups are complete"
    assert world.condition("Pod", "a-0").message == above


def test_a_gate_is_said_on_the_pods_that_it_holds_and_not_on_the_gated_one():
    world = a_world([a_node("n0", cpu=8)]).add(a_gang("g", 2), a_pod("free", "g"), a_pod("gated", "g", gates=["x"]))
    world.wait(3)
    assert world.condition("Pod", "free").reason == "SchedulingGated"
    assert world.condition("Pod", "gated") is None


def test_a_gang_that_is_complete_in_time_says_nothing_on_its_pods():
    world = a_world([a_node("n0", cpu=8)]).add(a_gang("g", 4), *pods(2, "g")).wait(1)
    world.add(*[a_pod(f"g-{i}", "g") for i in (2, 3)]).wait(60)
    assert len(world.bound("g")) == 4
    assert [event.reason for event in of_pod(world, "g-0")] == ["Scheduled"]


def test_the_pods_of_an_invalid_tree_say_why():
    world = a_world([a_node("n0", cpu=8)]).add(a_composite("a", 1, parent="b"), a_composite("b", 1, parent="a"))
    world.add(a_gang("g", 1, parent="a"), *pods(1, "g")).run()
    condition = world.condition("Pod", "g-0")
    assert condition.reason == "SchedulerError"
    assert "the parents form a cycle" in condition.message


def test_success_is_recorded_once_and_for_all():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    for name in ("g-0", "g-1"):
        world.remove("Pod", name)
    world.add(*[a_pod(f"q-{i}", "g", cpu=2) for i in range(2)]).run()

    assert world.bound() == {}
    assert world.condition("PodGroup", "g").status == "True"
    quorum = world.condition("PodGroup", "g", api.QUORUM_MET)
    assert (quorum.status, quorum.reason) == ("False", "BelowMinimum")


def test_a_ring_of_parents_is_reported_on_every_group_and_mending_clears_it():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_composite("egg", 1, parent="chicken"), a_composite("chicken", 1, parent="egg"))
    world.add(a_gang("yolk", 1, parent="egg"), *pods(1, "yolk")).run()

    for kind, name in (("CompositePodGroup", "egg"), ("CompositePodGroup", "chicken"), ("PodGroup", "yolk")):
        assert world.condition(kind, name).reason == "Invalid"
    assert world.bound() == {}

    world.remove("CompositePodGroup", "chicken")
    world.add(a_composite("chicken", 1)).run()
    assert len(world.bound()) == 1


def test_a_missing_parent_is_named():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_gang("g", 1, parent="train-root"), *pods(1, "g"))
    world.wait(3)

    assert world.bound() == {}
    condition = world.condition("PodGroup", "g")
    assert (condition.reason, condition.message) == ("WaitingForParent", "parent train-root does not exist")


def test_a_gang_that_cannot_be_completed_gives_its_pods_back_after_the_timeout():
    world = stuck(owner="job")
    world.wait(299)
    assert world.evicted() == []
    world.wait(2)
    assert world.evicted() == ["g-0", "g-1"]


def test_bare_pods_are_kept_and_reported():
    world = stuck(owner=None)
    world.wait(400)
    assert world.evicted() == []
    note = next(event.note for event in world.events if event.reason == "BindTimeout")
    assert "(g-0, g-1)" in note
    condition = world.condition("PodGroup", "g")
    assert (condition.status, condition.reason) == ("False", "Unschedulable")
    assert "no controller: g-0, g-1" in condition.message or "(g-0, g-1)" in condition.message


def test_a_group_that_once_ran_is_never_torn_down():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("g", 2), *pods(2, "g", owner="job")).run()
    world.remove("Pod", "g-1")
    world.add(a_pod("squatter", node="n0"), a_pod("g-2", "g", owner="job")).run()
    world.wait(1000)
    assert world.evicted() == []
    assert world.condition("PodGroup", "g", api.QUORUM_MET).reason == "BelowMinimum"


def test_a_tree_whose_second_child_never_comes_is_given_back_as_a_whole():
    world = a_world([a_node("n0", cpu=4)])
    world.refuse_binds = {"b-0", "b-1"}
    world.add(a_composite("tree", 2))
    for name in ("a", "b"):
        world.add(a_gang(name, 2, parent="tree"), *pods(2, name, owner="set"))
    until(world, d.Bind)
    world.add(a_pod("squatter", cpu=2, node="n0")).run()
    world.wait(400)
    assert world.evicted() == ["a-0", "a-1"]


def test_a_group_that_is_gone_before_its_wait_is_written_has_nothing_to_say():
    world = a_world([a_node("n0")]).add(a_gang("g", 2), a_pod("g-0", "g"))
    assert next_due(world.scheduler.state) == 2.0
    world.remove("Pod", "g-0")
    world.remove("PodGroup", "g")
    assert [each for each in world.wait(30).log if isinstance(each, d.SetCondition)] == []


def test_a_tree_that_is_gone_before_its_time_is_over_gives_nothing_back():
    world = a_world([a_node("n0", cpu=1)]).add(a_gang("g", 2), a_pod("g-0", "g", node="n0", owner="job"))
    world.add(a_pod("g-1", "g")).run()
    limit = world.scheduler.state.config.bind_timeout
    assert next_due(world.scheduler.state) is not None
    for name in ("g-0", "g-1"):
        world.remove("Pod", name)
    world.remove("PodGroup", "g")
    world.wait(limit + 1)
    assert world.evicted() == []


def test_a_tree_is_bound_in_part_from_the_first_bound_pod_until_its_minimum_is_bound():
    world = a_world([a_node("n0", cpu=1)]).add(a_gang("g", 2), a_pod("g-0", "g", node="n0"), a_pod("g-1", "g")).run()
    state, limit = world.scheduler.state, world.scheduler.state.config.bind_timeout
    assert list(state.checks.due_times(limit)) == [limit]
    world.add(a_node("n1", cpu=1)).run()
    assert list(state.checks.due_times(limit)) == []


def test_nothing_is_due_when_nothing_waits():
    world = a_world([a_node("n0", cpu=2)]).add(a_gang("g", 2), *pods(2, "g")).run()
    assert next_due(world.scheduler.state) is None
