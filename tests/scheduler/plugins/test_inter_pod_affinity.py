"""InterPodAffinity."""

from __future__ import annotations

import pytest

from muster.api import types
from muster.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from tests.build.cluster import a_cluster, asked, evaluator_of
from tests.build.objects import HOSTNAME, TOPOLOGY_ZONE, a_node, a_pod, of

RULE = InterPodAffinity()
NEAR = "node(s) didn't match pod affinity rules"
APART = "node(s) didn't match pod anti-affinity rules"
THEIRS = "node(s) didn't satisfy existing pods anti-affinity rules"


def term(app="db", key=TOPOLOGY_ZONE, **more):
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}} | more


def required(side, *terms):
    return {side: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def zones(*pods):
    """Two nodes in zone a, one in zone b, one in none."""
    return a_cluster(
        a_node("a1", topology_zone="a"),
        a_node("a2", topology_zone="a"),
        a_node("b1", topology_zone="b"),
        a_node("none"),
        *pods,
    )


def namespace(name, **labels):
    return of(types.Namespace, {"metadata": {"name": name, "labels": labels}})


def preferred(side, weight, found):
    wish = {"weight": weight, "podAffinityTerm": found}
    return {side: {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def test_required_affinity_needs_a_matching_pod_in_the_domain():
    question = asked(
        zones(a_pod("db", node="a1", labels={"app": "db"})), a_pod(affinity=required("podAffinity", term())), RULE
    )
    assert question.nodes == {"a1", "a2"}
    assert question.counts == {NEAR: 2}
    assert question.final == {"b1", "none"}
    assert not evaluator_of(question.cluster).independent(question.shape)


def test_all_terms_must_be_met_by_the_same_pods():
    both = a_pod("both", node="b1", labels={"app": "db", "tier": "x"})
    only = a_pod("only", node="a1", labels={"app": "db"})
    tier = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"tier": "x"}}}
    question = asked(zones(both, only), a_pod(affinity=required("podAffinity", term(), tier)), RULE)
    assert question.nodes == {"b1"}


def test_the_first_of_a_group_that_wants_company_goes_anywhere_labelled():
    question = asked(zones(), a_pod(labels={"app": "db"}, affinity=required("podAffinity", term())), RULE)
    assert question.nodes == {"a1", "a2", "b1"}


def test_a_pod_that_would_not_satisfy_its_own_wish_waits_for_others():
    question = asked(zones(), a_pod(labels={"app": "web"}, affinity=required("podAffinity", term())), RULE)
    assert question.text == f"0/4 nodes are available: 4 {NEAR}."


def test_own_anti_affinity_refuses_the_whole_domain():
    question = asked(
        zones(a_pod("db", node="a1", labels={"app": "db"})), a_pod(affinity=required("podAntiAffinity", term())), RULE
    )
    assert question.nodes == {"b1", "none"}
    assert question.counts == {APART: 2}
    assert question.final == set()


def test_anti_affinity_of_running_pods_refuses_others():
    hermit = a_pod("hermit", node="a1", affinity=required("podAntiAffinity", term("web")))
    question = asked(zones(hermit), a_pod(labels={"app": "web"}), RULE)
    assert question.nodes == {"b1", "none"}
    assert question.counts == {THEIRS: 2}
    assert not evaluator_of(question.cluster).independent(question.shape)
    other = asked(zones(hermit), a_pod(labels={"app": "db"}), RULE)
    assert evaluator_of(other.cluster).independent(other.shape)


def test_reasons_come_in_the_order_of_the_rules():
    hermit = a_pod("hermit", node="b1", affinity=required("podAntiAffinity", term("web")))
    db = a_pod("db", node="a1", labels={"app": "db"})
    friend = a_pod("friend", node="b1", labels={"app": "db"})
    pod = a_pod(
        labels={"app": "web"},
        affinity=required("podAffinity", term()) | required("podAntiAffinity", term(key=HOSTNAME)),
    )
    question = asked(zones(hermit, db, friend), pod, RULE)
    assert question.nodes == {"a2"}
    assert question.counts == {NEAR: 1, APART: 2}


def test_a_terminating_pod_still_counts_for_affinity():
    leaving = a_pod("db", node="a1", labels={"app": "db"}, deleting=True)
    question = asked(zones(leaving), a_pod(affinity=required("podAntiAffinity", term())), RULE)
    assert question.nodes == {"b1", "none"}


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        ({}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, False),
        ({"namespaces": ["third"], "namespaceSelector": {"matchLabels": {"team": "y"}}}, False),
    ],
)
def test_a_term_looks_into_the_namespaces_it_names_or_selects(more, seen):
    db = a_pod("db", node="a1", labels={"app": "db"}, namespace="other")
    cluster = zones(db, namespace("other", team="x"), namespace("ns"))
    question = asked(cluster, a_pod(affinity=required("podAntiAffinity", term(**more))), RULE)
    assert question.nodes == ({"b1", "none"} if seen else {"a1", "a2", "b1", "none"})


