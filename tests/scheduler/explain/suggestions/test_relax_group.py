"""Suggestions about the group: a lower minimum, a wider domain, fewer children."""

from __future__ import annotations

from tests.build.objects import BLOCK, RACK, a_composite, a_gang, pods
from tests.build.scheduler import a_world
from tests.build.suggestions import a_stuck_rack_gang, racks, suggested, the


def test_the_minimum_is_lowered_no_further_than_needed():
    world = a_stuck_rack_gang()
    assert the("lower-minimum", suggested(world, "PodGroup", "g")).details["minCount"] == 4


def test_the_narrowest_wider_domain_is_suggested():
    assert the("widen-topology", suggested(a_stuck_rack_gang(), "PodGroup", "g")).details["to"] == BLOCK


def test_a_tree_may_do_with_fewer_children():
    world = a_world(racks())
    world.add(a_composite("root", 2), a_gang("a", 2, parent="root"), a_gang("b", 5, parent="root", topology=RACK))
    world.add(*pods(2, "a"), *pods(5, "b")).run()
    changeable = frozenset({"minCount", "minGroupCount"})
    every = suggested(world, "CompositePodGroup", "root", changeable)
    hints = [hint for hint in every if hint.action == "lower-minimum"]
    assert {hint.text for hint in hints} == {
        "lower minGroupCount of root from 2 to 1",
        "lower minCount of b from 5 to 4",
    }


def test_what_the_server_refuses_to_change_comes_last_and_says_so():
    world = a_world(racks())
    world.add(a_composite("root", 2), a_gang("a", 2, parent="root"), a_gang("b", 5, parent="root", topology=RACK))
    world.add(*pods(2, "a"), *pods(5, "b")).run()
    hints = suggested(world, "CompositePodGroup", "root", frozenset({"minCount"}))
    made_anew = [hint for hint in hints if hint.recreate]
    assert hints[-len(made_anew) :] == made_anew
    assert {hint.action for hint in hints[: -len(made_anew)]} >= {"lower-minimum", "add-nodes"}
    assert [(hint.recreate, hint.text) for hint in made_anew if hint.action == "lower-minimum"] == [
        (
            "root",
            "lower minGroupCount of root from 2 to 1: it must be made anew, the server does not let the number change",
        )
    ]


def test_a_group_is_made_anew_for_another_constraint():
    hint = the("widen-topology", suggested(a_stuck_rack_gang(), "PodGroup", "g"))
    assert hint.recreate == "g"
    assert hint.text.endswith("it must be made anew with it")
