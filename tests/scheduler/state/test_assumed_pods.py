"""Assumed pods: they count on their nodes, and cluster, forest and record agree about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from muster.api import types
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Member
from muster.scheduler.interface import cluster_events
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.runtime.config import default_config
from muster.scheduler.state.requeue_signals import TERM_PLUGINS
from muster.scheduler.state.scheduler_state import SchedulerState
from tests.build.objects import a_composite, a_gang, a_node, a_pod

G, C = EntityKey("PodGroup", "ns", "g"), EntityKey("CompositePodGroup", "ns", "c")


class State:
    """The state of a scheduler with one node of two CPUs, and the gang g of pods that request one each."""

    def __init__(self, count: int = 1, **fields: Any) -> None:
        self.all = SchedulerState(default_config())
        self.all.cluster.change("Node", a_node("n0", cpu=2))
        self.all.forest.put_group(a_gang("g", 1, **fields))
        self.assumed = self.all.assumed
        self.members = [self.all.forest.put_member(a_pod(f"g-{i}", "g"), G) for i in range(count)]

    def assume(self) -> Member:
        """Assume all pods; the first of them."""
        footprints = [self.all.shape_of(member).footprint for member in self.members]
        self.assumed.assume(self.members, footprints, ["n0" for _ in self.members])
        return self.members[0]

    def show(self, member: Member) -> None:
        """The watch shows a pod on its node."""
        pod = bound(member.pod)
        self.all.cluster.change("Pod", pod)
        self.all.forest.put_member(pod, G)
        self.assumed.confirm(member.uid)

    @property
    def free(self) -> int:
        """How many more of the pods the node has room for."""
        with self.all.evaluator.trial() as trial:
            return int(trial.seats(self.all.shape_of(self.members[0])).sum())

    @property
    def in_flight(self) -> tuple[int, int]:
        """The binds in flight, by the records and by the counter of the group."""
        return self.assumed.in_flight(), self.all.forest.groups[G].in_flight


def bound(pod: types.Pod) -> types.Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name="n0"))


def has_record(state: State, member: Member) -> bool:
    """Whether a pod is still on record: a pod that is not may be assumed again."""
    return member.uid in state.assumed._unconfirmed or member.uid in state.assumed._unanswered


# --- assume ----------------------------------------------------------------------------------------


def test_assumed_pods_count_on_their_node_and_in_their_group():
    state = State(2)
    assert (state.free, state.in_flight) == (2, (0, 0))

    state.assume()

    group = state.all.forest.groups[G]
    assert (state.free, state.in_flight) == (0, (2, 2))
    assert (len(group.pending), len(group.running), group.unconfirmed) == (0, 2, 2)
    assert [(m.assumed, m.in_flight) for m in state.members] == [("n0", True)] * 2
    state.assumed.check()


def test_a_pod_without_a_group_is_assumed_as_well():
    state = State()
    state.members = [state.all.forest.put_member(a_pod("alone"), None)]

    member = state.assume()

    assert (state.free, state.assumed.in_flight(), member.in_flight) == (1, 1, True)
    state.assumed.check()
    state.assumed.bind_answered(member)
    assert (state.assumed.in_flight(), member.in_flight) == (0, False)


def test_a_pod_is_bound_once_at_a_time():
    state = State()
    member = state.assume()
    state.assumed.bind_answered(member)
    state.all.cluster.forget(member.uid)
    state.all.forest.forget(member)

    with pytest.raises(AssertionError, match="bound once at a time"):
        state.assume()


# --- the end of a record ---------------------------------------------------------------------------


def test_shown_then_answered_ends_the_record_at_the_answer():
    state = State()
    member = state.assume()

    state.show(member)
    assert (has_record(state, member), state.in_flight) == (True, (1, 1)), "the API has not answered"
    state.assumed.check()

    state.assumed.bind_answered(member)
    assert (has_record(state, member), state.in_flight, state.free) == (False, (0, 0), 1)
    state.assumed.check()


def test_answered_then_shown_ends_the_record_when_shown():
    state = State()
    member = state.assume()

    state.assumed.bind_answered(member)
    assert (has_record(state, member), state.in_flight) == (True, (0, 0)), "the watch has not shown it"
    state.assumed.check()

    state.show(member)
    assert (has_record(state, member), state.in_flight, state.free) == (False, (0, 0), 1)
    state.assumed.check()


def test_a_second_answer_changes_nothing():
    state = State(2)
    member = state.assume()

    state.assumed.bind_answered(member)
    state.assumed.bind_answered(member)

    assert state.in_flight == (1, 1)
    state.assumed.check()


def test_what_is_said_of_a_pod_that_was_never_assumed_changes_nothing():
    state = State()
    member = state.members[0]

    state.assumed.confirm(member.uid)
    state.assumed.bind_answered(member)
    state.assumed.forget(member)
    state.assumed.remove(member)

    assert (state.free, state.in_flight, state.all.signals.pending) == (2, (0, 0), False)
    assert list(state.all.forest.groups[G].pending) == [member.uid]
    state.assumed.check()


# --- forget and remove -----------------------------------------------------------------------------


def test_a_forgotten_pod_gives_its_room_back_and_signals_it():
    state = State()
    member = state.assume()
    plugins = {p.name for p in default_config().profiles["default-scheduler"].filters if _names_pod_gone(p)}
    assert plugins

    state.assumed.forget(member)

    assert (state.free, member.assumed, list(state.all.forest.groups[G].pending)) == (2, "", [member.uid])
    assert {gain.slot for gain in state.all.signals.slots} == {state.all.cluster.index["n0"]}
    assert set(state.all.signals.plugins) == plugins
    state.assumed.check()


def _names_pod_gone(plugin: Any) -> bool:
    return cluster_events.POD_GONE in plugin.gains and plugin.name not in TERM_PLUGINS


def test_a_bind_is_in_flight_until_it_is_answered_even_if_the_pod_is_forgotten():
    state = State()
    member = state.assume()

    state.assumed.forget(member)
    assert (has_record(state, member), state.in_flight) == (True, (1, 1))

    state.assumed.bind_answered(member)
    assert (has_record(state, member), state.in_flight) == (False, (0, 0))


def test_a_refused_bind_ends_the_record_and_the_pod_can_be_assumed_again():
    state = State()
    member = state.assume()

    state.assumed.bind_answered(member)
    state.assumed.forget(member)
    assert (has_record(state, member), state.in_flight, state.free) == (False, (0, 0), 2)

    state.assume()
    assert (state.in_flight, state.free) == ((1, 1), 1)
    state.assumed.check()


def test_a_pod_that_was_shown_is_not_forgotten():
    state = State()
    member = state.assume()
    state.show(member)
    state.all.signals.clear()

    state.assumed.forget(member)

    assert (state.free, state.all.signals.pending) == (1, False)
    assert list(state.all.forest.groups[G].running) == [member.uid]


def test_a_pod_on_a_node_that_is_gone_is_forgotten_without_a_signal_of_room():
    state = State()
    member = state.assume()
    state.all.cluster.remove("Node", "", "n0")

    state.assumed.forget(member)

    assert (state.all.signals.slots, member.assumed) == ({}, "")


def test_a_removed_pod_leaves_nothing_behind_before_any_answer():
    state = State(2)
    member = state.assume()

    state.assumed.remove(member)
    state.all.forest.remove_member(member.uid)

    assert (has_record(state, member), state.in_flight, state.free) == (False, (1, 1), 1)
    assert {gain.slot for gain in state.all.signals.slots} == {state.all.cluster.index["n0"]}
    state.assumed.check()


# --- trees that change -----------------------------------------------------------------------------


def test_binds_in_flight_move_with_a_group_into_and_out_of_a_tree():
    state = State(2)
    forest: Forest = state.all.forest
    forest.put_group(a_composite("c", 1))
    member = state.assume()
    assert forest.groups[C].in_flight == 0

    forest.put_group(a_gang("g", 1, parent="c"))
    assert (forest.groups[C].in_flight, state.in_flight) == (2, (2, 2))

    state.assumed.bind_answered(member)
    assert (forest.groups[C].in_flight, state.in_flight) == (1, (1, 1))

    forest.put_group(a_gang("g", 1))
    assert (forest.groups[C].in_flight, state.in_flight) == (0, (1, 1))
    state.assumed.check()


def test_binds_in_flight_leave_every_ancestor_when_a_group_in_the_middle_is_removed():
    state = State(2, parent="c")
    forest: Forest = state.all.forest
    forest.put_group(a_composite("c", 1, parent="top"))
    top = forest.put_group(a_composite("top", 1))
    member = state.assume()
    assert (top.in_flight, forest.groups[C].in_flight) == (2, 2)

    forest.remove_group(C)
    assert (top.in_flight, forest.groups[C].in_flight) == (0, 2), "the child still names it"

    state.assumed.bind_answered(member)
    assert (top.in_flight, forest.groups[C].in_flight, state.in_flight) == (0, 1, (1, 1))


# --- check -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "break_it",
    [
        pytest.param(lambda state, m: state.all.cluster.forget(m.uid), id="not on its node"),
        pytest.param(lambda state, m: setattr(state.all.cluster.pods[m.uid], "node", "n1"), id="on another node"),
        pytest.param(lambda state, m: setattr(state.all.cluster.pods[m.uid], "assumed", False), id="shown"),
        pytest.param(lambda state, m: setattr(m, "assumed", ""), id="not assumed in the forest"),
        pytest.param(lambda state, m: setattr(m, "in_flight", False), id="answered in the forest"),
        pytest.param(lambda state, m: state.all.forest.members.pop(m.uid), id="not in the forest"),
        pytest.param(lambda state, m: state.assumed.confirm(m.uid), id="confirmed in the record alone"),
        pytest.param(lambda state, m: state.all.cluster.assume(a_pod("x"), "n0"), id="assumed without a record"),
    ],
)
def test_check_finds_cluster_forest_and_record_disagree(break_it: Callable[[State, Member], Any]):
    state = State()
    member = state.assume()
    state.assumed.check()

    break_it(state, member)

    with pytest.raises((AssertionError, KeyError)):
        state.assumed.check()
