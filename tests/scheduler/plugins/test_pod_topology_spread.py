"""PodTopologySpread."""

from __future__ import annotations

from math import floor, log

import pytest

from muster.api import types
from muster.scheduler.plugins.pod_topology_spread import PodTopologySpread
from tests.build.cluster import a_cluster, asked, evaluator_of
from tests.build.objects import HOSTNAME, TOPOLOGY_ZONE, a_node, a_pod, a_service, of

RULE = PodTopologySpread()
SKEWED = "node(s) didn't match pod topology spread constraints"
WEB = {"app": "web"}
MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"


def spread(key=TOPOLOGY_ZONE, skew=1, when="DoNotSchedule", **more):
    plugin = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": WEB}}
    return plugin | more


def web(name, node="", **fields):
    return a_pod(name, node=node, labels=WEB | fields.pop("labels", {}), **fields)


def zones(*objects, **fields):
    return a_cluster(
        a_node("a", topology_zone="a", **fields),
        a_node("b", topology_zone="b"),
        a_node("c", topology_zone="c"),
        *objects,
    )


def newcomer(*rules, **fields):
    return web("new", topologySpreadConstraints=list(rules), **fields)


def _by_zone(cluster):
    return [[name for name in cluster.names if int(name[1:]) % 3 == zone] for zone in range(3)]


def test_a_domain_that_would_be_too_far_ahead_is_refused():
    question = asked(zones(web("w1", "a"), web("w2", "b")), newcomer(spread()), RULE)
    assert question.nodes == {"c"}
    assert question.counts == {SKEWED: 2}
    assert question.final == set()
    assert not evaluator_of(question.cluster).independent(question.shape)


def test_a_larger_skew_allows_more():
    assert asked(zones(web("w1", "a"), web("w2", "b")), newcomer(spread(skew=2)), RULE).nodes == {"a", "b", "c"}


def test_a_pod_that_does_not_match_its_own_selector_adds_nothing():
    pod = a_pod("new", labels={"app": "other"}, topologySpreadConstraints=[spread()])
    assert asked(zones(web("w1", "a")), pod, RULE).nodes == {"a", "b", "c"}


def test_a_node_without_the_label_is_refused_for_good():
    question = asked(zones(a_node("none")), newcomer(spread()), RULE)
    assert question.nodes == {"a", "b", "c"}
    assert question.counts == {MISSING: 1}
    assert question.final == {"none"}


def test_too_few_domains_make_the_minimum_zero():
    pods = [web(f"w{i}", node) for i, node in enumerate("abc")]
    assert asked(zones(*pods), newcomer(spread(minDomains=3)), RULE).nodes == {"a", "b", "c"}
    assert asked(zones(*pods), newcomer(spread(minDomains=4)), RULE).nodes == set()


@pytest.mark.parametrize("other", [{"namespace": "elsewhere"}, {"deleting": True}, {"phase": "Succeeded"}])
def test_pods_elsewhere_leaving_or_finished_do_not_count(other):
    assert asked(zones(web("w1", "a", **other)), newcomer(spread()), RULE).nodes == {"a", "b", "c"}


def test_match_label_keys_count_only_pods_of_the_same_value():
    old = web("w1", "a", labels={"version": "1"})
    plugin = spread(matchLabelKeys=["version"])
    assert asked(zones(old), newcomer(plugin, labels={"version": "2"}), RULE).nodes == {"a", "b", "c"}
    assert asked(zones(old), newcomer(plugin, labels={"version": "1"}), RULE).nodes == {"b", "c"}


def test_only_nodes_the_pod_may_choose_are_domains_unless_told_to_ignore_that():
    chosen = {"nodeSelector": {"disk": "ssd"}}
    cluster = a_cluster(
        a_node("a", topology_zone="a", labels={"disk": "ssd"}),
        a_node("b", topology_zone="b", labels={"disk": "ssd"}),
        a_node("c", topology_zone="c"),
        *(web(f"w{i}", node) for i, node in enumerate(["a", "b"])),
    )
    assert {"a", "b"} <= asked(cluster, newcomer(spread(), **chosen), RULE).nodes
    ignoring = newcomer(spread(nodeAffinityPolicy="Ignore"), **chosen)
    assert asked(cluster, ignoring, RULE).nodes == {"c"}


def test_tainted_nodes_are_domains_unless_told_to_honour_taints():
    cluster = zones(web("w1", "b"), web("w2", "c"), taints=["x=:NoSchedule"])
    assert asked(cluster, newcomer(spread()), RULE).nodes == {"a"}
    assert {"b", "c"} <= asked(cluster, newcomer(spread(nodeTaintsPolicy="Honor")), RULE).nodes


def test_each_of_two_rules_must_hold():
    cluster = a_cluster(
        a_node("a1", topology_zone="a"),
        a_node("a2", topology_zone="a"),
        a_node("b1", topology_zone="b"),
        a_node("b2", topology_zone="b"),
        web("w", "a1"),
    )
    assert asked(cluster, newcomer(spread(), spread(HOSTNAME)), RULE).nodes == {"b1", "b2"}


