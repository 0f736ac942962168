"""Pod counts by node and by label value."""

from __future__ import annotations

import gc

import numpy as np

from muster.api import types
from muster.scheduler.cache.footprints import HostPort
from muster.scheduler.cache.node_columns import NodeColumns
from muster.scheduler.cache.pod_counts import PodCounts
from muster.scheduler.cache.pod_terms import PodTerm, requirements_of
from tests.build.cluster import a_cluster, asked, evaluator_of
from tests.build.objects import a_node, a_pod, apart_from_label, of

TEAM = requirements_of(of(types.LabelSelector, {"matchLabels": {"team": "a"}}))


def counts_of(*nodes) -> PodCounts:
    columns = NodeColumns()
    for node in nodes:
        columns.set_node(node)
    counts = PodCounts(columns)
    counts.add_label_keys(["app"])
    return counts


def three_racks() -> PodCounts:
    return counts_of(*(a_node(f"n{i}", labels={"rack": rack}) for i, rack in enumerate("aab")), a_node("n3"))


def web(namespace: str = "ns", namespace_requirements=None) -> tuple[PodTerm, ...]:
    required = requirements_of(of(types.LabelSelector, {"matchLabels": {"app": "web"}}))
    return (PodTerm(frozenset((namespace,)), namespace_requirements, required),)


def test_a_tally_nobody_reads_is_left_out_of_its_classes():
    cluster = a_cluster(a_node("n0"), a_pod("seen", node="n0", labels={"x": "1"}))
    question = asked(cluster, a_pod(affinity=apart_from_label("x")))
    assert question.nodes == set()
    seen = cluster.pods["pod-seen"].footprint.label_class
    assert len(seen.counts) == 1
    evaluator_of(cluster)._feasibility.clear()
    del question
    gc.collect()
    cluster.change("Pod", a_pod("again", node="n0", labels={"x": "1"}))
    assert seen.counts == []


def test_pods_with_equal_values_of_all_selected_keys_are_one_class():
    counts = counts_of()
    assert counts.class_of("ns", {"app": "web", "index": "1"}) is counts.class_of("ns", {"app": "web", "index": "2"})
    assert counts.class_of("ns", {"app": "web"}) is not counts.class_of("ns", {"app": "db"})
    assert counts.class_of("ns", {"app": "web"}) is not counts.class_of("other", {"app": "web"})
    counts.add_label_keys(["index"])
    assert counts.class_of("ns", {"index": "1"}) is not counts.class_of("ns", {"index": "2"})


def test_a_count_has_the_pods_from_before_and_those_that_come_later():
    counts = three_racks()
    label_class = counts.class_of("ns", {"app": "web"})
    label_class.add(0, 2, False)

    matching = counts.matching(web())
    later = counts.class_of("ns", {"app": "web", "other": "label"})
    later.add(1, 1, False)
    counts.class_of("ns", {"app": "db"}).add(1, 5, False)

    assert matching.column[:4].tolist() == [2, 1, 0, 0]
    assert matching.total == 3
    label_class.add(0, -2, False)
    assert (matching.column[0], matching.total) == (0, 1)


def test_terminating_pods_are_skipped_only_where_that_is_asked_for():
    counts = three_racks()
    label_class = counts.class_of("ns", {"app": "web"})
    label_class.add(0, 1, True)
    label_class.add(0, 1, False)
    every, active = counts.matching(web()), counts.matching(web(), skip_terminating=True)
    assert (every.total, active.total) == (2, 1)
    label_class.add(1, 1, True)
    assert (every.total, active.total) == (3, 1)
    label_class.add(0, -1, True)
    assert (every.total, active.total) == (2, 1)


def test_sums_by_label_follow_every_pod_and_leave_out_nodes_without_the_label():
    counts = three_racks()
    label_class = counts.class_of("ns", {"app": "web"})
    matching = counts.matching(web())
    assert matching.by_label("rack").tolist() == [0, 0, 0]
    for slot in range(4):
        label_class.add(slot, 1, False)
    assert matching.by_label("rack").tolist() == [0, 2, 1]
    label_class.add(1, -1, False)
    assert matching.by_label("rack").tolist() == [0, 1, 1]


def test_sums_of_pods_that_are_there_already_leave_out_nodes_without_the_label():
    counts = three_racks()
    label_class = counts.class_of("ns", {"app": "web"})
    for slot in range(4):
        label_class.add(slot, 1, False)
    assert counts.matching(web()).by_label("rack").tolist() == [0, 2, 1]


def test_sums_over_a_subset_of_nodes_count_only_its_pods():
    counts = three_racks()
    label_class = counts.class_of("ns", {"app": "web"})
    matching = counts.matching(web())
    some = counts.node_subset(np.array([True, False, True, True]))
    assert counts.node_subset(np.array([True, False, True, True])) is some
    assert matching.by_label("rack", some).tolist() == [0, 0, 0]
    for slot in range(4):
        label_class.add(slot, 1, False)
    assert matching.by_label("rack", some).tolist() == [0, 1, 1]


def test_sums_are_computed_again_when_nodes_change():
    counts = three_racks()
    label_class = counts.class_of("ns", {"app": "web"})
    matching = counts.matching(web())
    label_class.add(0, 1, False)
    assert matching.by_label("rack").tolist() == [0, 1, 0]
    counts._columns.set_node(a_node("n0", labels={"rack": "b"}))
    label_class.add(0, 1, False)
    assert matching.by_label("rack").tolist() == [0, 0, 2]


def test_all_terms_must_select_a_pod():
    counts = three_racks()
    both = (*web(), PodTerm(frozenset(("ns", "other")), None, ()))
    matching = counts.matching(both)
    counts.class_of("ns", {"app": "web"}).add(0, 1, False)
    counts.class_of("other", {"app": "web"}).add(0, 1, False)
    assert matching.total == 1
    assert counts.selects_all(both, counts.class_of("ns", {"app": "web"}))
    assert not counts.selects_all(both, counts.class_of("other", {"app": "web"}))


def test_a_namespace_selector_selects_again_when_labels_of_a_namespace_change():
    counts = three_racks()
    label_class = counts.class_of("other", {"app": "web"})
    label_class.add(2, 1, False)
    matching = counts.matching(web(namespace_requirements=TEAM))
    assert matching.total == 0
    version = counts.version

    assert counts.set_namespace("other", {"team": "a"})
    assert not counts.set_namespace("other", {"team": "a"})
    assert (matching.total, matching.column[2]) == (1, 1)
    label_class.add(2, 1, False)
    assert matching.total == 2
    assert counts.set_namespace("other", None)

    assert matching.total == 0
    label_class.add(2, 1, False)
    assert matching.total == 0
    assert counts.version == version + 2


def test_what_pods_carry_is_counted_under_its_value():
    counts = three_racks()
    version = counts.version
    port = counts.carrying(HostPort("0.0.0.0", "TCP", 80))
    assert counts.carrying(HostPort("0.0.0.0", "TCP", 80)) is port
    assert counts.version == version + 1
    assert list(counts.carried()) == [(HostPort("0.0.0.0", "TCP", 80), port)]


def test_counts_grow_with_the_columns():
    counts = three_racks()
    matching, port = counts.matching(web()), counts.carrying("port")
    counts.class_of("ns", {"app": "web"}).add(0, 1, False)
    counts.grow(128)
    assert (len(matching.column), len(port.column)) == (128, 128)
    assert matching.column[0] == 1
    later = counts.matching(())
    assert len(later.column) == 128
