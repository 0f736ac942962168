"""What makes a tree invalid, each with its words, and what mends it."""

from __future__ import annotations

import msgspec
import pytest

from muster.api import groups as api
from tests.build.objects import a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world


def a_workload(name: str, templates: dict) -> api.Workload:
    body = {"metadata": {"name": name, "namespace": "ns", "uid": f"wl-{name}"}, "spec": templates}
    return msgspec.convert(body, api.Workload)


WORKLOAD = a_workload(
    "wl",
    {
        "compositePodGroupTemplates": [
            {
                "name": "root",
                "podGroupTemplates": [{"name": "a"}],
                "compositePodGroupTemplates": [{"name": "inner", "podGroupTemplates": [{"name": "b"}]}],
            }
        ]
    },
)


def faulty(*objects) -> TestWorld:
    world = a_world([a_node("n0", cpu=16)])
    return world.add(*objects).run()


def assert_invalid(world: TestWorld, name: str, says: str, kind: str = "PodGroup") -> None:
    condition = world.condition(kind, name)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "Invalid")
    assert says in condition.message
    assert world.bound() == {}


def test_two_workloads_in_one_tree():
    world = faulty(a_composite("root", 1), a_gang("a", 1, parent="root", workload="other/a"), *pods(1, "a"))
    assert_invalid(world, "a", 'all groups of a tree must reference one Workload, "root" references "wl"')
    assert_invalid(world, "root", '"a" references "other"', kind="CompositePodGroup")


def test_a_child_with_another_priority():
    world = faulty(
        a_composite("root", 1, priority=5), a_gang("a", 1, parent="root", priority=7), *pods(1, "a", priority=7)
    )
    assert_invalid(world, "a", 'group "a" has priority 7, its root "root" has 5')


def test_a_child_with_another_policy():
    world = faulty(a_composite("root", 1), a_gang("a", 1, parent="root", policy="Never"), *pods(1, "a"))
    assert_invalid(world, "a", 'group "a" has preemption policy Never, its root "root" has PreemptLowerPriority')


def test_an_all_composite_over_a_single_child():
    world = faulty(a_composite("root", 1, mode="all"), a_gang("a", 1, parent="root"), *pods(1, "a"))
    assert_invalid(world, "a", 'composite "root" has disruption mode all, its child "a" must have it too')


@pytest.mark.parametrize(
    ("group", "says"),
    [
        (a_gang("g", 1, parent="root", workload="wl/nothing"), 'Workload "wl" has no template "nothing", named by "g"'),
        (
            a_gang("g", 1, parent="root", workload="wl/inner"),
            'template "inner" of Workload "wl" is for a CompositePodGroup',
        ),
        (a_gang("g", 1, parent="root", workload="wl/b"), 'template "b" of "g" is not below template "root"'),
    ],
)
def test_templates_that_do_not_match(group: api.PodGroup, says: str):
    world = faulty(WORKLOAD, a_composite("root", 1), group, *pods(1, "g"))
    assert_invalid(world, "g", says)


def test_a_missing_workload_is_no_fault():
    world = faulty(a_composite("root", 1), a_gang("a", 1, parent="root"), *pods(1, "a"))
    assert len(world.bound()) == 1


def test_a_workload_that_comes_later_makes_a_waiting_tree_invalid_and_its_mending_clears_it():
    world = a_world([])
    world.add(a_composite("root", 1), a_gang("g", 1, parent="root", workload="wl/zzz"), *pods(1, "g")).run()
    assert world.condition("PodGroup", "g").reason == "Unschedulable"
    world.add(WORKLOAD).run()
    assert world.condition("PodGroup", "g").reason == "Invalid"

    world.remove("Workload", "wl")
    world.add(a_node("n0", cpu=4)).run()

    assert len(world.bound()) == 1


def test_members_of_two_schedulers():
    world = faulty(a_gang("g", 2), a_pod("x", "g"), a_pod("y", "g", node="n0", scheduler="other"))
    assert world.bound("x") == {}
    assert (
        'same .spec.schedulerName set, got: "default-scheduler" and "other"' in world.condition("PodGroup", "g").message
    )


def test_a_pending_member_of_another_scheduler_holds_the_whole_group():
    world = faulty(a_pod("z", "g", scheduler="other"), a_gang("g", 2), *pods(2, "g"))
    assert world.bound() == {}
    for kind, name in (("PodGroup", "g"), ("Pod", "g-0"), ("Pod", "g-1")):
        condition = world.condition(kind, name)
        assert (condition.status, condition.reason) == ("False", "SchedulerError")
        assert 'same .spec.schedulerName set, got: "default-scheduler" and "other"' in condition.message
    assert world.condition("Pod", "z") is None, "the other scheduler's pod is its own business"


def test_members_of_two_schedulers_are_reported_before_the_group_is_complete():
    world = faulty(a_gang("g", 2), *pods(1, "g"), a_pod("z", "g", scheduler="other"))
    assert world.condition("PodGroup", "g").reason == "SchedulerError"
    world.wait(30)
    assert world.condition("PodGroup", "g").reason == "SchedulerError"


def test_a_pod_of_another_scheduler_in_a_sibling_group_holds_the_whole_tree():
    world = faulty(a_pod("z", "b", scheduler="other"), a_composite("top", 1), a_gang("b", 1, parent="top"))
    world.add(a_gang("a", 1, parent="top"), *pods(1, "a")).run()
    assert world.bound() == {}
    assert world.condition("CompositePodGroup", "top").reason == "SchedulerError"


def test_the_group_goes_on_when_the_pod_of_the_other_scheduler_is_gone():
    world = faulty(a_pod("z", "g", scheduler="other"), a_gang("g", 2), *pods(2, "g"))
    world.remove("Pod", "z")
    world.run()
    assert len(world.bound("g")) == 2


def test_a_group_of_another_scheduler_is_none_of_ours():
    world = faulty(a_gang("g", 3), *pods(2, "g", scheduler="other"))
    world.wait(60)
    assert world.condition("PodGroup", "g") is None
    assert world.scheduler.state.queue.entities == {}
    assert world.scheduler.pending() == 0


def test_members_of_any_priority_where_the_group_names_no_class():
    world = faulty(a_gang("g", 2, policy="PreemptLowerPriority"), a_pod("x", "g", priority=9))
    world.add(a_pod("y", "g", priority=4, policy="Never")).run()
    assert len(world.bound()) == 2


def test_members_with_another_preemption_policy():
    world = faulty(
        a_gang("g", 1, priority=5, policy="PreemptLowerPriority"), a_pod("x", "g", priority=5, policy="Never")
    )
    condition = world.condition("PodGroup", "g")
    assert condition.reason == "SchedulerError"
    assert (
        "same preemption policy as the pod group's preemption policy, got Never and PreemptLowerPriority"
        in condition.message
    )


def test_a_fault_is_retried_only_when_an_object_changes():
    world = faulty(a_gang("g", 1, priority=1), a_pod("x", "g", priority=2))
    root = next(iter(world.scheduler.view().queue()))
    attempts = root.attempts
    world.add(a_node("n1", cpu=4)).run()
    assert root.attempts == attempts


def test_a_tree_deeper_than_four_levels_is_invalid():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_composite("l1", 1), a_composite("l2", 1, parent="l1"), a_composite("l3", 1, parent="l2"))
    world.add(a_composite("l4", 1, parent="l3"), a_gang("g", 1, parent="l4"), *pods(1, "g")).run()

    assert world.bound() == {}
    assert world.condition("PodGroup", "g").reason == "Invalid"
    assert "5 levels" in world.condition("CompositePodGroup", "l1").message
