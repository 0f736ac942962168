"""Conditions are written once, only when they change, and `InitiallyScheduled` is never taken back."""

from __future__ import annotations

from muster.api import groups as api
from muster.api import types
from muster.scheduler.groups.forest import Forest
from muster.scheduler.groups.group import Group
from muster.scheduler.interface.decisions import RecordEvent, SetCondition
from muster.scheduler.interface.keys import EntityKey, ObjectRef
from muster.scheduler.status.conditions import POD_SCHEDULED, PREEMPTION_BY_SCHEDULER, ConditionWriter
from tests.build.objects import a_composite, a_gang, a_pod

POD = ObjectRef("Pod", "ns", "x", "uid-x")
LEAF = EntityKey("PodGroup", "ns", "g")


def a_group(bound: int, minimum: int = 1) -> Group:
    """The gang `g` with so many running members."""
    forest = Forest()
    for i in range(bound):
        forest.put_member(a_pod(f"g-{i}", "g", node="n0"), LEAF)
    return forest.put_group(a_gang("g", minimum))


def review(writer: ConditionWriter, group: Group, losing: bool = False) -> list[tuple[str, str, str]]:
    return [(c.type, c.status, c.reason) for c in writer.review(group, lambda _: losing)]


def mark(writer: ConditionWriter, group: Group) -> None:
    writer.set(group.ref, api.DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, "preempted")


# --- one condition ---------------------------------------------------------------------------------


def test_a_condition_is_written_once_and_again_when_any_part_of_it_changes():
    writer = ConditionWriter()
    first = writer.set(POD, POD_SCHEDULED, "False", "Unschedulable", "no room")
    assert first == SetCondition(POD, POD_SCHEDULED, "False", "Unschedulable", "no room")
    assert writer.set(POD, POD_SCHEDULED, "False", "Unschedulable", "no room") is None
    assert writer.set(POD, POD_SCHEDULED, "False", "Unschedulable", "no cpu") is not None
    assert writer.last(POD.uid, POD_SCHEDULED) == ("False", "Unschedulable", "no cpu")


def test_what_the_object_says_already_is_not_written_again():
    writer = ConditionWriter()
    writer.observe(POD.uid, (types.Condition(POD_SCHEDULED, "False", "Unschedulable", "no room"),))
    assert writer.set(POD, POD_SCHEDULED, "False", "Unschedulable", "no room") is None


def test_what_was_decided_is_newer_than_what_the_watch_shows():
    writer = ConditionWriter()
    writer.set(POD, POD_SCHEDULED, "False", "Unschedulable", "no room")
    writer.observe(POD.uid, (types.Condition(POD_SCHEDULED, "False", "Unschedulable", "old"),))
    writer.observe(POD.uid, None)
    assert writer.last(POD.uid, POD_SCHEDULED) == ("False", "Unschedulable", "no room")


def test_a_forgotten_object_is_written_to_again():
    writer = ConditionWriter()
    writer.set(POD, POD_SCHEDULED, "False", "Unschedulable", "no room")
    writer.forget(POD.uid)
    assert writer.set(POD, POD_SCHEDULED, "False", "Unschedulable", "no room") is not None


def test_only_an_eviction_by_a_scheduler_makes_a_disruption_target():
    writer = ConditionWriter()
    assert not writer.is_disruption_target(POD.uid)
    writer.set(POD, api.DISRUPTION_TARGET, "True", "EvictionByEvictionAPI")
    assert not writer.is_disruption_target(POD.uid)
    writer.set(POD, api.DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER)
    assert writer.is_disruption_target(POD.uid)
    writer.set(POD, api.DISRUPTION_TARGET, "False", PREEMPTION_BY_SCHEDULER)
    assert not writer.is_disruption_target(POD.uid)


def test_decisions_of_event_handlers_are_kept_and_taken_once():
    writer = ConditionWriter()
    decision = RecordEvent(POD, "Normal", "Scheduled", "Binding", "assigned")
    writer.post(decision)
    assert writer.has_posted
    assert writer.take_posted() == [decision]
    assert not writer.has_posted
    assert writer.take_posted() == []


# --- groups ----------------------------------------------------------------------------------------


def test_pod_groups_and_composites_have_a_condition_of_their_own():
    writer, forest = ConditionWriter(), Forest()
    groups = [forest.put_group(a_gang("g", 1)), forest.put_group(a_composite("c", 1))]
    written = [writer.initially_scheduled(group, "False", "Unschedulable") for group in groups]
    assert [condition and condition.type for condition in written] == [
        api.POD_GROUP_INITIALLY_SCHEDULED,
        api.COMPOSITE_INITIALLY_SCHEDULED,
    ]


def test_a_group_that_does_not_exist_has_no_conditions():
    writer, group = ConditionWriter(), Forest().group(LEAF)
    assert writer.initially_scheduled(group, "False", "Unschedulable") is None
    assert review(writer, group) == []


def test_a_group_that_reaches_its_minimum_is_scheduled_once_and_for_all():
    writer, group = ConditionWriter(), a_group(bound=1)
    assert review(writer, group) == [
        (api.POD_GROUP_INITIALLY_SCHEDULED, "True", "Scheduled"),
        (api.QUORUM_MET, "True", "QuorumBound"),
    ]
    assert review(writer, group) == []
    assert group.scheduled_once
    assert writer.initially_scheduled(group, "False", "Unschedulable") is None


def test_a_group_below_its_minimum_that_never_ran_has_nothing_to_report():
    assert review(ConditionWriter(), a_group(bound=1, minimum=2)) == []


def test_a_group_that_ran_and_lost_members_reports_how_many_are_left():
    writer, group = ConditionWriter(), a_group(bound=1, minimum=2)
    group.scheduled_once = True
    (written,) = writer.review(group, lambda _: False)
    assert (written.type, written.status, written.reason) == (api.QUORUM_MET, "False", "BelowMinimum")
    assert written.message == "1 of 2 members are bound"


def test_a_group_that_was_evicted_reports_that_as_the_reason():
    writer, group = ConditionWriter(), a_group(bound=0)
    group.scheduled_once = True
    mark(writer, group)
    assert review(writer, group) == [(api.QUORUM_MET, "False", "Preempted")]


def test_a_group_that_is_bound_again_is_no_target_unless_it_still_loses_pods():
    writer, group = ConditionWriter(), a_group(bound=1)
    mark(writer, group)
    assert (api.DISRUPTION_TARGET, "False", "QuorumBound") not in review(writer, group, losing=True)
    assert review(writer, group) == [(api.DISRUPTION_TARGET, "False", "QuorumBound")]
