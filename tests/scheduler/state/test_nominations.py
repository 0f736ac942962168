"""Nominations: seats kept for an entity against others of its priority or less."""

from __future__ import annotations

from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.runtime.profile import default_profile
from muster.scheduler.state.nominations import Nomination, Nominations
from tests.build.cluster import a_cluster, evaluator_of
from tests.build.objects import a_node, a_pod

HIGH, OTHER = EntityKey("PodGroup", "ns", "high"), EntityKey("PodGroup", "ns", "other")


def nominated(cluster: Cluster, *seats: tuple[str, str, EntityKey]) -> Nominations:
    """Nominations of priority 5: a pod, its node and its entity each."""
    nominations = Nominations(cluster)
    shape = evaluator_of(cluster).shape(a_pod("any"), default_profile())
    for uid, node, entity in seats:
        nominations.nominate(Nomination(uid, shape, node, 5, entity))
    return nominations


def slots(nominations: Nominations, entity: EntityKey, priority: int) -> list[int]:
    return [slot for _, slot in nominations.against(entity, priority)]


def test_seats_are_kept_against_others_of_equal_or_lower_priority():
    nominations = nominated(a_cluster(a_node("n0"), a_node("n1")), ("a", "n1", HIGH))
    assert slots(nominations, OTHER, 4) == [1]
    assert slots(nominations, OTHER, 5) == [1]
    assert slots(nominations, OTHER, 6) == []


def test_an_entity_may_take_its_own_seats():
    nominations = nominated(a_cluster(a_node("n0")), ("a", "n0", HIGH))
    assert slots(nominations, HIGH, 0) == []


def test_a_seat_on_a_node_that_is_gone_keeps_nobody_away():
    nominations = nominated(a_cluster(a_node("n0")), ("a", "gone", HIGH))
    assert slots(nominations, OTHER, 0) == []


def test_a_pod_has_one_nomination_the_latest():
    nominations = nominated(a_cluster(a_node("n0"), a_node("n1")), ("a", "n0", HIGH), ("a", "n1", HIGH))
    assert slots(nominations, OTHER, 0) == [1]


def test_clearing_gives_back_every_seat_of_one_entity():
    nominations = nominated(a_cluster(a_node("n0")), ("a", "n0", HIGH), ("b", "n0", OTHER), ("c", "n0", HIGH))
    assert nominations.clear(HIGH) == ["a", "c"]
    assert nominations.entities() == {OTHER}
    assert nominations.clear(HIGH) == []


def test_a_pod_that_is_gone_keeps_no_seat():
    nominations = nominated(a_cluster(a_node("n0")), ("a", "n0", HIGH))
    assert "a" in nominations
    nominations.remove("a")
    nominations.remove("never nominated")
    assert "a" not in nominations
    assert not nominations
