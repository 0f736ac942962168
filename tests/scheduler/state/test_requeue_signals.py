"""Requeue signals: what changed is collected with a stamp, until every waiting class has looked at it."""

from __future__ import annotations

import pytest

from muster.scheduler.cache.footprints import Footprint
from muster.scheduler.interface import cluster_events
from muster.scheduler.runtime.profile import default_profile
from muster.scheduler.state.requeue_signals import TERM_PLUGINS, RequeueSignals
from tests.build.cluster import a_cluster, evaluator_of
from tests.build.objects import a_pod


def plugins_that_name(*events: str) -> set[str]:
    named = {plugin.name for plugin in default_profile().filters if plugin.gains & set(events)}
    assert named, f"no plugin names {events}"
    return named


def some_signals() -> RequeueSignals:
    return RequeueSignals([default_profile()])


def test_nothing_is_pending_at_first():
    assert not some_signals().pending


def test_an_event_signals_the_plugins_that_name_it_and_no_others():
    signals = some_signals()
    signals.event(cluster_events.STORAGE)
    assert signals.pending
    assert signals.plugins.keys() == plugins_that_name(cluster_events.STORAGE)


def test_pods_that_come_or_go_concern_plugins_with_terms_only_by_what_the_terms_select():
    signals = some_signals()
    signals.event(cluster_events.POD_GONE, cluster_events.POD_PLACED)
    assert plugins_that_name(cluster_events.POD_GONE) >= TERM_PLUGINS
    assert signals.plugins.keys().isdisjoint(TERM_PLUGINS)


def test_an_event_that_no_plugin_names_is_not_pending():
    signals = some_signals()
    signals.event("no such event")
    signals.all_of(cluster_events.NOTHING)
    assert not signals.pending


def test_stamps_increase_and_an_equal_change_is_one_entry_with_the_latest():
    signals = some_signals()
    signals.capacity(3)
    first = signals.stamp
    signals.capacity(3)
    assert list(signals.slots.values()) == [signals.stamp]
    assert signals.stamp > first


def a_footprint() -> Footprint:
    return evaluator_of(a_cluster()).shape(a_pod("x"), default_profile()).footprint


def test_a_pod_is_one_entry_by_its_footprint():
    footprint, signals = a_footprint(), some_signals()
    signals.pod(footprint)
    signals.pod(footprint)
    assert signals.pods == {footprint: signals.stamp}
    assert not signals.gains, "who only needs room gains nothing"


@pytest.mark.parametrize(
    ("signal", "free", "preemptors"),
    [
        (lambda s: s.capacity(1), True, {4, 5, 6}),
        (lambda s: s.pod_gone(1, 5, awaited=False), True, {4, 5}),  # 6 could have evicted it
        (lambda s: s.pod_gone(1, 5, awaited=True), True, set()),  # its room was counted on
        (lambda s: s.pod_leaving(1, 5), False, {4, 5}),
        (lambda s: s.evictable(1, 5, a_footprint()), False, {6}),
        (lambda s: s.nomination_cleared(1, 5), True, {4, 5}),
    ],
)
def test_a_gain_says_whom_it_helps(signal, free: bool, preemptors: set[int]):
    signals = some_signals()
    signal(signals)
    (gain,) = signals.slots
    assert gain.helps(5, preempts=False) is free
    assert {priority for priority in (4, 5, 6) if gain.helps(priority, preempts=True)} == preemptors


def test_what_was_collected_is_dropped_and_the_log_of_slots_stays():
    signals = some_signals()
    signals.capacity(2)
    signals.taken(4)
    signals.clear()
    changed = signals.log.since(0)
    assert not signals.pending
    assert changed is not None
    assert changed.tolist() == [2, 4]


@pytest.mark.parametrize(("priority", "preempts", "found"), [(6, True, True), (5, True, False), (6, False, False)])
def test_a_pod_that_can_be_evicted_concerns_the_terms_of_preemptors_of_higher_priority(
    priority: int, preempts: bool, found: bool
):
    footprint, signals = a_footprint(), some_signals()
    signals.evictable(1, 5, footprint)
    assert signals.pods_since(0, priority, preempts=preempts) == ([footprint] if found else [])
    assert signals.pods_since(signals.stamp, priority, preempts=preempts) == [], "it is known already"


def test_a_pod_that_came_or_went_concerns_the_terms_of_everybody():
    footprint, signals = a_footprint(), some_signals()
    signals.pod(footprint)
    assert signals.pods_since(0, -5, preempts=False) == [footprint]
    assert signals.pods_since(signals.stamp, -5, preempts=False) == []
