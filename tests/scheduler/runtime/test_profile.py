"""Profiles: which plugins filter and score, in which order, with which weights."""

from __future__ import annotations

import pytest

from muster.scheduler.framework.plugin import Plugin
from muster.scheduler.framework.shape import Shape
from muster.scheduler.plugins import DEFAULT
from muster.scheduler.plugins.node_name import NodeName
from muster.scheduler.plugins.node_resources_fit import NodeResourcesFit
from muster.scheduler.plugins.taint_toleration import TaintToleration
from muster.scheduler.runtime.evaluator import Evaluator
from muster.scheduler.runtime.profile import BUILT_IN, Profile, default_profile, profile_of
from tests.build.cluster import a_cluster
from tests.build.objects import a_pod

PLUGINS = [NodeName(), TaintToleration(), NodeResourcesFit()]


def names(plugins) -> list[str]:
    return [plugin.name for plugin in plugins]


def test_by_default_all_plugins_filter_and_those_that_score_have_their_own_weight():
    profile = Profile("test", PLUGINS)
    assert names(profile.filters) == ["NodeName", "TaintToleration", "NodeResourcesFit"]
    assert [(plugin.name, weight) for plugin, weight in profile.scorers] == [
        ("TaintToleration", 3),
        ("NodeResourcesFit", 1),
    ]
    assert profile.enabled == {*BUILT_IN, *names(PLUGINS)}


def test_filters_and_weights_can_be_chosen_by_name():
    weights = {"NodeResourcesFit": 7, "NodeName": 4, "TaintToleration": 0}
    profile = Profile("test", PLUGINS, filters=frozenset({"NodeResourcesFit"}), weights=weights, built_in=frozenset())
    assert names(profile.filters) == ["NodeResourcesFit"]
    assert [(plugin.name, weight) for plugin, weight in profile.scorers] == [("NodeResourcesFit", 7)]
    assert profile.enabled == {"NodeName", "TaintToleration", "NodeResourcesFit"}
    assert profile.plugin("NodeName") is PLUGINS[0]
    assert profile.plugin("ImageLocality") is None


def test_weights_that_would_not_fit_a_key_are_refused():
    limit = ((1 << 22) - 1) // 100
    Profile("test", PLUGINS, weights={"NodeResourcesFit": limit})
    with pytest.raises(ValueError, match="the weights of profile test add up to more than"):
        Profile("test", PLUGINS, weights={"NodeResourcesFit": limit, "TaintToleration": 1})


def test_a_resource_is_ignored_if_no_filter_compares_it():
    fit = NodeResourcesFit({"ignoredResources": ["example.com/gpu"], "ignoredResourceGroups": ["example.org"]})
    profile = Profile("test", [fit])
    ignored = [r for r in ("cpu", "example.com/gpu", "example.org/any", "pods") if profile.ignores(r)]
    assert ignored == ["example.com/gpu", "example.org/any"]
    assert not profile.counts_all_resources
    without = Profile("test", [NodeName()])
    assert without.ignores("cpu")
    assert not without.ignores("pods")
    assert Profile("test", PLUGINS).counts_all_resources


def test_the_pod_labels_of_all_plugins_are_those_of_the_profile():
    class Labelled(Plugin):
        name = "Labelled"
        pod_labels = frozenset({"quiet"})

    assert Profile("test", [*PLUGINS, Labelled()]).pod_labels == {"quiet"}


def test_the_default_profile_has_all_default_plugins_in_order():
    assert names(default_profile("mine").plugins) == [kind.name for kind in DEFAULT]
    assert default_profile("mine").scheduler_name == "mine"


def test_a_shape_knows_its_profile():
    cluster, profile = a_cluster(), default_profile()
    shape = Evaluator(cluster).shape(a_pod(), profile)
    assert profile_of(shape) is profile
    foreign = Shape(1, shape.pod, object(), shape.footprint)
    with pytest.raises(AssertionError):
        profile_of(foreign)
