"""What changes of pods, nodes and groups mean for those who wait: where room is gained, and for whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from muster.api import types
from muster.scheduler.cycle import pod_signals
from muster.scheduler.interface import decisions as d
from muster.scheduler.interface import events
from tests.build.objects import HOSTNAME, RACK, a_class, a_gang, a_node, a_pod, apart, pods, using
from tests.build.scheduler import TestWorld, a_world

LOWER, OWN, HIGHER = 4, 5, 6  # the pods of these tests have the priority OWN
PREEMPTORS = (LOWER, OWN, HIGHER)
Helped = dict[str, tuple[bool, set[int]]]


def at_rest(world: TestWorld) -> TestWorld:
    """Nothing that was signalled so far counts."""
    world.run().scheduler.state.signals.clear()
    return world


def helped(world: TestWorld) -> Helped:
    """By node that gained: whether those gain who do not preempt, and the priorities of preemptors that do."""
    names, found = world.scheduler.state.cluster.names, dict[str, tuple[bool, set[int]]]()
    for gain in world.scheduler.state.signals.slots:
        free, preemptors = found.get(names[gain.slot], (False, set[int]()))
        also = {priority for priority in PREEMPTORS if gain.helps(priority, preempts=True)}
        found[names[gain.slot]] = (free or gain.helps(OWN, preempts=False), preemptors | also)
    return found


def signalled(world: TestWorld) -> set[str]:
    """The pods that terms are looked at again for, by the name of the first pod with their footprint."""
    return {footprint.pod.metadata.name for footprint in world.scheduler.state.signals.pods}


def with_a_pod(group: str | None = None, **fields: Any) -> TestWorld:
    """One pod runs on n0."""
    world = a_world([a_node("n0"), a_node("n1")])
    return at_rest(world.add(a_pod("p", group, node="n0", priority=OWN, **fields)))


def refuse(world: TestWorld, name: str) -> None:
    world.scheduler.handle(events.EvictionFailed(f"pod-{name}", "refused"), world.now)


# --- pods that come and go -------------------------------------------------------------------------


def test_a_pod_that_comes_to_a_node_gives_room_to_nobody_and_is_looked_at_by_terms():
    world = with_a_pod()
    world.add(a_pod("q", cpu=2, node="n1"))
    assert helped(world) == {}
    assert signalled(world) == {"q"}


def test_a_pod_that_is_not_bound_signals_nothing():
    world = with_a_pod()
    world.add(a_pod("q", cpu=2))
    assert not world.scheduler.state.signals.pending


@pytest.mark.parametrize("leave", [lambda w: w.remove("Pod", "p"), lambda w: w.finish("p")], ids=["gone", "finished"])
def test_a_pod_that_goes_helps_all_but_those_who_could_have_evicted_it(leave: Callable[[TestWorld], None]):
    world = with_a_pod()
    leave(world)
    assert helped(world) == {"n0": (True, {LOWER, OWN})}
    assert signalled(world) == {"p"}


def test_a_pod_that_is_being_deleted_helps_only_preemptors_who_could_not_have_evicted_it():
    world = with_a_pod()
    world.terminate("p")
    assert helped(world) == {"n0": (False, {LOWER, OWN})}


def test_the_end_of_a_pod_that_was_being_deleted_helps_only_those_who_do_not_preempt():
    world = with_a_pod()
    world.terminate("p")
    at_rest(world).reap()
    assert helped(world) == {"n0": (True, set())}


def test_a_pod_whose_eviction_was_refused_helps_every_preemptor_when_it_leaves():
    world = with_a_pod()
    refuse(world, "p")
    world.terminate("p")
    assert helped(world) == {"n0": (False, set(PREEMPTORS))}


@pytest.mark.parametrize(("mode", "preemptors"), [("all", {LOWER, OWN, HIGHER}), ("single", {LOWER, OWN})])
def test_a_member_that_could_not_be_evicted_alone_helps_every_preemptor_when_it_goes(mode: str, preemptors: set[int]):
    world = with_a_pod()
    world.add(a_gang("g", 2, mode=mode, priority=OWN), *pods(2, "g", priority=OWN, node="n1"))
    at_rest(world).remove("Pod", "g-0")
    assert helped(world) == {"n1": (True, preemptors)}


def test_a_pod_of_an_unknown_node_gives_room_to_nobody_when_it_goes():
    world = a_world([a_node("n0")]).add(a_pod("ghost", node="never-seen"))
    at_rest(world).remove("Pod", "ghost")
    assert helped(world) == {}
    assert signalled(world) == set()


@pytest.mark.parametrize(("claims", "again"), [(["data"], True), ([], False)])
def test_volumes_are_looked_at_again_when_a_pod_with_claims_goes(claims: Sequence[str], again: bool):
    world = a_world([a_node("n0")]).add(a_class(), using(*claims, name="p", node="n0"))
    at_rest(world).remove("Pod", "p")
    assert ("VolumeBinding" in world.scheduler.state.signals.plugins) is again


# --- pods that change ------------------------------------------------------------------------------


def test_a_change_of_phase_signals_nothing():
    world = at_rest(a_world([a_node("n0")]).add(a_pod("p", node="n0", phase="Pending")))
    world.add(a_pod("p", node="n0", phase="Running"))
    assert not world.scheduler.state.signals.pending


def test_a_pod_that_requests_less_than_before_helps_everybody_on_its_node():
    world = with_a_pod(cpu=3)
    world.add(a_pod("p", cpu=1, node="n0", priority=OWN))
    assert helped(world) == {"n0": (True, set(PREEMPTORS))}


def relabelled(world: TestWorld, **labels: str) -> types.Pod:
    pod = world.pod("p")
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels))


def test_a_pod_with_other_labels_is_looked_at_as_it_was_and_as_it_is():
    world = a_world([a_node("n0")]).add(a_pod("far", affinity=apart(HOSTNAME, app="loud")))
    at_rest(world.add(a_pod("p", node="n0", labels={"app": "loud"})))
    world.add(relabelled(world, app="calm"))
    seen = [footprint.label_class.labels for footprint in world.scheduler.state.signals.pods]
    assert seen == [{"app": "loud"}, {"app": "calm"}]


def test_labels_that_no_selector_reads_signal_nothing():
    world = with_a_pod(labels={"color": "red"})
    world.add(relabelled(world, color="blue"))
    assert not world.scheduler.state.signals.pending


def a_bind_in_flight() -> tuple[TestWorld, d.Bind]:
    world = a_world([a_node("n0")]).add(a_pod("p", priority=OWN))
    (bind,) = [one for one in world.scheduler.next(world.now) if isinstance(one, d.Bind)]
    world.scheduler.state.signals.clear()
    return world, bind


def test_a_pod_can_be_evicted_by_higher_priorities_as_soon_as_its_bind_has_succeeded():
    world, bind = a_bind_in_flight()
    world._carry_out(bind)
    assert helped(world) == {"n0": (False, {HIGHER})}
    assert signalled(world) == set(), "it counted on its node already"


def test_a_pod_that_turns_up_on_another_node_than_assumed_helps_everybody_on_the_first():
    world, _ = a_bind_in_flight()
    world.add(a_node("n1"))
    world.scheduler.state.signals.clear()
    world.add(a_pod("p", node="n1", priority=OWN))
    gained = helped(world)
    assert gained.pop("n0") == (True, set(PREEMPTORS))
    assert gained == {"n1": (False, {HIGHER})}, "there it can be evicted"


def test_only_a_pod_that_counts_on_a_node_has_a_record_before_an_event():
    world = with_a_pod().add(a_pod("pending"), a_pod("ghost", node="never-seen"))
    state = world.scheduler.state
    before = pod_signals.before_event(state, "pod-p")
    assert before is not None
    assert (before.slot, before.terminating, before.assumed) == (state.cluster.index["n0"], False, False)
    assert pod_signals.before_event(state, "pod-pending") is None
    assert pod_signals.before_event(state, "pod-ghost") is None
    assert pod_signals.before_event(state, "pod-unheard-of") is None


# --- who may evict ---------------------------------------------------------------------------------


def test_a_pod_that_may_be_chosen_again_helps_preemptors_of_higher_priority():
    world = with_a_pod()
    pod_signals.evictable_again(world.scheduler.state, "pod-p")
    assert helped(world) == {"n0": (False, {HIGHER})}


@pytest.mark.parametrize("end", ["expired", "terminating", "gone", "finished"])
def test_those_that_are_only_evicted_together_can_be_again_when_the_last_refusal_ends(end: str):
    world = with_a_pod()
    world.add(a_gang("g", 2, mode="all", priority=OWN), a_pod("g-0", "g", priority=OWN, node="n0"))
    world.add(a_pod("g-1", "g", priority=OWN, node="n1"))
    refuse(world, "g-1")
    at_rest(world)
    match end:
        case "expired":
            pod_signals.evictable_again(world.scheduler.state, "pod-g-1")
        case "terminating":
            world.terminate("g-1")
        case "gone":
            world.remove("Pod", "g-1")
        case _:
            world.finish("g-1")
    assert helped(world)["n0"] == (False, {HIGHER})


def test_those_that_are_only_evicted_together_can_be_when_the_last_bind_has_succeeded():
    world = with_a_pod()
    world.add(a_gang("g", 2, mode="all", priority=OWN), *pods(2, "g", priority=OWN, cpu=3))
    binds = [decision for decision in world.scheduler.next(world.now) if isinstance(decision, d.Bind)]
    world.scheduler.state.signals.clear()
    assert len({bind.node for bind in binds}) == 2

    world.scheduler.handle(events.BindSucceeded(binds[0].pod.uid, binds[0].node), world.now)
    assert helped(world) == {}

    world.scheduler.handle(events.BindSucceeded(binds[1].pod.uid, binds[1].node), world.now)
    assert helped(world) == {"n0": (False, {HIGHER}), "n1": (False, {HIGHER})}


def test_a_pod_that_is_gone_or_on_no_known_node_cannot_be_chosen_again():
    world = with_a_pod().add(a_pod("ghost", node="never-seen"))
    world.remove("Pod", "p")
    at_rest(world)
    pod_signals.evictable_again(world.scheduler.state, "pod-p")
    pod_signals.evictable_again(world.scheduler.state, "pod-ghost")
    assert helped(world) == {}


def test_a_group_that_changes_may_be_evicted_by_any_preemptor_where_its_members_run():
    world = with_a_pod().add(a_gang("g", 1, priority=OWN), a_pod("g-0", "g", node="n1"), a_pod("g-1", "g", cpu=99))
    at_rest(world).add(a_gang("g", 1, priority=LOWER))
    assert helped(world) == {"n1": (False, set(PREEMPTORS))}


def test_a_group_that_is_deleted_may_be_evicted_by_any_preemptor_where_its_members_run():
    world = with_a_pod().add(a_gang("g", 1, priority=OWN), a_pod("g-0", "g", node="n1"))
    at_rest(world).remove("PodGroup", "g")
    assert helped(world) == {"n1": (False, set(PREEMPTORS))}


# --- nodes -----------------------------------------------------------------------------------------


def test_pods_of_a_node_that_moves_to_another_domain_are_looked_at_by_terms():
    world = with_a_pod()
    world.add(a_node("n0", labels={RACK: "r1"}))
    assert signalled(world) == {"p"}


def test_pods_of_a_node_that_goes_are_looked_at_by_terms():
    world = with_a_pod().add(a_pod("q", cpu=2, node="n1"))
    at_rest(world).remove("Node", "n0")
    assert signalled(world) == {"p"}


def test_pods_of_a_node_that_only_grows_are_not_looked_at_by_terms():
    world = with_a_pod()
    world.add(a_node("n0", cpu=9))
    assert helped(world) == {"n0": (True, set(PREEMPTORS))}
    assert signalled(world) == set()
