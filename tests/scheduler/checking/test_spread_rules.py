"""Hard spreading, counted with columns: the same answer as counting objects one by one."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.selectors import matches
from muster.api.types import Node, Pod
from muster.scheduler.cache.cluster import Cluster
from muster.scheduler.checking.spread_rules import spread_fault, spread_terms
from tests.build.cluster import a_cluster
from tests.build.examples import examples
from tests.build.objects import RACK, ZONE, a_node, a_pod


def a_case(rng: random.Random) -> tuple[Cluster, frozenset[str], list[tuple[Pod, Node]]]:
    nodes: list[Node] = []
    for number in range(rng.randint(1, 6)):
        labels = {key: f"v{rng.randint(0, 2)}" for key in (RACK, ZONE) if rng.random() < 0.8}
        taints = ["busy=yes:NoSchedule"] if rng.random() < 0.2 else []
        nodes.append(a_node(f"n{number}", labels={**labels, "disk": rng.choice(("ssd", "hdd"))}, taints=taints))
    running = [
        a_pod(
            f"p{number}",
            node=rng.choice(nodes).metadata.name,
            namespace=rng.choice(("ns", "ns", "other")),
            labels={"app": rng.choice("ab"), "version": rng.choice("12")},
            deleting=rng.random() < 0.2,
        )
        for number in range(rng.randint(0, 8))
    ]
    rules: list[dict[str, Any]] = []
    for key in rng.sample((RACK, ZONE), rng.randint(1, 2)):
        rule: dict[str, Any] = {"maxSkew": rng.randint(1, 2), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
        rule |= {"labelSelector": {"matchLabels": {"app": "a"}}, "nodeTaintsPolicy": rng.choice(("Honor", "Ignore"))}
        rule |= {"minDomains": rng.randint(1, 4)} if rng.random() < 0.3 else {}
        rule |= {"matchLabelKeys": ["version"]} if rng.random() < 0.3 else {}
        rules.append(rule)
    more: dict[str, Any] = {"nodeSelector": {"disk": "ssd"}} if rng.random() < 0.3 else {}
    pod = a_pod("new", labels={"app": "a", "version": "1"}, topologySpreadConstraints=rules, **more)
    placed = [(pod, rng.choice(nodes)) for _ in range(rng.randint(1, 4))]
    evicted = frozenset(each.metadata.uid for each in running if rng.random() < 0.2)
    return a_cluster(*nodes, *running), evicted, placed


def is_even(cluster: Cluster, evicted: frozenset[str], placed: list[tuple[Pod, Node]]) -> bool:
    """The rule in its plainest form, at the moment each pod is placed."""
    before = [(e.pod, cluster.node_objects[e.node]) for uid, e in cluster.pods.items() if uid not in evicted]
    before = [(pod, node) for pod, node in before if pod.metadata.deletion_timestamp is None]
    for at, (pod, node) in enumerate(placed):
        rules = spread_terms(pod)
        for rule in rules:
            if rule.topology_key not in node.metadata.labels:
                return False
            eligible = [
                each
                for each in cluster.node_objects.values()
                if all(other.topology_key in each.metadata.labels for other in rules)
                and not (rule.node_taints_policy == "Honor" and each.spec.taints)
                and all(each.metadata.labels.get(key) == value for key, value in (pod.spec.node_selector or {}).items())
            ]
            counts = {each.metadata.labels[rule.topology_key]: 0 for each in eligible}
            for other, where in [*before, *placed[:at]]:
                same = all(
                    other.metadata.labels[key] == pod.metadata.labels[key] for key in rule.match_label_keys or ()
                )
                if where in eligible and same and other.metadata.namespace == "ns":
                    counts[where.metadata.labels[rule.topology_key]] += matches(
                        rule.label_selector, other.metadata.labels
                    )
            least = min(counts.values(), default=0) if len(counts) >= (rule.min_domains or 1) else 0
            itself = matches(rule.label_selector, pod.metadata.labels)
            if counts.get(node.metadata.labels[rule.topology_key], 0) + itself - least > rule.max_skew:
                return False
    return True


@settings(max_examples=examples(400), deadline=None)
@given(st.integers(0, 2**32))
def test_the_fault_is_that_of_counting_one_by_one(seed: int):
    cluster, evicted, placed = a_case(random.Random(seed))
    assert (spread_fault(cluster, evicted, placed) is None) == is_even(cluster, evicted, placed)


def test_a_pod_that_comes_later_does_not_break_the_rule_of_one_before():
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    rule = spread | {"labelSelector": {"matchLabels": {"app": "a"}}}
    first = a_pod("first", labels={"app": "a"}, topologySpreadConstraints=[rule])
    later = a_pod("later", labels={"app": "a"})
    node, other = a_node("n0", labels={ZONE: "v0"}), a_node("n1", labels={ZONE: "v1"})
    cluster = a_cluster(node, other)
    assert spread_fault(cluster, frozenset(), [(first, node), (later, node)]) is None
    assert spread_fault(cluster, frozenset(), [(later, node), (first, node)]) is not None
