"""Reservations: for whom the kept seats count as taken, and whose promises count."""

from __future__ import annotations

import pytest

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.state.reservations import Reservation, Reservations
from tests.build.cluster import a_cluster
from tests.build.objects import a_node

GROUP, OTHER = EntityKey("PodGroup", "ns", "g"), EntityKey("Pod", "ns", "p")
OWNER = ("ns", "Job", "j")


def kept(start: float | None = None, priority: int = 5) -> Reservations:
    reservations = Reservations(a_cluster(a_node("n0"), a_node("n1")))
    seats = (("shape", "n0"), ("shape", "n1"), ("shape", "gone"))
    reservations.replace_all([Reservation(GROUP, "u", "s", priority, (), seats, (), 0.0, start)])  # type: ignore[arg-type]
    return reservations


@pytest.mark.parametrize(("priority", "taken"), [(4, 2), (5, 2), (6, 0)])
def test_seats_on_known_nodes_are_taken_for_equal_and_lower_priorities(priority: int, taken: int):
    assert len(kept().against(OTHER, priority, None)) == taken


def test_seats_are_free_for_the_group_itself():
    assert kept().against(GROUP, 0, None) == []


@pytest.mark.parametrize(("run", "taken"), [(None, 2), (60.0, 0), (61.0, 2)])
def test_seats_are_free_for_those_that_are_gone_in_time(run: float | None, taken: int):
    reservations = kept(start=100.0)
    reservations.now = 40.0
    assert len(reservations.against(OTHER, 0, run)) == taken


def test_nobody_is_in_time_for_an_unknown_start():
    assert len(kept(start=None).against(OTHER, 0, 0.001)) == 2


def test_an_owner_is_distrusted_for_a_while():
    reservations = kept()
    assert reservations.believes(OWNER)
    assert reservations.overstays("u1", OWNER, 100.0)
    assert not reservations.overstays("u1", OWNER, 50.0)
    assert not reservations.believes(OWNER)
    assert reservations.distrusts
    reservations.now = 100.0
    assert reservations.believes(OWNER)
    reservations.forget_promises()
    assert not reservations.distrusts


def test_a_pod_that_is_gone_may_overstay_anew():
    reservations = kept()
    reservations.overstays("u1", OWNER, 100.0)
    reservations.forget_pod("u1")
    assert reservations.overstays("u1", OWNER, 100.0)


def test_what_is_dropped_is_gone_and_another_group_is_looked_for():
    reservations = kept()
    assert reservations.drop(GROUP) is not None
    assert (len(reservations), reservations.asked, reservations.get(GROUP)) == (0, True, None)
    assert reservations.drop(GROUP) is None
