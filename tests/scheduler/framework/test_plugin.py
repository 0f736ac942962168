"""What the base class of plugins does by default."""

from __future__ import annotations

import numpy as np
import pytest

from muster.scheduler.framework.plugin import DependsOn, Plugin, normalized_scores
from muster.scheduler.interface import cluster_events
from muster.scheduler.plugins import DEFAULT
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.profile import default_profile
from tests.build.cluster import a_cluster
from tests.build.objects import a_node, a_pod


class Odd(Plugin):
    """Fits and scores nodes by their slot."""

    name = "Odd"
    message = "even"
    unresolvable = True
    filter_depends_on = score_depends_on = DependsOn.NODE
    requeue_on = frozenset((cluster_events.NODE_LABELS, cluster_events.STORAGE))

    def filter(self, shape, cluster, slots):
        return np.arange(cluster.size)[slots] % 2 == 1

    def score(self, shape, cluster, slots):
        return np.arange(cluster.size)[slots] * 10


def test_one_slot_is_filtered_and_scored_as_all_are():
    cluster = a_cluster(*(a_node(f"n{i}") for i in range(3)))
    shape = Evaluator(cluster).shape(a_pod(), default_profile())
    assert [Odd().filter_one(shape, cluster, slot) for slot in range(3)] == [False, True, False]
    assert [Odd().score_one(shape, cluster, slot) for slot in range(3)] == [0, 10, 20]


def test_the_default_status_is_the_message_of_the_plugin_for_all_slots():
    cluster = a_cluster(a_node())
    shape = Evaluator(cluster).shape(a_pod(), default_profile())
    (status,) = Odd().statuses(shape, cluster, np.array([0, 2]))
    assert (status.message, status.unresolvable, status.rejected_by) == ("even", True, "Odd")
    assert status.slots.tolist() == [0, 2]


def test_events_of_the_node_itself_requeue_nothing_beyond_that_node():
    assert Odd().gains == {cluster_events.STORAGE}

    class OnPods(Odd):
        filter_depends_on = DependsOn.PODS

    assert OnPods().gains == Odd.requeue_on


@pytest.mark.parametrize(
    ("filters", "scores", "overrides", "expected"),
    [
        (DependsOn.NODE, DependsOn.NODE, (), True),
        (DependsOn.USAGE, None, (), False),
        (DependsOn.USAGE, None, ("capacity",), True),
        (None, DependsOn.USAGE, (), False),
        (None, DependsOn.USAGE, ("score_after",), True),
        (DependsOn.USAGE, DependsOn.USAGE, ("capacity",), False),
    ],
)
def test_a_plugin_on_usage_can_predict_only_with_capacity_and_score_after(filters, scores, overrides, expected):
    body = {"filter_depends_on": filters, "score_depends_on": scores}
    kind = type("Some", (Plugin,), body | {name: lambda self, *args: None for name in overrides})
    assert kind().can_predict == expected


def test_a_plugin_without_filter_or_score_applies_to_no_shape():
    cluster = a_cluster(a_node())
    shape = Evaluator(cluster).shape(a_pod(), default_profile())
    assert not Plugin().filter_applies(shape, cluster)
    assert not Plugin().score_applies(shape, cluster)
    assert Odd().filter_applies(shape, cluster)
    assert Odd().score_applies(shape, cluster)


def test_the_largest_raw_number_becomes_100_or_with_reverse_0():
    raw = np.array([0, 1, 4])
    assert normalized_scores(raw, 4, reverse=False).tolist() == [0, 25, 100]
    assert normalized_scores(raw, 4, reverse=True).tolist() == [100, 75, 0]
    assert normalized_scores(np.array([0, 0]), 0, reverse=False).tolist() == [0, 0]
    assert normalized_scores(np.array([0, 0]), 0, reverse=True).tolist() == [100, 100]


def test_every_default_plugin_has_its_own_name_and_declares_what_it_depends_on():
    assert len({kind.name for kind in DEFAULT}) == len(DEFAULT)
    for kind in DEFAULT:
        assert kind.filter_depends_on or kind.score_depends_on, kind.name
        assert not kind.score_depends_on or kind.weight > 0, kind.name
