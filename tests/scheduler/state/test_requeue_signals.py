"""Requeue signals: changes are collected between two cycles and taken once."""

from __future__ import annotations

from muster.scheduler.interface import cluster_events
from muster.scheduler.runtime.profile import default_profile
from muster.scheduler.state.requeue_signals import BINDS_IN_FLIGHT, RequeueSignals


def test_an_event_names_the_plugins_that_it_can_help():
    signals = RequeueSignals([default_profile()])
    signals.event(cluster_events.NAMESPACE)
    assert signals.take_plugins() == ["InterPodAffinity"]


def test_events_are_collected_and_taken_once_in_order():
    signals = RequeueSignals([default_profile()])
    signals.event(cluster_events.NAMESPACE)
    signals.all_of(frozenset({cluster_events.STORAGE, cluster_events.NAMESPACE}))
    signals.rejection_over(BINDS_IN_FLIGHT)
    plugins = signals.take_plugins()
    assert plugins == sorted(plugins)
    assert {BINDS_IN_FLIGHT, "InterPodAffinity", "VolumeBinding"} <= set(plugins)
    assert signals.take_plugins() == []


def test_an_event_that_no_plugin_names_helps_nobody():
    signals = RequeueSignals([default_profile()])
    signals.event(cluster_events.NODE_IMAGES)
    assert not signals.pending


def test_something_is_pending_while_a_node_or_a_plugin_is_collected():
    signals = RequeueSignals([default_profile()])
    assert not signals.pending
    signals.capacity(3)
    assert (signals.nodes, signals.pending) == ({3}, True)
    signals.nodes.clear()
    signals.event(cluster_events.NODE_ADDED)
    assert signals.pending
    signals.take_plugins()
    assert not signals.pending