def test_placing_keeps_domains_within_the_skew():
    cluster = a_cluster(*(a_node(f"n{i}", topology_zone="abc"[i % 3]) for i in range(9)))
    question = asked(cluster, newcomer(spread()))
    with evaluator_of(cluster).trial() as trial:
        slots = trial.place_many(question.shape, 12)
        counts = [sum(cluster.names[slot] in names for slot in slots) for names in _by_zone(cluster)]
    assert counts == [4, 4, 4]


def test_soft_rules_like_the_emptier_domain():
    question = asked(
        zones(web("w1", "a"), web("w2", "a"), web("w3", "b")), newcomer(spread(when="ScheduleAnyway")), RULE
    )
    weight = log(3 + 2)
    raw = {"a": floor(2 * weight + 0.5), "b": floor(weight + 0.5), "c": 0}
    assert question.scores() == {name: 100 * (max(raw.values()) - count) // raw["a"] for name, count in raw.items()}


def test_soft_rules_give_nothing_to_nodes_without_the_label():
    question = asked(zones(a_node("none"), web("w1", "a")), newcomer(spread(when="ScheduleAnyway")), RULE)
    assert question.scores()["none"] == 0
    assert question.scores("none") == {"none": 0}


def test_soft_rules_without_any_pod_like_all_alike():
    assert asked(zones(), newcomer(spread(when="ScheduleAnyway")), RULE).scores() == {"a": 100, "b": 100, "c": 100}


def test_pods_of_a_service_are_spread_by_default():
    cluster = zones(a_service(app="web"), web("w1", "a"))
    scores = asked(cluster, web("new"), RULE).scores()
    # On a: log(5) for the host, log(5) for the zone, 2 + 4 for the skews allowed; elsewhere only the 6.
    most = floor(2 * log(5) + 6 + 0.5)
    assert scores == {"a": 100 * 6 // most, "b": 100, "c": 100}


def test_default_spreading_counts_a_missing_zone_as_nothing():
    cluster = zones(a_service(app="web"), a_node("none"), web("w1", "none"))
    scores = asked(cluster, web("new"), RULE).scores()
    # On none: log(6) for the host and the 2 of its skew; elsewhere the 6 of both skews.
    lowest, highest = floor(log(6) + 2 + 0.5), 6
    assert scores["none"] == 100 * (highest + lowest - lowest) // highest
    assert scores["a"] == 100 * lowest // highest


@pytest.mark.parametrize("kind", [types.ReplicaSet, types.StatefulSet])
def test_pods_of_a_controller_are_spread_by_default(kind):
    body = {"metadata": {"name": "owner", "namespace": "ns"}, "spec": {"selector": {"matchLabels": WEB}}}
    cluster = zones(of(kind, body), web("w1", "a"))
    assert asked(cluster, web("new", owner=f"{kind.__name__}/owner"), RULE).scores()["a"] < 100
    assert asked(cluster, web("new", owner=f"{kind.__name__}/stranger"), RULE).scores() == {"a": 0, "b": 0, "c": 0}


def test_pods_of_a_replication_controller_are_spread_until_it_is_gone():
    body = {"metadata": {"name": "owner", "namespace": "ns"}, "spec": {"selector": WEB}}
    cluster = zones(of(types.ReplicationController, body), web("w1", "a"))
    question = asked(cluster, web("new", owner="ReplicationController/owner"), RULE)
    assert question.scores()["a"] < 100
    assert cluster.remove("ReplicationController", "ns", "owner")
    assert question.scores()["a"] == 0


def test_a_service_that_changes_its_selector_lets_go_of_the_pod():
    cluster = zones(a_service(app="web"), web("w1", "a"))
    question = asked(cluster, web("new"), RULE)
    assert question.scores()["b"] == 100
    assert not cluster.change("Service", a_service(app="web"))
    assert cluster.change("Service", a_service(app="other"))
    assert question.scores()["b"] == 0
    assert cluster.remove("Service", "ns", "svc")
    assert not cluster.remove("Service", "ns", "svc")


def test_a_service_without_a_selector_selects_nothing():
    body = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {}}
    cluster = zones(of(types.Service, body), web("w1", "a"))
    assert asked(cluster, web("new"), RULE).scores()["b"] == 0


def test_defaults_from_the_profile_replace_the_systems_own():
    hard = {"maxSkew": 1, "topologyKey": TOPOLOGY_ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    plugin = PodTopologySpread({"defaultingType": "List", "defaultConstraints": [hard]})
    cluster = zones(a_service(app="web"), web("w1", "a"))
    assert asked(cluster, web("new"), plugin).nodes == {"b", "c"}
    assert asked(cluster, a_pod("loner"), plugin).nodes == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("args", "fault"),
    [({"defaultingType": "Odd"}, "known are System, List"), ({"defaultConstraints": [{}]}, "need defaultingType List")],
)
def test_arguments_that_make_no_sense_are_refused(args, fault):
    with pytest.raises(ValueError, match=fault):
        PodTopologySpread(args)
