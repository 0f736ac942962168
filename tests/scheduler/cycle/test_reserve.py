"""Room that is kept for groups which have waited long: who holds it, where, who may use it, and when it ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.api import types
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.reservations import Reservation
from tests.build.objects import RACK, a_composite, a_gang, a_node, a_pod, pods
from tests.build.scheduler import TestWorld, a_world

BEGIN = 1_767_225_600.0  # the start of 2026, when the builders' pods are created
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def settings(*names: str, **section: Any) -> dict[str, Any]:
    entry = {"name": "Muster", "args": {"reservations": section}}
    return HEAD | {"profiles": [{"schedulerName": name, "pluginConfig": [entry]} for name in names or ("",)]}


def a_full_world(nodes: int = 3, cpu: int = 4, running: dict[str, int] | None = None, **options: Any) -> TestWorld:
    """Nodes of 4 cpu with pods of one cpu: as many as `running` says, else full."""
    world = a_world(**options)
    world.now = BEGIN
    world.add(*[a_node(f"n{i}", cpu=cpu) for i in range(nodes)])
    for i in range(nodes):
        for j in range((running or {}).get(f"n{i}", cpu)):
            world.add(a_pod(f"n{i}-{j}", node=f"n{i}"))
    return world.run()


def a_waiting_gang(world: TestWorld, name: str = "g", size: int = 1, cpu: int = 4, **gang: Any) -> TestWorld:
    """A gang that has waited for its whole patience."""
    world.add(a_gang(name, size, **gang), *pods(size, group=name, cpu=cpu))
    return world.wait(300)


def reservations(world: TestWorld) -> list[Reservation]:
    return list(world.scheduler.state.reservations)


def kept_nodes(world: TestWorld, name: str = "g") -> list[str]:
    found = world.scheduler.state.reservations.get(EntityKey("PodGroup", "ns", name))
    return sorted(node for _, node in found.seats) if found is not None else []


def reasons(world: TestWorld) -> list[str]:
    wanted = ("RoomReserved", "ReservationMoved", "ReservationEnded", "PodOverstays")
    return [event.reason for event in world.events if event.reason in wanted]


def promising(pod: types.Pod, duration: str) -> types.Pod:
    meta = msgspec.structs.replace(pod.metadata, annotations=types.PodAnnotations(duration))
    return msgspec.structs.replace(pod, metadata=meta)


# --- who and where ---------------------------------------------------------------------------------


def test_room_is_kept_after_the_patience_and_not_before():
    world = a_full_world()
    world.add(a_gang("g", 1), *pods(1, group="g", cpu=4))

    world.wait(299)
    assert reservations(world) == []
    world.wait(1)

    assert len(reservations(world)) == 1
    assert reasons(world) == ["RoomReserved"]


def test_patience_is_counted_from_the_transition_time_of_the_condition():
    world = a_full_world(config=settings(patienceSeconds=40))
    world.wait(15.5)

    world.add(a_gang("g", 1), *pods(1, group="g", cpu=4))
    world.wait(39.4)
    assert reservations(world) == []
    world.wait(0.1)

    assert [each.since for each in reservations(world)] == [BEGIN + 55.0]


def test_the_place_is_where_the_fewest_pods_have_to_leave():
    world = a_waiting_gang(a_full_world(running={"n0": 3, "n1": 2, "n2": 4}))

    assert kept_nodes(world) == ["n1"]
    assert reservations(world)[0].leaving == ("pod-n1-0", "pod-n1-1")


def test_among_equal_places_the_one_whose_pods_have_run_longest():
    world = a_full_world(nodes=0)
    world.add(*[a_node(f"n{i}", cpu=1) for i in range(3)])
    world.add(*[a_pod(f"r{i}", node=f"n{i}", created=created) for i, created in enumerate((50, 10, 30))]).run()

    a_waiting_gang(world, cpu=1)

    assert kept_nodes(world) == ["n1"]


def test_a_better_place_is_taken_when_it_appears():
    world = a_waiting_gang(a_full_world(running={"n0": 3, "n1": 4, "n2": 4}))
    assert kept_nodes(world) == ["n0"]

    for name in ("n2-0", "n2-1"):
        world.remove("Pod", name)
    world.wait(2)

    assert kept_nodes(world) == ["n2"]
    assert reasons(world) == ["RoomReserved", "ReservationMoved"]


def test_a_constrained_gang_reserves_in_one_domain():
    world = a_full_world(nodes=0)
    world.add(*[a_node(f"n{i}", cpu=2, rack=f"r{i % 2}") for i in range(4)])
    running = {"n0": 1, "n1": 2, "n2": 2, "n3": 0}  # in rack r0 three pods have to leave, in r1 two
    world.add(*[a_pod(f"{node}-{j}", node=node) for node, count in running.items() for j in range(count)]).run()

    a_waiting_gang(world, size=2, cpu=2, topology=RACK)

    assert kept_nodes(world) == ["n1", "n3"]
    assert reservations(world)[0].domains == ((RACK, "r1"),)
    assert "kept for it in rack r1 on 2 nodes" in world.condition("PodGroup", "g").message


def test_a_tree_reserves_a_domain_for_each_of_its_children():
    world = a_full_world(nodes=0)
    world.add(*[a_node(f"n{i}", cpu=2, rack=f"r{i // 2}") for i in range(4)])
    world.add(*[a_pod(f"n{i}-0", node=f"n{i}", cpu=2) for i in range(4)]).run()
    world.add(a_composite("tree", 2), *[a_gang(f"c{i}", 2, parent="tree", topology=RACK) for i in range(2)])
    world.add(*[pod for i in range(2) for pod in pods(2, group=f"c{i}", cpu=2)])

    world.wait(300)

    (found,) = reservations(world)
    assert sorted(node for _, node in found.seats) == ["n0", "n1", "n2", "n3"]
    assert sorted(found.domains) == [(RACK, "r0"), (RACK, "r1")]
    assert "room is kept" in world.condition("CompositePodGroup", "tree").message
    assert "room is kept" not in world.condition("PodGroup", "c0").message


def test_devices_of_a_node_are_kept_with_the_seat():
    world = a_full_world(nodes=0)
    world.add(a_node("n0", cpu=8, gpu=2), a_pod("r", node="n0", requests={"nvidia.com/gpu": 1})).run()
    world.add(a_gang("g", 1), a_pod("g-0", "g", requests={"nvidia.com/gpu": 2}))
    world.wait(300)

    world.remove("Pod", "r")
    world.refuse_binds.add("g-0")
    world.add(a_pod("late", requests={"nvidia.com/gpu": 1}), a_pod("plain")).wait(20)

    assert world.bound() == {"g-0": "n0", "plain": "n0"}


def test_pods_of_daemon_sets_are_taken_to_stay():
    world = a_full_world(nodes=0)
    world.add(a_node("n0", cpu=4), a_node("n1", cpu=4))
    world.add(a_pod("d", node="n0", cpu=1, owner="DaemonSet/d"), *[a_pod(f"r{i}", node="n1") for i in range(3)]).run()

    a_waiting_gang(world)

    assert kept_nodes(world) == ["n1"]


def test_only_the_first_in_the_order_holds_a_reservation():
    world = a_full_world()
    world.add(a_gang("young", 1, created=9), *pods(1, group="young", cpu=4))
    world.add(a_gang("old", 1, created=5), *pods(1, group="old", cpu=4))

    world.wait(300)

    assert [each.entity.name for each in reservations(world)] == ["old"]


def test_as_many_as_configured_hold_reservations_in_different_places():
    world = a_full_world(config=settings(max=2))
    for name in ("a", "b", "c"):
        world.add(a_gang(name, 1), *pods(1, group=name, cpu=4))

    world.wait(300)

    assert [each.entity.name for each in reservations(world)] == ["a", "b"]
    assert not set(kept_nodes(world, "a")) & set(kept_nodes(world, "b"))


def test_each_scheduler_name_has_its_own():
    world = a_full_world(config=settings("one", "two"))
    for name in ("one", "two"):
        world.add(a_gang(name, 1), a_pod(f"{name}-0", name, cpu=4, scheduler=name))

    world.wait(300)

    assert [each.entity.name for each in reservations(world)] == ["one", "two"]


def test_a_group_that_would_fit_nowhere_holds_none_and_lets_the_next_one():
    world = a_full_world()
    world.add(a_gang("huge", 1, created=1), *pods(1, group="huge", cpu=400))

    a_waiting_gang(world, created=5)

    assert [each.entity.name for each in reservations(world)] == ["g"]


def test_a_single_pod_and_a_running_group_hold_none():
    world = a_full_world()
    world.add(a_pod("single", cpu=4))
    world.add(a_gang("runs", 1), a_pod("runs-0", "runs", node="n0", cpu=0), a_pod("runs-1", "runs", cpu=4))

    world.wait(400)

    assert reservations(world) == []


@pytest.mark.parametrize("why", ["gated", "incomplete"])
def test_gated_and_incomplete_groups_hold_none(why: str):
    world = a_full_world()
    gates = ["wait"] if why == "gated" else []
    world.add(a_gang("g", 2 if why == "incomplete" else 1), a_pod("g-0", "g", cpu=4, gates=gates))

    world.wait(400)

    assert reservations(world) == []


def test_preemption_comes_first():
    world = a_full_world()
    world.slow_victims = True

    world.add(a_gang("g", 1, priority=5), a_pod("g-0", "g", cpu=4, priority=5)).wait(400)

    assert reservations(world) == []
    assert len(world.evicted()) == 4


def test_a_group_whose_victims_leave_keeps_its_seats_and_gets_no_room_besides_after_a_restart():
    world = a_full_world(nodes=2)
    world.slow_victims = True
    world.add(a_gang("g", 1, priority=5), a_pod("g-0", "g", cpu=2, priority=5)).wait(400)
    seat = world.pod("g-0").status.nominated_node_name
    world.add(a_gang("h", 1, priority=5, created=9), a_pod("h-0", "h", cpu=2, priority=5, created=9)).run()

    world.restart()
    world.step()

    assert reservations(world) == []
    world.run()
    assert world.pod("g-0").status.nominated_node_name == seat


def test_room_kept_for_another_group_does_not_take_the_seats_that_victims_leave_for():
    world = a_full_world(nodes=1)
    world.terminate("n0-0")
    world.terminate("n0-1")
    world.add(a_gang("small", 1), a_pod("small-0", "small", cpu=2)).run()
    world.add(a_gang("large", 1, created=9), a_pod("large-0", "large", cpu=2, created=9)).wait(300)
    assert kept_nodes(world, "large") == ["n0"]
    before = len(world.log)

    world.wait(60)

    assert world.pod("small-0").status.nominated_node_name == "n0"
    assert world.log[before:] == [], "it is decided once"


def test_nothing_is_kept_when_reservations_are_off():
    world = a_waiting_gang(a_full_world(config=settings(enabled=False)))

    assert reservations(world) == []
    assert world.scheduler.state.queue.entities.keys() == {EntityKey("PodGroup", "ns", "g")}


# --- who may use it --------------------------------------------------------------------------------


def test_what_becomes_free_is_kept_until_the_gang_fits():
    world = a_waiting_gang(a_full_world(running={"n0": 3, "n1": 4, "n2": 4}))
    for i in range(3):
        world.add(a_pod(f"small-{i}"))
    world.run()
    assert world.bound("small") == {}

    for name in ("n0-0", "n0-1", "n0-2"):
        world.remove("Pod", name)
        world.wait(2)

    assert world.bound("g") == {"g-0": "n0"}
    assert world.bound("small") == {}
    assert reservations(world) == []


def test_who_waits_for_a_pod_to_leave_gives_its_seat_up_when_the_room_is_kept_for_others():
    world = a_full_world(nodes=1)
    world.add(a_gang("g", 1, priority=5, policy="Never"), a_pod("g-0", "g", cpu=4, priority=5, policy="Never")).run()
    world.terminate("n0-0")
    world.add(a_pod("small", created=5)).run()
    assert world.pod("small").status.nominated_node_name == "n0"

    world.wait(301)

    assert kept_nodes(world) == ["n0"]
    assert not world.pod("small").status.nominated_node_name


def test_room_elsewhere_is_for_everybody():
    world = a_waiting_gang(a_full_world(running={"n0": 3, "n1": 4, "n2": 4}))

    world.remove("Pod", "n1-0")
    world.add(a_pod("small")).run()

    assert world.bound("small") == {"small": "n1"}


def test_several_small_pods_in_one_pass_respect_it_too():
    world = a_waiting_gang(a_full_world(running={"n0": 1, "n1": 2, "n2": 4}))

    world.add(*pods(6, name="small")).run()

    assert sorted(world.bound("small").values()) == ["n1", "n1"]


def test_a_higher_priority_takes_it_and_the_reservation_moves():
    world = a_waiting_gang(a_full_world(running={"n0": 1, "n1": 2, "n2": 4}))
    assert kept_nodes(world) == ["n0"]

    hostname = {"nodeSelector": {"kubernetes.io/hostname": "n0"}}
    world.add(a_gang("high", 3, priority=5), *pods(3, group="high", priority=5, **hostname)).wait(2)

    assert set(world.bound("high").values()) == {"n0"}
    assert kept_nodes(world) == ["n1"]
    moved = next(event for event in world.events if event.reason == "ReservationMoved")
    assert "because high-0, high-1, high-2 took room there" in moved.note


def test_pods_that_are_known_to_be_gone_in_time_use_it_meanwhile():
    world = a_full_world(nodes=1, running={"n0": 0})
    world.add(a_pod("long", node="n0", cpu=1, activeDeadlineSeconds=1000)).run()
    a_waiting_gang(world)
    assert reservations(world)[0].start == BEGIN + 1000

    world.add(a_pod("short", activeDeadlineSeconds=700), promising(a_pod("annotated"), "11m40s"))
    world.add(a_pod("late", activeDeadlineSeconds=701), promising(a_pod("later"), "1h"), a_pod("unknown")).run()

    assert sorted(world.bound()) == ["annotated", "long", "short"]
    assert "expected start 2026-01-01T00:16:40Z" in world.condition("PodGroup", "g").message


def test_nobody_is_in_time_while_the_start_is_unknown():
    world = a_waiting_gang(a_full_world(nodes=1, running={"n0": 1}))

    world.add(a_pod("short", activeDeadlineSeconds=1)).run()

    assert world.pending("short") == ["short"]
    assert "expected start unknown" in world.condition("PodGroup", "g").message


def test_the_place_that_is_free_first_counts_where_ends_are_known():
    world = a_full_world(nodes=0)
    world.add(*[a_node(f"n{i}", cpu=4) for i in range(2)])
    world.add(a_pod("one", node="n0", activeDeadlineSeconds=2000))
    world.add(*[a_pod(f"many-{i}", node="n1", activeDeadlineSeconds=900 + i) for i in range(4)]).run()

    a_waiting_gang(world)

    assert kept_nodes(world) == ["n1"]
    assert reservations(world)[0].start == BEGIN + 903


def test_a_group_bound_in_part_is_completed_in_kept_room():
    world = a_full_world(nodes=1, running={"n0": 1})
    a_waiting_gang(world)
    world.add(a_gang("half", 2), a_pod("half-0", "half", cpu=1, node="n0"), a_pod("half-1", "half", cpu=1)).run()

    assert world.bound("half") == {"half-0": "n0", "half-1": "n0"}


# --- promises --------------------------------------------------------------------------------------


def test_a_pod_that_overstays_is_named_and_its_owner_is_not_believed_for_an_hour():
    world = a_full_world(nodes=1, running={"n0": 0})
    world.add(promising(a_pod("liar", node="n0", owner="Job/j"), "400s"))
    world.add(promising(a_pod("long", node="n0", cpu=1, owner="Job/k"), "2h")).run()
    a_waiting_gang(world)
    assert reservations(world)[0].start == BEGIN + 7200

    world.wait(115)  # 400 s and what a kubelet may take to say that it has ended

    event = next(event for event in world.events if event.reason == "PodOverstays")
    assert "pod ns/liar" in event.note
    assert event.related.name == "liar"
    assert reservations(world)[0].start is None
    world.remove("Pod", "liar")
    world.wait(2)
    world.add(promising(a_pod("again", owner="Job/j"), "10s"), promising(a_pod("other", owner="Job/i"), "10s")).run()
    assert world.pending("again") == ["again"]
    assert world.bound("other") == {"other": "n0"}
    assert world.evicted() == []
    assert reasons(world).count("PodOverstays") == 1


def test_an_owner_is_believed_again_after_an_hour():
    world = a_full_world(nodes=1, running={"n0": 0})
    world.add(promising(a_pod("liar", node="n0", owner="Job/j"), "400s"))
    world.add(promising(a_pod("long", node="n0", cpu=1), "5h")).run()
    a_waiting_gang(world).wait(115)
    world.remove("Pod", "liar")

    world.wait(3600)
    world.add(promising(a_pod("again", owner="Job/j"), "10s")).run()

    assert world.bound("again") == {"again": "n0"}


# --- its end ---------------------------------------------------------------------------------------


def test_it_ends_with_its_group():
    world = a_waiting_gang(a_full_world(running={"n0": 3}))
    world.add(a_pod("small")).run()
    assert world.pending("small") == ["small"]

    world.remove("Pod", "g-0")
    world.run()

    assert reservations(world) == []
    assert world.bound("small") == {"small": "n0"}


def test_a_cordoned_node_ends_its_part():
    world = a_waiting_gang(a_full_world(running={"n0": 1, "n1": 3, "n2": 4}))
    assert kept_nodes(world) == ["n0"]

    world.add(a_node("n0", cpu=4, unschedulable=True)).wait(2)

    assert kept_nodes(world) == ["n1"]


def test_a_node_that_vanishes_ends_its_part():
    world = a_waiting_gang(a_full_world(running={"n0": 1, "n1": 3, "n2": 4}))

    world.remove("Node", "n0")
    world.add(a_pod("small")).run()
    world.wait(2)

    assert kept_nodes(world) == ["n1"]


def test_an_earlier_group_that_is_entitled_takes_the_place_in_the_order():
    world = a_full_world()
    world.add(a_gang("low", 1, created=1), *pods(1, group="low", cpu=4))
    world.wait(150)
    world.add(a_gang("high", 1, created=2, priority=5, policy="Never"))
    world.add(a_pod("high-0", "high", cpu=4, priority=5, policy="Never"))
    world.wait(150)
    assert [each.entity.name for each in reservations(world)] == ["low"]

    world.wait(150)

    assert [each.entity.name for each in reservations(world)] == ["high"]
    assert "ReservationEnded" in reasons(world)
    assert "room is kept" not in world.condition("PodGroup", "low").message


def test_a_restarted_scheduler_keeps_the_same_room():
    world = a_full_world(nodes=4, running={"n0": 3, "n1": 2, "n2": 2, "n3": 4})
    a_waiting_gang(world, size=2)
    before = [(each.entity, each.place[1:], each.since, each.start, each.leaving) for each in reservations(world)]
    nodes = kept_nodes(world)

    world.restart()
    world.run()

    after = [(each.entity, each.place[1:], each.since, each.start, each.leaving) for each in reservations(world)]
    assert kept_nodes(world) == nodes == ["n1", "n2"]
    assert [each[0] for each in after] == [each[0] for each in before]
    assert [each[2:] for each in after] == [each[2:] for each in before]


def test_a_restarted_scheduler_gives_kept_room_to_nobody_before_it_knows():
    world = a_waiting_gang(a_full_world(running={"n0": 3, "n1": 4, "n2": 4}))
    world.add(a_pod("older", created=-5)).run()
    assert world.pending("older") == ["older"]

    world.restart()
    world.run()

    assert world.pending("older") == ["older"]


def test_a_duration_that_cannot_be_read_is_said_on_the_pod():
    world = a_full_world().add(promising(a_pod("odd"), "soon")).run()

    event = next(event for event in world.events if event.reason == "InvalidExpectedDuration")
    assert event.about.name == "odd"
    assert "'soon'" in event.note


def test_what_is_said_is_counted():
    world = a_waiting_gang(a_full_world())

    assert world.scheduler.take_reservations() == {"made": 1}
    assert world.scheduler.take_reservations() == {}


def test_a_decision_is_recorded_only_when_something_changed():
    world = a_waiting_gang(a_full_world())
    said = len(world.log)

    world.wait(30)

    assert [each for each in world.log[said:] if isinstance(each, d.SetCondition | d.RecordEvent)] == []
