"""Objects that nothing acts on come with a warning; the list names kinds that exist."""

from __future__ import annotations

from tests.server.core.core_api import Api

from muster.server.admission.stored_only import STORED_ONLY
from muster.server.served_kinds import build_registry


async def test_a_policy_that_nobody_enforces_comes_with_a_warning():
    api = await Api().start()
    path = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
    made = await api.post(path, {"metadata": {"name": "n"}, "spec": {"podSelector": {}}})
    assert made.code == 201
    assert list(made.warnings) == ["NetworkPolicy is stored, and nothing acts on it: simulated nodes carry no traffic"]
    changed = await api.merge(f"{path}/n", {"metadata": {"labels": {"a": "b"}}})
    assert list(changed.warnings) == []


def test_every_kind_of_the_list_is_served():
    registry = build_registry()
    assert [each for each in STORED_ONLY if registry.kind(*each) is None] == []
