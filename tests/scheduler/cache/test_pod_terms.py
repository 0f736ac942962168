"""Pod terms: which pods a selector selects, and when two terms are equal."""

from __future__ import annotations

import pytest

from muster.api import types
from muster.scheduler.cache.pod_terms import PodTerm, affinity_term, normalized, requirements_of, spread_term
from tests.build.objects import a_pod, of


def selector(**labels):
    return of(types.LabelSelector, {"matchLabels": labels})


def a_term(**body):
    return of(types.PodAffinityTerm, {"topologyKey": "zone"} | body)


def test_selectors_that_mean_the_same_are_equal():
    first = of(types.LabelSelector, {"matchLabels": {"a": "1", "b": "2"}})
    expressions = [
        {"key": "b", "operator": "In", "values": ["2", "2"]},
        {"key": "a", "operator": "In", "values": ["1"]},
    ]
    second = of(types.LabelSelector, {"matchExpressions": expressions})
    assert requirements_of(first) == requirements_of(second)
    assert normalized(requirements_of(first) * 2) == requirements_of(first)


def test_no_selector_selects_nothing_and_an_empty_one_everything():
    assert requirements_of(None) is None
    assert requirements_of(selector()) == ()
    nothing, everything = (PodTerm(frozenset({"ns"}), None, found) for found in (None, ()))
    assert not nothing.selects("ns", {}, None)
    assert everything.selects("ns", {"any": "label"}, None)


def test_a_selector_with_an_unknown_operator_selects_nothing():
    odd = of(types.LabelSelector, {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["1"]}]})
    assert requirements_of(odd) is None


@pytest.mark.parametrize(
    ("namespace", "namespace_labels", "selected"),
    [
        ("listed", None, True),
        ("other", {"team": "a"}, True),
        ("other", {"team": "b"}, False),
        ("other", None, False),
    ],
)
def test_a_namespace_is_listed_or_matches_the_namespace_selector(namespace, namespace_labels, selected):
    body = {"namespaces": ["listed"], "namespaceSelector": {"matchLabels": {"team": "a"}}, "labelSelector": {}}
    term = affinity_term(a_term(**body), a_pod())
    assert term.selects(namespace, {}, namespace_labels) == selected


def test_a_term_without_namespaces_selects_in_the_pods_own():
    term = affinity_term(a_term(labelSelector={}), a_pod(namespace="here"))
    assert term.selects("here", {}, None)
    assert not term.selects("there", {}, None)


def test_an_empty_namespace_selector_selects_in_every_namespace():
    term = affinity_term(a_term(labelSelector={}, namespaceSelector={}), a_pod(namespace="here"))
    assert term.selects("there", {}, {})


def test_with_a_namespace_selector_the_pods_own_namespace_is_not_added():
    selector = {"matchLabels": {"team": "a"}}
    term = affinity_term(a_term(labelSelector={}, namespaceSelector=selector), a_pod(namespace="here"))
    assert term.selects("here", {}, {"team": "a"})
    assert not term.selects("here", {}, {"team": "b"})


def test_match_and_mismatch_label_keys_are_resolved_with_the_labels_of_the_pod():
    pod = a_pod(labels={"app": "web", "version": "2"})
    body = {"labelSelector": {}, "matchLabelKeys": ["app", "absent"], "mismatchLabelKeys": ["version"]}
    term = affinity_term(a_term(**body), pod)
    assert sorted(term.keys()) == ["app", "version"]
    assert term.selects("ns", {"app": "web", "version": "1"}, None)
    assert not term.selects("ns", {"app": "web", "version": "2"}, None)
    assert not term.selects("ns", {"app": "db", "version": "1"}, None)


def test_label_keys_of_a_term_without_selector_select_nothing():
    term = affinity_term(a_term(matchLabelKeys=["app"]), a_pod(labels={"app": "web"}))
    assert not term.selects("ns", {"app": "web"}, None)
    assert list(term.keys()) == []


def test_a_spread_constraint_counts_pods_of_its_own_namespace_and_revision():
    body = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    constraint = of(types.TopologySpreadConstraint, body | {"matchLabelKeys": ["hash", "absent"]})
    term = spread_term(constraint, a_pod(labels={"app": "web", "hash": "x"}))
    assert term.selects("ns", {"app": "web", "hash": "x"}, None)
    assert not term.selects("ns", {"app": "web", "hash": "y"}, None)
    assert not term.selects("other", {"app": "web", "hash": "x"}, None)
