"""What each group of an incomplete tree waits for, and when that is written."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.scheduler.groups.forest import Forest
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.status import waiting
from muster.scheduler.status.waiting import (
    FIRST_NOTICE_SECONDS,
    LATEST_POD_NOTICE_SECONDS,
    NOTICE_INTERVAL_SECONDS,
    NoticeTimer,
)
from tests.build.objects import a_composite, a_gang, a_pod, pods

A, B = EntityKey("PodGroup", "ns", "a"), EntityKey("PodGroup", "ns", "b")


def a_forest(*objects: Any) -> Forest:
    forest = Forest()
    for obj in objects:
        if type(obj).__name__ == "Pod":
            forest.put_member(obj, EntityKey("PodGroup", "ns", obj.spec.scheduling_group.pod_group_name))
        else:
            forest.put_group(obj)
    return forest


def waits(forest: Forest, top: str = "top") -> dict[str, tuple[str, str]]:
    """Reason and message of each group of a tree that has one."""
    group = next(group for key, group in forest.groups.items() if key.name == top)
    return {wait.group.key.name: (wait.reason, wait.message) for wait in waiting.wait_reasons(group)}


# --- reasons ---------------------------------------------------------------------------------------


def test_a_gang_waits_for_its_members():
    assert waits(a_forest(a_gang("top", 3), a_pod("p", "top"))) == {
        "top": (waiting.FOR_MEMBERS, "1 of 3 members exist")
    }


def test_a_group_waits_for_the_priority_of_the_class_it_names():
    gang = a_gang("top", 1)
    named = msgspec.structs.replace(gang.spec, priority_class_name="gold", priority=None)
    forest = a_forest(msgspec.structs.replace(gang, spec=named), a_pod("p", "top"))
    text = "PriorityClass gold has not given top its priority yet; it may not exist"
    assert waits(forest) == {"top": (waiting.FOR_PRIORITY, text)}


def test_a_group_that_no_pod_joined_yet_has_nothing_to_report():
    assert waits(a_forest(a_gang("top", 3))) == {}


def test_a_tree_without_its_parent_waits_for_it():
    forest = a_forest(a_gang("g", 1, parent="top"), a_pod("p", "g"))
    assert waits(forest) == {"g": (waiting.FOR_PARENT, "parent top does not exist")}


def test_the_complete_children_of_an_incomplete_composite_wait_for_the_others():
    forest = a_forest(a_composite("top", 2), a_gang("g", 1, parent="top"), a_pod("p", "g"))
    assert waits(forest) == {
        "top": (waiting.FOR_CHILDREN, "1 of 2 child groups are complete"),
        "g": (waiting.FOR_CHILDREN, "composite pod group top is incomplete: 1 of 2 child groups are complete"),
    }


def test_the_nearest_incomplete_composite_is_named():
    forest = a_forest(a_composite("top", 1), a_composite("middle", 2, parent="top"), a_gang("g", 1, parent="middle"))
    forest.put_member(a_pod("p", "g"), EntityKey("PodGroup", "ns", "g"))
    assert waiting.incomplete_above(forest.groups[EntityKey("PodGroup", "ns", "g")]).startswith(
        "composite pod group middle is incomplete"
    )


def test_a_gated_pod_holds_the_whole_tree_and_the_first_is_named():
    gated = [a_pod(f"p{i}", "top", gates=["hold"]) for i in (2, 1)]
    assert waits(a_forest(a_gang("top", 1), *gated)) == {
        "top": (waiting.GATED, "pod p1 has scheduling gates, which hold the whole tree")
    }


def test_a_complete_tree_waits_for_nothing():
    assert waits(a_forest(a_gang("top", 2), *pods(2, "top"))) == {}


# --- timer -----------------------------------------------------------------------------------------


def test_a_wait_is_written_some_seconds_after_it_began():
    timer = NoticeTimer()
    timer.start(A, 10.0)
    timer.start(A, 11.0)
    assert timer.next_due() == 10.0 + FIRST_NOTICE_SECONDS
    assert timer.due(10.0) == []
    assert timer.due(10.0 + FIRST_NOTICE_SECONDS) == [A]
    assert timer.next_due() is None


def test_a_wait_that_changes_is_written_again_after_the_interval():
    timer = NoticeTimer()
    timer.start(A, 0.0)
    timer.due(FIRST_NOTICE_SECONDS)
    timer.start(A, FIRST_NOTICE_SECONDS + 1)
    assert timer.next_due() == FIRST_NOTICE_SECONDS + NOTICE_INTERVAL_SECONDS


def test_a_wait_that_changes_long_after_is_written_at_once():
    timer = NoticeTimer()
    timer.start(A, 0.0)
    timer.due(FIRST_NOTICE_SECONDS)
    timer.start(A, 100.0)
    assert timer.due(100.0) == [A]


def test_a_wait_that_ended_is_not_written_and_the_next_one_begins_anew():
    timer = NoticeTimer()
    timer.start(A, 0.0)
    timer.start(B, 0.0)
    timer.stop(A)
    assert timer.due(FIRST_NOTICE_SECONDS) == [B]
    timer.start(A, 5.0)
    assert timer.next_due() == 5.0 + FIRST_NOTICE_SECONDS


# --- pods ------------------------------------------------------------------------------------------


def told(timer: NoticeTimer, until: float, pods: int = 5) -> list[float]:
    """When the pods of A are told, up to a time."""
    times: list[float] = []
    while (due := timer.next_due()) is not None and due <= until:
        times += [due for key in timer.due(due) if timer.pods_due(key, pods, due)]
    return times


def test_pods_are_told_with_their_group_when_nothing_changes():
    timer = NoticeTimer()
    timer.start(A, 0.0)
    assert told(timer, 100) == [FIRST_NOTICE_SECONDS]


def test_pods_are_told_once_no_more_of_them_arrive():
    timer = NoticeTimer()
    timer.start(A, 0.0)
    timer.start(A, 1.5)
    assert told(timer, 100) == [1.5 + FIRST_NOTICE_SECONDS]


def test_pods_of_a_tree_that_never_comes_to_rest_are_told_in_the_end():
    timer = NoticeTimer()
    times: list[float] = []
    for second in range(40):
        timer.start(A, float(second))
        times += told(timer, second + 0.5)
    assert times[0] == LATEST_POD_NOTICE_SECONDS


def test_many_pods_are_told_again_after_a_longer_time_than_few():
    def second_time(pods: int) -> float:
        timer = NoticeTimer()
        timer.start(A, 0.0)
        told(timer, 10.0, pods)
        timer.start(A, 11.0)
        return told(timer, 1000.0, pods)[0]

    assert second_time(5) == 11.0 + FIRST_NOTICE_SECONDS
    assert second_time(1000) == FIRST_NOTICE_SECONDS + 100.0
