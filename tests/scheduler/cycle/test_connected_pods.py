"""Terms connect a shape with the pods that can end its rejection: those it selects, and those that keep it away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muster.api import types
from muster.scheduler.cycle.connected_pods import has_terms, is_connected
from muster.scheduler.framework.shape import Shape
from muster.scheduler.plugins.pod_topology_spread import PodTopologySpread
from muster.scheduler.runtime.profile import Profile, default_profile
from tests.build.cluster import a_cluster, evaluator_of
from tests.build.objects import HOSTNAME, TOPOLOGY_ZONE, a_node, a_pod, apart, near

WEB, DB = {"app": "web"}, {"app": "db"}


def preferred(affinity: dict[str, Any]) -> dict[str, Any]:
    """The same terms, as a preference."""
    ((side, rules),) = affinity.items()
    (terms,) = rules.values()
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    return {side: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}


def spread(when: str, **labels: str) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": when}
    return {"topologySpreadConstraints": [constraint | {"labelSelector": {"matchLabels": labels}}]}


def by_default(when: str) -> Profile:
    """A profile whose pods are spread by Services."""
    constraint = {"maxSkew": 1, "topologyKey": TOPOLOGY_ZONE, "whenUnsatisfiable": when}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    return Profile("test", (PodTopologySpread(args),), weights={})


def shape_of(pod: types.Pod, profile: Profile | None = None) -> Shape:
    return evaluator_of(a_cluster(a_node())).shape(pod, profile or default_profile())


def connected(waiting: types.Pod, other: types.Pod, profile: Profile | None = None) -> bool:
    """Whether the other pod, on a node, can matter to the waiting one."""
    cluster = a_cluster(a_node())
    evaluator = evaluator_of(cluster)
    for pod in (waiting, other):  # whatever labels they select are told apart from now on
        evaluator.shape(pod, default_profile())
    cluster.change("Pod", other)
    shape = evaluator.shape(waiting, profile or default_profile())
    return is_connected(shape, cluster.pods[other.metadata.uid].footprint, cluster)


# --- whether a shape has terms ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"affinity": near(HOSTNAME, app="db")},
        {"affinity": apart(HOSTNAME, app="db")},
        spread("DoNotSchedule", app="web"),
    ],
    ids=["affinity", "anti-affinity", "spreading"],
)
def test_required_rules_about_pods_are_terms(fields: dict[str, Any]):
    assert has_terms(shape_of(a_pod("p", labels=WEB, **fields)))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"nodeSelector": {"disk": "ssd"}},
        {"affinity": preferred(near(HOSTNAME, app="db"))},
        {"affinity": preferred(apart(HOSTNAME, app="db"))},
        spread("ScheduleAnyway", app="web"),
    ],
    ids=["nothing", "a rule about nodes", "preferred affinity", "preferred anti-affinity", "soft spreading"],
)
def test_what_rejects_no_node_because_of_pods_is_no_term(fields: dict[str, Any]):
    assert not has_terms(shape_of(a_pod("p", labels=WEB, **fields)))


@pytest.mark.parametrize(("when", "found"), [("DoNotSchedule", True), ("ScheduleAnyway", False)])
def test_a_default_constraint_of_the_profile_is_a_term_if_it_rejects(when: str, found: bool):
    assert has_terms(shape_of(a_pod("p", labels=WEB), by_default(when))) is found


def test_a_default_constraint_does_not_count_for_a_pod_with_constraints_of_its_own():
    pod = a_pod("p", labels=WEB, **spread("ScheduleAnyway", app="web"))
    assert not has_terms(shape_of(pod, by_default("DoNotSchedule")))


# --- which pods its own terms select ---------------------------------------------------------------


@pytest.mark.parametrize("rule", [near, apart])
def test_the_pods_that_required_terms_select_are_connected_and_others_are_not(rule: Callable[..., dict[str, Any]]):
    waiting = a_pod("p", labels=WEB, affinity=rule(HOSTNAME, app="db"))
    assert connected(waiting, a_pod("q", node="n0", labels=DB))
    assert not connected(waiting, a_pod("q", node="n0", labels={"app": "cache"}))


def test_the_pods_that_a_hard_constraint_counts_are_connected_and_others_are_not():
    waiting = a_pod("p", labels=WEB, **spread("DoNotSchedule", app="web"))
    assert connected(waiting, a_pod("q", node="n0", labels=WEB))
    assert not connected(waiting, a_pod("q", node="n0", labels=DB))


def test_every_term_counts_not_the_first_alone():
    affinity = near(HOSTNAME, app="cache") | apart(HOSTNAME, app="db")
    assert connected(a_pod("p", labels=WEB, affinity=affinity), a_pod("q", node="n0", labels=DB))


def test_pods_of_a_namespace_that_the_term_does_not_name_are_not_connected():
    waiting = a_pod("p", labels=WEB, affinity=apart(HOSTNAME, app="db"))
    assert not connected(waiting, a_pod("q", node="n0", labels=DB, namespace="elsewhere"))


def test_the_pods_that_preferred_terms_select_are_not_connected():
    waiting = a_pod("p", labels=WEB, affinity=preferred(apart(HOSTNAME, app="db")))
    assert not connected(waiting, a_pod("q", node="n0", labels=DB))


def test_with_a_default_constraint_every_pod_may_be_counted():
    assert connected(a_pod("p", labels=WEB), a_pod("q", node="n0", labels=DB), by_default("DoNotSchedule"))
    assert not connected(a_pod("p", labels=WEB), a_pod("q", node="n0", labels=DB), by_default("ScheduleAnyway"))


# --- whose terms select the shape ------------------------------------------------------------------


def test_a_pod_that_keeps_the_shape_away_is_connected():
    assert connected(a_pod("p", labels=WEB), a_pod("q", node="n0", affinity=apart(HOSTNAME, app="web")))


@pytest.mark.parametrize(
    "affinity",
    [apart(HOSTNAME, app="db"), near(HOSTNAME, app="web"), preferred(apart(HOSTNAME, app="web"))],
    ids=["keeps others away", "wants it near", "would rather be apart"],
)
def test_a_pod_that_does_not_keep_the_shape_away_is_not_connected(affinity: dict[str, Any]):
    assert not connected(a_pod("p", labels=WEB), a_pod("q", node="n0", affinity=affinity))
