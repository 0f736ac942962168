"""Selectors of Services and controllers for default spreading."""

from __future__ import annotations

from muster.api import types
from muster.scheduler.cache.owner_selectors import OwnerSelectors
from tests.build.objects import a_pod, a_service, of

LABELS = {"app": "web", "tier": "front"}


def a_replica_set(name: str = "rs", **labels: str):
    spec = {"selector": {"matchLabels": labels}}
    return of(types.ReplicaSet, {"metadata": {"name": name, "namespace": "ns"}, "spec": spec})


def selectors(*objects) -> OwnerSelectors:
    found = OwnerSelectors()
    for obj in objects:
        found.set(type(obj).__name__, obj)
    return found


def test_setting_an_object_returns_the_keys_of_its_selector_once():
    found = OwnerSelectors()
    assert found.set("Service", a_service(app="web", tier="front")) == {"app", "tier"}
    assert found.set("Service", a_service(app="web", tier="front")) is None
    assert found.set("Service", a_service(app="db")) == {"app"}
    assert found.set("ReplicaSet", a_replica_set(app="web")) == {"app"}
    assert found.set("ReplicaSet", a_replica_set(app="web")) is None


def test_removing_says_whether_the_object_was_known():
    found = selectors(a_service(app="web"), a_replica_set(app="web"))
    assert found.remove("Service", "ns", "svc")
    assert not found.remove("Service", "ns", "svc")
    assert found.remove("ReplicaSet", "ns", "rs")
    assert not found.remove("ReplicaSet", "ns", "rs")
    assert found.default_selector(a_pod(owner="ReplicaSet/rs"), LABELS) is None


def test_the_default_selector_joins_the_services_and_the_controller_of_the_pod():
    found = selectors(
        a_service("matches", app="web"),
        a_service("other", app="db"),
        a_service("elsewhere", "other", app="web"),
        a_replica_set(tier="front"),
    )
    term = found.default_selector(a_pod(owner="ReplicaSet/rs"), LABELS)
    assert term is not None
    assert sorted(term.keys()) == ["app", "tier"]
    assert term.selects("ns", LABELS, None)
    assert not term.selects("other", LABELS, None)
    assert not term.selects("ns", {"app": "web"}, None)


def test_a_pod_without_services_and_controller_has_no_default_selector():
    found = selectors(a_service(app="db"), a_replica_set(app="web"))
    assert found.default_selector(a_pod(), LABELS) is None
    assert found.default_selector(a_pod(owner="ReplicaSet/unknown"), LABELS) is None
    assert found.default_selector(a_pod(owner="Job/rs"), LABELS) is None


def test_a_service_without_selector_selects_no_pods():
    found = selectors(a_service())
    assert found.default_selector(a_pod(), LABELS) is None
