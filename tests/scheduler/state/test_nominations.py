"""Nominations: seats are kept against entities of the same or a lower priority, until they are given back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.runtime.profile import default_profile
from muster.scheduler.state.nominations import Nomination, Nominations
from muster.scheduler.state.requeue_signals import RequeueSignals
from tests.build.cluster import a_cluster, evaluator_of
from tests.build.objects import a_node, a_pod

A, B = EntityKey("PodGroup", "ns", "a"), EntityKey("PodGroup", "ns", "b")
OTHER = EntityKey("Pod", "ns", "other")


@pytest.fixture
def cluster() -> Cluster:
    return a_cluster(a_node("n0"), a_node("n1"))


def a_nomination(cluster: Cluster, name: str, entity: EntityKey = A, node: str = "n0", priority: int = 5) -> Nomination:
    shape = evaluator_of(cluster).shape(a_pod(name), default_profile())
    return Nomination(f"pod-{name}", shape, node, priority, entity)


def test_nothing_is_nominated_at_first(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))

    assert not nominations
    assert "pod-x" not in nominations
    assert (nominations.entities(), nominations.against(OTHER, 0), nominations.clear(A)) == (set(), [], [])


def test_a_nominated_pod_has_one_seat_the_latest(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))
    nominations.nominate(a_nomination(cluster, "x", node="n0"))

    nominations.nominate(latest := a_nomination(cluster, "x", node="n1"))

    assert nominations
    assert "pod-x" in nominations
    assert nominations.against(OTHER, 0) == [(latest.shape, cluster.index["n1"])]


@pytest.mark.parametrize(("priority", "seats"), [(4, 1), (5, 1), (6, 0)])
def test_a_seat_is_kept_against_the_same_and_lower_priorities(cluster: Cluster, priority: int, seats: int):
    nominations = Nominations(cluster, RequeueSignals([]))
    nominations.nominate(a_nomination(cluster, "x", priority=5))

    assert len(nominations.against(OTHER, priority)) == seats


def test_a_seat_is_not_kept_against_its_own_entity(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))
    nominations.nominate(a_nomination(cluster, "x", A, "n0"))
    nominations.nominate(other := a_nomination(cluster, "y", B, "n1"))

    assert nominations.against(A, 0) == [(other.shape, cluster.index["n1"])]


def test_a_seat_on_a_node_that_is_gone_is_kept_from_nobody(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))
    nominations.nominate(a_nomination(cluster, "x", node="n0"))

    cluster.remove("Node", "", "n0")

    assert nominations.against(OTHER, 0) == []
    assert "pod-x" in nominations


def test_clear_gives_back_every_seat_of_one_entity_and_names_the_pods(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))
    for name, entity in (("x", A), ("y", B), ("z", A)):
        nominations.nominate(a_nomination(cluster, name, entity))
    assert nominations.entities() == {A, B}

    assert nominations.clear(A) == ["pod-x", "pod-z"]

    assert nominations.entities() == {B}
    assert [uid in nominations for uid in ("pod-x", "pod-y", "pod-z")] == [False, True, False]


def test_a_pod_that_is_gone_needs_no_seat(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))
    nominations.nominate(a_nomination(cluster, "x"))

    nominations.remove("pod-x")
    nominations.remove("pod-x")

    assert not nominations
    assert nominations.against(OTHER, 0) == []


def test_a_seat_that_is_given_back_is_signalled_to_those_it_was_kept_from(cluster: Cluster):
    signals = RequeueSignals([])
    nominations = Nominations(cluster, signals)
    nominations.nominate(one := a_nomination(cluster, "x", A, "n1", priority=5))
    assert not signals.slots

    nominations.clear(A)

    (gain,) = signals.slots
    assert gain.slot == cluster.index["n1"]
    assert [gain.helps(priority, preempts=True) for priority in (4, 5, 6)] == [True, True, False]
    assert gain.helps(5, preempts=False)
    assert one.shape.footprint in signals.pods


def test_the_seats_of_an_entity_are_known_by_pod(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))
    nominations.nominate(a_nomination(cluster, "x", A, "n1"))
    nominations.nominate(a_nomination(cluster, "y", B, "n0"))
    assert nominations.of(A) == {"pod-x": "n1"}


# --- seats held for members to come ----------------------------------------------------------------


def a_seat(cluster: Cluster, name: str, deadline: float, entity: EntityKey = A, node: str = "n0") -> Nomination:
    return replace(a_nomination(cluster, name, entity, node), group=entity, deadline=deadline)


def test_held_seats_are_kept_like_others_and_stay_when_a_preemption_ends(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))
    nominations.nominate(a_nomination(cluster, "x"))
    assert not nominations.all_held
    nominations.nominate(a_seat(cluster, "y", 10.0))
    assert len(nominations.against(OTHER, 0)) == 2
    assert nominations.entities() == {A}
    assert nominations.clear(A) == ["pod-x"]
    assert [seat.uid for seat in nominations.held(A)] == ["pod-y"]
    assert (nominations.holding(), nominations.entities(), nominations.all_held) == ([A], set(), True)


def test_a_seat_that_only_gets_more_time_signals_nothing(cluster: Cluster):
    signals = RequeueSignals([])
    nominations = Nominations(cluster, signals)
    nominations.nominate(seat := a_seat(cluster, "x", 10.0))
    stamp = signals.stamp
    nominations.nominate(replace(seat, deadline=20.0))
    nominations.extend(A, 30.0)
    assert signals.stamp == stamp
    assert nominations.next_deadline() == 30.0
    nominations.release(A)
    assert signals.stamp > stamp
    assert (nominations.holding(), nominations.next_deadline()) == ([], None)


def test_seats_are_overdue_at_their_deadline_and_looking_for_them_too(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))
    nominations.nominate(a_seat(cluster, "x", 10.0))
    nominations.want(B, 12.0)
    assert (nominations.overdue(9.9), nominations.overdue(10.0), nominations.overdue(12.0)) == ([], [A], [A, B])
    nominations.want(B, None)
    assert nominations.overdue(12.0) == [A]


def test_the_end_is_said_once_and_forgotten_with_the_next_member(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))
    nominations.nominate(a_seat(cluster, "x", 10.0))
    nominations.end(A)
    nominations.end(A)
    assert nominations.has_ended(A)
    assert (nominations.held(A), nominations.take_ended(), nominations.take_ended()) == ([], [A], [])
    nominations.extend(A, 20.0)
    assert not nominations.has_ended(A)


def test_only_trees_with_seats_on_changed_or_vanished_nodes_are_looked_at(cluster: Cluster):
    signals = RequeueSignals([])
    nominations = Nominations(cluster, signals)
    nominations.nominate(a_seat(cluster, "x", 10.0, A, "n0"))
    nominations.nominate(a_seat(cluster, "y", 10.0, B, "n1"))
    assert nominations.take_changed(signals.log) == [A, B]
    assert nominations.take_changed(signals.log) == []
    signals.taken(cluster.index["n1"])
    assert nominations.take_changed(signals.log) == [B]


def test_nothing_is_left_of_a_tree_that_is_forgotten(cluster: Cluster):
    nominations = Nominations(cluster, RequeueSignals([]))
    nominations.nominate(a_seat(cluster, "x", 10.0))
    nominations.want(A, 5.0)
    nominations.end(A)
    nominations.forget(A)
    assert not nominations
    assert (nominations.has_ended(A), nominations.take_ended(), nominations.next_deadline()) == (False, [], None)
