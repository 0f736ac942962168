"""Requeue signals: cluster events become the plugins that name them; all is collected until it is taken."""

from __future__ import annotations

from muster.scheduler.interface import cluster_events
from muster.scheduler.runtime.profile import default_profile
from muster.scheduler.state.requeue_signals import BINDS_IN_FLIGHT, RequeueSignals


def plugins_that_name(*events: str) -> list[str]:
    named = {plugin.name for plugin in default_profile().filters if plugin.requeue_events & set(events)}
    assert named, f"no plugin names {events}"
    return sorted(named)


def some_signals() -> RequeueSignals:
    return RequeueSignals([default_profile()])


def test_nothing_is_pending_at_first():
    signals = some_signals()

    assert not signals.pending
    assert (signals.take_plugins(), signals.nodes) == ([], set())


def test_an_event_signals_the_plugins_that_name_it_and_no_others():
    signals = some_signals()

    signals.event(cluster_events.STORAGE)

    assert signals.pending
    assert signals.take_plugins() == plugins_that_name(cluster_events.STORAGE)
    assert "NodeResourcesFit" not in plugins_that_name(cluster_events.STORAGE)


def test_several_events_signal_the_plugins_of_all_of_them_once():
    events = (cluster_events.STORAGE, cluster_events.POD_PLACED)
    one_by_one, together = some_signals(), some_signals()

    one_by_one.event(*events)
    one_by_one.event(*events)
    together.all_of(frozenset(events))

    expected = plugins_that_name(*events)
    assert (one_by_one.take_plugins(), together.take_plugins()) == (expected, expected)


def test_an_event_that_no_plugin_names_signals_nothing():
    signals = some_signals()

    signals.event("no such event")
    signals.all_of(cluster_events.NOTHING)

    assert not signals.pending


def test_without_profiles_no_event_signals_anything():
    signals = RequeueSignals([])

    signals.event(cluster_events.STORAGE)

    assert not signals.pending


def test_plugins_are_taken_once_and_in_order():
    signals = some_signals()
    for name in ("b", BINDS_IN_FLIGHT, "a", "b"):
        signals.rejection_over(name)

    assert signals.pending
    assert (signals.take_plugins(), signals.take_plugins()) == (["BindsInFlight", "a", "b"], [])
    assert not signals.pending


def test_nodes_are_collected_until_they_are_cleared():
    signals = some_signals()
    for slot in (3, 1, 3):
        signals.capacity(slot)

    assert signals.take_plugins() == []
    assert (signals.nodes, signals.pending) == ({1, 3}, True)

    signals.nodes.clear()
    assert not signals.pending