def test_a_namespace_that_is_relabelled_or_removed_is_judged_anew():
    db = a_pod("db", node="a1", labels={"app": "db"}, namespace="other")
    cluster = zones(db, namespace("other"))
    chosen = term(namespaceSelector={"matchLabels": {"team": "x"}})
    question = asked(cluster, a_pod(affinity=required("podAntiAffinity", chosen)), RULE)
    assert "a1" in question.nodes
    assert cluster.change("Namespace", namespace("other", team="x"))
    assert "a1" not in question.nodes
    assert not cluster.change("Namespace", namespace("other", team="x"))
    assert cluster.remove("Namespace", "", "other")
    assert "a1" in question.nodes


def test_match_label_keys_narrow_a_term_to_pods_of_the_same_value():
    old = a_pod("old", node="a1", labels={"app": "db", "version": "1"})
    apart = term(matchLabelKeys=["version"])
    new = a_pod(labels={"app": "db", "version": "2"}, affinity=required("podAntiAffinity", apart))
    same = a_pod(labels={"app": "db", "version": "1"}, affinity=required("podAntiAffinity", apart))
    assert "a1" in asked(zones(old), new, RULE).nodes
    assert "a1" not in asked(zones(old), same, RULE).nodes


def test_mismatch_label_keys_narrow_a_term_to_pods_of_other_values():
    old = a_pod("old", node="a1", labels={"app": "db", "version": "1"})
    apart = term(mismatchLabelKeys=["version"])
    new = a_pod(labels={"app": "db", "version": "2"}, affinity=required("podAntiAffinity", apart))
    same = a_pod(labels={"app": "db", "version": "1"}, affinity=required("podAntiAffinity", apart))
    assert "a1" not in asked(zones(old), new, RULE).nodes
    assert "a1" in asked(zones(old), same, RULE).nodes


def test_a_term_without_a_selector_means_nobody():
    everywhere = {"topologyKey": TOPOLOGY_ZONE}
    question = asked(zones(a_pod("db", node="a1")), a_pod(affinity=required("podAntiAffinity", everywhere)), RULE)
    assert len(question.nodes) == 4


def test_preferred_company_and_distance_move_scores_between_0_and_100():
    db = a_pod("db", node="a1", labels={"app": "db"})
    wish = preferred("podAffinity", 10, term())
    assert asked(zones(db), a_pod(affinity=wish), RULE).scores() == {"a1": 100, "a2": 100, "b1": 0, "none": 0}
    wish = preferred("podAntiAffinity", 10, term(key=HOSTNAME))
    assert asked(zones(db), a_pod(affinity=wish), RULE).scores() == {"a1": 0, "a2": 100, "b1": 100, "none": 100}


def test_scores_between_the_ends_are_cut_to_whole_numbers():
    pods = [a_pod(f"db{i}", node=node, labels={"app": "db"}) for i, node in enumerate(["a1", "a1", "a1", "a2"])]
    wish = preferred("podAffinity", 7, term(key=HOSTNAME))
    assert asked(zones(*pods), a_pod(affinity=wish), RULE).scores() == {"a1": 100, "a2": 33, "b1": 0, "none": 0}


def test_running_pods_wishes_count_for_the_newcomer():
    friendly = a_pod("friendly", node="b1", affinity=preferred("podAffinity", 5, term("web")))
    grumpy = a_pod("grumpy", node="a1", affinity=preferred("podAntiAffinity", 5, term("web")))
    scores = asked(zones(friendly, grumpy), a_pod(labels={"app": "web"}), RULE).scores()
    assert scores == {"a1": 0, "a2": 0, "b1": 100, "none": 50}


def test_required_affinity_of_running_pods_is_worth_the_hard_weight():
    needy = a_pod("needy", node="b1", labels={"app": "web"}, affinity=required("podAffinity", term("web")))
    newcomer = a_pod(labels={"app": "web"})
    assert asked(zones(needy), newcomer, RULE).scores()["b1"] == 100
    assert asked(zones(needy), newcomer, InterPodAffinity({"hardPodAffinityWeight": 0})).scores()["b1"] == 0


def test_preferences_of_running_pods_can_be_ignored_for_pods_without_their_own():
    friendly = a_pod("friendly", node="b1", affinity=preferred("podAffinity", 5, term("web")))
    plugin = InterPodAffinity({"ignorePreferredTermsOfExistingPods": True})
    assert asked(zones(friendly), a_pod(labels={"app": "web"}), plugin).scores()["b1"] == 0


def test_a_hard_weight_beyond_100_is_refused():
    with pytest.raises(ValueError, match="from 0 to 100"):
        InterPodAffinity({"hardPodAffinityWeight": 101})
