"""The texts of conditions and events: the nearest domain first, amounts in the units that people write."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.interface.keys import EntityKey
from muster.scheduler.placement.verdict import (
    CountingProof,
    ExhaustionProof,
    Infeasible,
    SearchStats,
    Shortage,
    Undecided,
    WeightProof,
)
from muster.scheduler.status import messages

GANG, TREE = EntityKey("PodGroup", "ns", "g"), EntityKey("CompositePodGroup", "ns", "tree")
RACK = "example.com/rack"


def in_rack(domain: str, seats: int, **more: Any) -> Shortage:
    return Shortage(GANG, RACK, domain, seats, 4, **more)


def infeasible(*shortages: Shortage, group: EntityKey = GANG) -> Infeasible:
    return Infeasible(CountingProof(group, shortages))


@pytest.mark.parametrize(
    ("shortage", "text"),
    [
        (in_rack("r3", 2), "rack r3 came nearest: 2 of 4 seats"),
        (in_rack("rack-3", 2), "rack-3 came nearest: 2 of 4 seats"),
        (
            in_rack("r3", 2, lacking=(("cpu", 1500),), nodes=1),
            "rack r3 came nearest: 2 of 4 seats; short of cpu by 1500m on 1 node",
        ),
        (
            in_rack("r3", 2, lacking=(("cpu", 2000), ("memory", 1 << 30)), nodes=3),
            "rack r3 came nearest: 2 of 4 seats; short of cpu by 2, memory by 1Gi on 3 nodes",
        ),
        (
            in_rack("r3", 0, lacking=(("node(s) had untolerated taint(s)", 2),)),
            "rack r3 came nearest: 0 of 4 seats; 2 node(s) had untolerated taint(s)",
        ),
        (Shortage(GANG, "", "", 1, 4), "the cluster has 1 of 4 seats"),
        (Shortage(GANG, "", "", 1, 4, within=(RACK, "r1")), "rack r1 has 1 of 4 seats"),
        (Shortage(TREE, "", "", 1, 2, (("children", 1),)), "the cluster has 1 of 2 child groups"),
    ],
)
def test_a_shortage_names_the_domain_and_what_it_lacks(shortage: Shortage, text: str):
    assert messages.shortage_text(shortage) == text


def test_one_of_several_domains_is_not_said_to_have_come_nearest():
    assert messages.place_text(in_rack("r3", 2)) == "rack r3: 2 of 4 seats"


@pytest.mark.parametrize(
    ("what", "amount", "text"),
    [
        ("cpu", 2000, "cpu by 2"),
        ("cpu", 250, "cpu by 250m"),
        ("memory", 3 << 20, "memory by 3Mi"),
        ("memory", (1 << 30) + 1, "memory by 2Gi"),
        ("memory", 100, "memory by 100"),
        ("nvidia.com/gpu", 4, "nvidia.com/gpu by 4"),
        ("pods", 0, "pods"),
        ("node(s) were unschedulable", 3, "3 node(s) were unschedulable"),
        ("one domain of rack", 0, "not in one domain of rack"),
        ("nodes with the label rack", 0, "there are no nodes with the label rack"),
    ],
)
def test_what_is_lacking_is_a_resource_and_an_amount_or_a_reason_and_a_number_of_nodes(
    what: str, amount: int, text: str
):
    assert messages.lack_text(what, amount) == text


@pytest.mark.parametrize(
    ("what", "is_one"),
    [
        ("cpu", True),
        ("hugepages-2Mi", True),
        ("nvidia.com/gpu", True),
        ("node(s) had a/b taint", False),
        ("taint", False),
    ],
)
def test_resources_are_told_apart_from_reasons(what: str, is_one: bool):
    assert messages.is_resource(what) is is_one


def test_numbers_agree_with_their_nouns():
    assert (messages.count_text(1, "pod"), messages.count_text(2, "pod")) == ("1 pod", "2 pods")
    assert messages.have_text(3, 4, "members") == "3 of 4 members"
    assert messages.have_text(5, 4, "members") == "5 members (4 needed)"


def test_the_nearest_domain_is_the_one_with_the_fewest_seats_missing_and_the_first_of_equals():
    shortages = [in_rack("r0", 1), in_rack("r1", 3), in_rack("r2", 3), Shortage(TREE, "", "", 1, 1)]
    found = messages.nearest(shortages, GANG)
    assert found is shortages[1]
    assert messages.nearest(shortages, EntityKey("PodGroup", "ns", "other")) is None


def test_a_proof_names_the_shortages_of_its_children_first():
    deep, top = in_rack("r0", 1), Shortage(TREE, "", "", 0, 1)
    verdict = Infeasible(CountingProof(TREE, (top,), (CountingProof(GANG, (deep,)),)))
    assert messages.shortages_of(verdict) == (deep, top)
    assert messages.shortages_of(Undecided(SearchStats(7, shortages=(deep,)))) == (deep,)


def test_the_message_for_a_group_is_about_itself_where_the_verdict_is():
    verdict = infeasible(in_rack("r0", 1), in_rack("r1", 3))
    assert messages.message_of(verdict, GANG) == "rack r1 came nearest: 3 of 4 seats"


def test_the_message_for_another_group_names_the_group_that_failed():
    verdict = infeasible(in_rack("r0", 1))
    assert messages.message_of(verdict, TREE) == "group g: rack r0 came nearest: 1 of 4 seats"


def test_an_undecided_search_says_that_a_placement_may_exist():
    with_shortage = Undecided(SearchStats(7, shortages=(in_rack("r0", 1),)))
    assert messages.message_of(with_shortage, GANG).startswith(f"{messages.UNDECIDED_PREFIX}: rack r0")
    assert messages.message_of(Undecided(SearchStats(7)), GANG) == f"{messages.UNDECIDED_PREFIX}: 7 steps were tried"


def test_a_search_of_everything_says_how_much_that_was():
    text = messages.message_of(Infeasible(ExhaustionProof(GANG, node_classes=2, shapes=3, steps=12)), GANG)
    assert "all 12 distinct ways to seat 3 kinds of pods on 2 kinds of nodes were tried" in text
    assert messages.message_of(Infeasible(WeightProof(GANG, (), 5, 4)), GANG) == "nothing more of it can be placed"


def test_a_message_is_cut_where_the_api_cuts_it():
    long = in_rack("r0", 1, lacking=(("x" * 2000, 1),))
    assert len(messages.message_of(infeasible(long), GANG)) == messages.MAX_CONDITION_MESSAGE


def test_names_are_written_as_on_the_command_line():
    assert (messages.kind_word("PodGroup"), messages.short_key(RACK), messages.short_key("plain")) == (
        "podgroup",
        "rack",
        "plain",
    )
