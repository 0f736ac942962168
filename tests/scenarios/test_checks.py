"""The assertions of scenarios notice what is not so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.checks import Seen, failure


def a_pod(name: str, node: str = "", reason: str = "", leaving: bool = False) -> dict[str, Any]:
    meta = {"name": name} | ({"deletionTimestamp": "now"} if leaving else {})
    said = [{"type": "PodScheduled", "status": "False", "reason": reason, "message": f"why {name}"}] if reason else []
    return {"metadata": meta, "spec": {"nodeName": node} if node else {}, "status": {"conditions": said}}


def an_event(name: str, pod: str) -> dict[str, Any]:
    about = {"kind": "Pod", "name": pod}
    return {"metadata": {"name": name}, "regarding": about, "reason": "FailedScheduling", "note": "no room"}


PODS = [a_pod("a0", node="n0"), a_pod("a1", reason="Unschedulable"), a_pod("b0", node="n1", leaving=True)]
NODES = [{"metadata": {"name": "n0", "labels": {"rack": "r0"}}}]
EVENTS = [an_event("one", "a1"), an_event("two", "a1")]
GROUP = {"metadata": {"name": "g"}, "spec": {"priority": 0}}
SEEN = Seen(
    {"Pod": PODS, "Node": NODES, "Event": EVENTS, "PodGroup": [GROUP], "CompositePodGroup": []},
    ["a0", "a1", "b0", "c0"],
)


@pytest.mark.parametrize(
    ("assertion", "holds"),
    [
        ({"scheduled": ["a0"]}, True),
        ({"scheduled": ["a*"]}, False),
        ({"scheduled": ["b0"]}, False),
        ({"pending": ["a1"]}, True),
        ({"pending": ["c0"]}, False),
        ({"gone": ["c0"]}, True),
        ({"gone": ["b0"]}, False),
        ({"alive": ["a*"]}, True),
        ({"alive": ["b0"]}, False),
        ({"unschedulable": ["a1"]}, True),
        ({"unschedulable": ["a0"]}, False),
        ({"bound": {"*": 1}}, True),
        ({"bound": {"*": [2, 3]}}, False),
        ({"survivors": {"*": 2}}, True),
        ({"condition": {"kind": "pod", "name": "a1", "status": "False", "messageContains": "why a1"}}, True),
        ({"condition": {"kind": "pod", "name": "a1", "status": "False", "reason": "Other"}}, False),
        ({"condition": {"name": "g", "absent": True}}, True),
        ({"condition": {"name": "g"}}, False),
        ({"object": {"kind": "group", "name": "g", "path": "spec.priority", "equals": 0}}, True),
        ({"object": {"kind": "group", "name": "g", "path": "spec.priority", "equals": 1}}, False),
        ({"object": {"kind": "group", "name": "g", "path": "spec.none", "absent": True}}, True),
        ({"sameDomain": {"key": "rack", "pods": "a*"}}, True),
        ({"sameDomain": {"key": "zone", "pods": "a*"}}, False),
        ({"events": {"kind": "pod", "name": "a1", "count": 2}}, True),
        ({"events": {"kind": "pod", "name": "a*"}}, False),
        ({"anyOf": [{"gone": ["a0"]}, {"scheduled": ["a0"]}]}, True),
        ({"anyOf": [{"gone": ["a0"]}, {"scheduled": ["a1"]}]}, False),
    ],
)
def test_an_assertion_holds_or_gives_a_reason(assertion: dict[str, Any], holds: bool):
    assert (failure(SEEN, assertion) is None) is holds
