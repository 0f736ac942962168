"""Explanations: the verdict with its facts, and suggestions that hold when they are carried out."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from muster.api import types
from muster.scheduler.explain.explain import explain, find, find_of_job
from muster.scheduler.explain.explanation import Explanation
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, expects, pods
from tests.build.scheduler import TestWorld, a_world


def explained(world: TestWorld, kind: str, name: str) -> Explanation:
    found = find(world.scheduler, kind, "ns", name)
    assert found is not None
    return explain(world.scheduler, found)


def racks(count: int = 4, per_rack: int = 2, cpu: int = 2) -> list[types.Node]:
    return [
        a_node(f"n{i}", cpu=cpu, rack=f"r{i // per_rack}", block=f"b{i // (2 * per_rack)}")
        for i in range(count * per_rack)
    ]


def suggestion(found: Explanation, action: str):
    return next((s for s in found.suggestions if s.action == action), None)


def test_a_gang_that_does_not_fit_names_the_nearest_rack_and_what_it_lacks():
    world = a_world(racks())
    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()

    found = explained(world, "PodGroup", "g")

    assert found.verdict == "Infeasible"
    nearest = found.levels[0].nearest[0]
    assert (nearest.key, nearest.seats, nearest.needed) == (RACK, 4, 5)
    assert nearest.lacking[0].what == "cpu"
    assert nearest.lacking[0].amount == "1"


def test_asking_changes_nothing():
    world = a_world(racks())
    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()
    before = (world.scheduler.state.cluster.used.copy(), world.scheduler.state.cluster.alive.sum())

    first = explained(world, "PodGroup", "g")
    second = explained(world, "PodGroup", "g")

    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    assert world.scheduler.state.cluster.alive.sum() == before[1]


def test_only_changes_that_were_verified_are_suggested():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("p", cpu=64)).run()
    assert explained(world, "Pod", "p").suggestions == ()


def test_a_waiting_tree_says_for_what():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_composite("root", 2), a_gang("a", 2, parent="root"), *pods(1, "a")).run()
    found = explained(world, "PodGroup", "a")
    assert found.verdict == "WaitingForMembers"
    assert found.sentence == "podgroup a waits: 1 of 2 members exist"
    assert [level.name for level in found.levels] == ["root", "a"]


def test_a_running_group_waits_for_nothing():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    found = explained(world, "PodGroup", "g")
    assert found.verdict == "Running"
    assert "2 of 2 members are bound" in found.sentence


def test_preemption_is_accounted_for():
    world = a_world([a_node("n0", cpu=2)])
    world.add(*[a_pod(f"low-{i}", priority=1, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=9, policy="Never"), *pods(2, "g", priority=9, policy="Never")).run()
    assert "policy is Never" in explained(world, "PodGroup", "g").preemption
    assert "9" not in explained(world, "PodGroup", "g").preemption


def test_preemption_that_cannot_help_says_how_much_it_could_take():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_pod("low", priority=1, node="n0"))
    world.add(a_gang("g", 3, priority=9), *pods(3, "g", priority=9)).run()
    said = explained(world, "PodGroup", "g").preemption
    assert said == "would not help: 1 pod of lower priority could leave, and it would still not fit"


def test_seats_that_wait_for_victims_name_the_victims():
    world = a_world([a_node("n0", cpu=2)])
    world.slow_victims = True
    world.add(*[a_pod(f"low-{i}", priority=1, node="n0") for i in range(2)])
    world.add(a_gang("g", 2, priority=9), *pods(2, "g", priority=9)).run()
    found = explained(world, "PodGroup", "g")
    assert found.verdict == "WaitingForVictims"
    assert found.wakes == "when they are gone: low-0, low-1"


def test_a_group_below_its_minimum_is_not_said_to_wait_for_nothing():
    world = a_world([a_node("n0", cpu=4)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    world.remove("Pod", "g-0")
    world.run()
    found = explained(world, "PodGroup", "g")
    assert found.verdict == "BelowMinimum"
    assert "1 of 2 members are bound, and no pod of it is pending" in found.sentence


def test_a_group_without_pods_waits_for_its_members():
    world = a_world([a_node("n0")])
    world.add(a_gang("g", 3)).run()
    found = explained(world, "PodGroup", "g")
    assert (found.verdict, found.sentence) == ("WaitingForMembers", "podgroup g waits: 0 of 3 members exist")


def test_pods_beyond_the_minimum_are_told_apart_from_a_group_that_does_not_run():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_gang("g", 2), *pods(5, "g")).run()
    found = explained(world, "PodGroup", "g")
    assert found.sentence.startswith("podgroup g runs with its minimum, 2 more pods find no place: ")


def test_a_bound_pod_of_a_group_with_pending_pods_is_said_to_run():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_gang("g", 2), *pods(5, "g")).run()
    name = next(iter(world.bound("g")))
    assert explained(world, "Pod", name).sentence == f"pod {name} runs on n0"


def test_a_missing_parent_is_named():
    world = a_world([a_node("n0")])
    world.add(a_gang("g", 1, parent="nope"), *pods(1, "g")).run()
    found = explained(world, "PodGroup", "g")
    assert (found.verdict, found.wakes) == ("WaitingForParent", "when compositepodgroup nope is created")
    assert [level.exists for level in found.levels] == [False, True]


def test_scheduling_gates_are_named():
    world = a_world([a_node("n0")])
    world.add(a_gang("g", 2), a_pod("g-0", "g", gates=["quota"]), a_pod("g-1", "g"), a_pod("p", gates=["x.io/y"])).run()
    assert "pod g-0 has scheduling gates" in explained(world, "PodGroup", "g").sentence
    assert explained(world, "Pod", "p").sentence == "pod p is held back by scheduling gates: x.io/y"


def test_a_fault_of_the_tree_is_said_in_its_words():
    world = a_world([a_node("n0")])
    world.add(a_gang("g", 1, priority=5), *pods(1, "g")).run()
    found = explained(world, "PodGroup", "g")
    assert found.verdict == "SchedulerError"
    assert "should have the same priority" in found.sentence


def test_a_claim_that_does_not_exist_is_named():
    world = a_world([a_node("n0")])
    world.add(a_pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])).run()
    assert 'persistentvolumeclaim "data" not found' in explained(world, "Pod", "p").sentence


def test_racks_that_are_too_small_even_when_empty_are_told_apart_from_full_ones():
    world = a_world(racks())
    world.add(a_gang("g", 5, topology=RACK), *pods(5, "g")).run()
    found = explained(world, "PodGroup", "g")
    assert found.remark == "No rack can hold it as the nodes are: the largest would have 4 seats if it were empty"
    full = a_world(racks())
    full.add(*[a_pod(f"x{i}", node=f"n{i}") for i in range(8)])
    full.add(a_gang("g", 4, topology=RACK), *pods(4, "g")).run()
    found = explained(full, "PodGroup", "g")
    assert found.remark == ""
    assert found.levels[0].nearest[0].when_empty == 4


def test_a_pod_that_no_node_is_large_enough_for_says_so():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_pod("p", cpu=9)).run()
    said = explained(world, "Pod", "p").remark
    assert said == "No node is large enough: a pod asks for 9 cpu, the largest node it may use has 2"


def test_members_that_only_fail_together_are_said_to():
    world = a_world([a_node("n0", cpu=4), a_node("n1", cpu=4)])
    world.add(a_gang("g", 3), *pods(2, "g", name="a", cpu=3), *pods(1, "g", name="b", cpu=2)).run()
    assert "together" in explained(world, "PodGroup", "g").remark


def test_what_a_child_lacks_is_counted_inside_the_domain_of_its_tree():
    world = a_world(racks())
    world.add(a_composite("root", 2, topology=RACK), a_gang("a", 2, parent="root"), a_gang("b", 3, parent="root"))
    world.add(*pods(2, "a"), *pods(3, "b")).run()
    found = explained(world, "PodGroup", "a")
    assert found.sentence.startswith(
        "podgroup a is decided together with its tree: compositepodgroup root does not fit"
    )
    assert "rack r" in next(level for level in found.levels if level.name == "a").nearest[0].text


def test_the_place_in_the_queue_is_told():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("first", cpu=2, priority=5), a_pod("second", cpu=2)).run()
    found = explained(world, "Pod", "second")
    assert (found.position, found.waiting) == (2, 2)


def test_the_condition_of_the_object_is_repeated():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_gang("g", 2), *pods(2, "g")).run()
    found = explained(world, "PodGroup", "g")
    assert found.condition is not None
    assert found.condition.reason == "Unschedulable"
    assert found.condition.message in found.sentence


def test_a_child_whose_sibling_has_no_pods_yet_is_told_so_on_the_object():
    world = a_world([a_node("n0", cpu=8)])
    world.add(a_composite("top", 1), a_composite("left", 2, parent="top"), a_composite("right", 2, parent="top"))
    for side in ("left", "right"):
        world.add(a_gang(f"{side}-a", 1, parent=side), a_gang(f"{side}-b", 1, parent=side), *pods(1, f"{side}-a"))
    world.add(*pods(1, "left-b")).wait(3)
    said = world.condition("PodGroup", "right-a")
    assert said is not None
    assert said.message == "composite pod group right is incomplete: 1 of 2 child groups are complete"


def test_an_undecided_search_is_told_apart_from_what_cannot_be():
    sizes = [7, 7, 6, 6, 6, 5, 5, 5, 4, 4, 4, 3, 3]
    world = a_world([a_node(f"n{i}", cpu=13) for i in range(5)])
    world.scheduler.state.config = replace(world.scheduler.state.config, budget_steps=1)
    world.add(a_gang("g", len(sizes)), *[a_pod(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(sizes)]).run()
    found = explained(world, "PodGroup", "g")
    assert found.verdict == "Undecided"
    assert "a place may exist" in found.sentence
    assert found.preemption.startswith("not considered: nobody is evicted for a placement that may exist")


def test_what_is_unknown_is_not_found():
    world = a_world([a_node("n0")]).add(a_pod("p", "missing"))
    assert find(world.scheduler, "Pod", "ns", "nobody") is None
    assert find(world.scheduler, "PodGroup", "ns", "nothing") is None
    assert find(world.scheduler, "PodGroup", "ns", "missing") is None
    assert find_of_job(world.scheduler, "ns", "no-job") is None


def test_a_job_is_explained_by_its_pending_pods():
    world = (
        a_world([a_node("n0", cpu=1)]).add(a_pod("runs", node="n0", owner="train"), a_pod("waits", owner="train")).run()
    )
    target = find_of_job(world.scheduler, "ns", "train")
    assert target is not None
    assert explain(world.scheduler, target).sentence.startswith("pod waits does not fit")


def test_a_job_that_runs_is_explained_by_its_group():
    world = a_world([a_node("n0", cpu=2)]).add(a_gang("g", 2), *pods(2, "g", owner="train")).run()
    target = find_of_job(world.scheduler, "ns", "train")
    assert target is not None
    assert explain(world.scheduler, target).sentence == "podgroup g waits for nothing: 2 of 2 members are bound"


def test_a_pod_whose_group_does_not_exist_waits_for_it():
    world = a_world([a_node("n0")]).add(a_pod("p", "missing")).run()
    found = explained(world, "Pod", "p")
    assert found.verdict == "WaitingForPodGroup"
    assert "podgroup missing does not exist, with 1 pod waiting for it" in found.sentence


def test_a_child_that_its_tree_starts_without_waits_for_its_own_members():
    world = a_world([a_node("n0", cpu=1)]).add(a_composite("top", 1), a_gang("a", 2, parent="top"), *pods(2, "a"))
    world.add(a_gang("b", 2, parent="top"), *pods(1, "b")).run()
    found = explained(world, "PodGroup", "b")
    assert (found.verdict, found.sentence) == ("WaitingForMembers", "podgroup b waits: 1 of 2 members exist")
    assert "its tree starts without it meanwhile" in found.wakes


def test_an_entity_that_fits_now_waits_for_its_turn():
    world = a_world([a_node("n0", cpu=4)]).add(a_pod("first", priority=5), a_pod("second"))
    found = explained(world, "Pod", "second")
    assert found.sentence == "pod second fits now; 1 ahead of it in the queue may take the room first"


# --- members to come, and Kueue ----------------------------------------------------------------------


def test_a_group_that_has_begun_says_which_seats_are_held_for_it():
    world = a_world([a_node("n0", cpu=2), a_node("n1", cpu=2)])
    world.add(a_gang("g", 4, expects=expects(4)), a_pod("g-0", "g")).run()
    found = explained(world, "PodGroup", "g")
    assert found.verdict == "WaitingForExpectedMembers"
    assert found.sentence.startswith(
        "podgroup g waits: 1 of 4 members are bound; seats for 3 expected members are held on 2 nodes until"
    )
    assert found.wakes == "when the next member is created"
    world.wait(301)
    found = explained(world, "PodGroup", "g")
    assert found.verdict == "ExpectedMembersMissing"
    assert "3 expected members did not come within 300 s" in found.sentence


def test_a_group_that_waits_for_room_says_who_of_it_does_not_exist_yet():
    world = a_world([a_node("n0", cpu=2)])
    world.add(a_gang("g", 4, expects=expects(4)), a_pod("g-0", "g")).run()
    found = explained(world, "PodGroup", "g")
    assert found.verdict == "Infeasible"
    assert found.sentence.endswith("; 3 members do not exist yet and are planned for")


def test_seats_are_known_to_a_scheduler_that_is_only_asked():
    world = a_world([a_node("n0", cpu=3)])
    world.add(a_gang("g", 3, expects=expects(3)), a_pod("g-0", "g")).run()
    world.restart()
    world.scheduler.adopt_held_seats(world.now)
    assert explained(world, "PodGroup", "g").verdict == "WaitingForExpectedMembers"
    assert len(world.scheduler.view().held_seats()) == 2
    assert [entity.key.name for entity in world.scheduler.view().queue()] == ["g"]
    world.add(a_pod("other", cpu=1)).run()
    assert "other" not in world.bound()


def test_who_leaves_evictions_to_kueue_says_so():
    world = a_world([a_node("n0", cpu=1)])
    world.add(a_pod("low", node="n0"))
    labels = {"kueue.x-k8s.io/podset": "main"}
    world.add(a_gang("g", 1, priority=10), a_pod("g-0", "g", priority=10, labels=labels)).run()
    assert explained(world, "PodGroup", "g").preemption.startswith("not considered: Kueue admitted it and makes room")
