"""Searches under way: bounded in number, one slice after the other in turn, and others are served in between."""

from __future__ import annotations

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.budget import Budget, Pausing
from muster.scheduler.placement.request import PodGroupRequest
from muster.scheduler.planning.paused_search import PausedSearch
from muster.scheduler.planning.tree_search import NotFound
from muster.scheduler.state.searches import MOST_SEARCHES, KeptSearch, Searches


def a_key(name: str) -> EntityKey:
    return EntityKey("PodGroup", "ns", name)


def a_search(name: str) -> KeptSearch:
    def search() -> Pausing[NotFound]:
        yield
        return NotFound(complete=False)

    request = PodGroupRequest(a_key(name), minimum=1, bound=0, members=())
    return KeptSearch(a_key(name), PausedSearch(request, search(), Budget(10), ()), asked=(), gains=0, version=0)


def test_slices_go_round():
    searches = Searches()
    for name in "abc":
        assert searches.keep(a_search(name))

    turns = [searches.take_turn(others_wait=False) for _ in range(4)]

    assert [kept.key.name for kept in turns if kept] == ["a", "b", "c", "a"]


def test_entities_in_line_and_slices_take_turns():
    searches = Searches()
    searches.keep(a_search("a"))

    assert [searches.take_turn(others_wait=True) is not None for _ in range(4)] == [True, False, True, False]
    assert Searches().take_turn(others_wait=False) is None


def test_a_search_too_many_waits_until_another_one_ends():
    searches = Searches()
    for number in range(MOST_SEARCHES):
        assert searches.keep(a_search(str(number)))

    assert not searches.keep(a_search("late"))
    assert not searches.keep(a_search("later"))
    assert len(searches) == MOST_SEARCHES
    assert searches.drop(a_key("3")) == a_key("late")
    assert searches.drop(a_key("late")) is None, "it was told of its place and did not take it"
    assert searches.drop(a_key("4")) == a_key("later")


def test_a_search_of_an_entity_replaces_the_one_before():
    searches = Searches()
    for number in range(MOST_SEARCHES):
        searches.keep(a_search(str(number)))
    again = a_search("0")

    assert searches.keep(again)
    assert searches.get(a_key("0")) is again


def test_an_entity_that_is_gone_waits_for_no_place():
    searches = Searches()
    for number in range(MOST_SEARCHES):
        searches.keep(a_search(str(number)))
    searches.keep(a_search("late"))

    searches.drop(a_key("late"))

    assert searches.drop(a_key("0")) is None
