"""The gate: requests from outside are authenticated and authorized before the core sees them."""

import pytest
from policy_store import a_rule, grant, put

from muster.api.errors import ApiError
from muster.server.auth.authentication import CallerCredentials
from muster.server.auth.gate import Gate
from muster.server.auth.security import Security
from muster.server.auth.tokens import TokenSigner
from muster.server.core import ApiServer
from muster.server.request import ANONYMOUS, Request
from muster.server.served_kinds import build_registry
from muster.server.store.memory import MemoryStore

JANE = CallerCredentials(((("commonName", "jane"),),))
PODS = "/api/v1/namespaces/default/pods"


async def a_gate() -> Gate:
    """A gate whose policy lets jane read the logs of pods in the namespace default, and nothing else."""
    store = MemoryStore()
    await put(store, "ClusterRole", "log-reader", rules=[a_rule("get", "pods/log")])
    await grant(store, "log-reader", ("User", "jane"), "default")
    registry = build_registry()
    return Security(store, TokenSigner.create()).gate(ApiServer(store, registry), registry)


async def test_an_admitted_request_carries_its_user() -> None:
    request = Request("GET", f"{PODS}/p/log", user=ANONYMOUS)

    (await a_gate()).admit(request, JANE)

    assert request.user.name == "jane"


@pytest.mark.parametrize(
    ("method", "path", "refused"),
    [
        ("GET", f"{PODS}/p", 'cannot get resource "pods" in API group "" in the namespace "default"'),
        ("PUT", f"{PODS}/p/log", 'cannot update resource "pods/log" in API group "" in the namespace "default"'),
        (
            "GET",
            "/api/v1/namespaces/other/pods/p/log",
            'cannot get resource "pods/log" in API group "" in the namespace "other"',
        ),
        ("GET", "/metrics", 'cannot get path "/metrics"'),
    ],
)
async def test_a_request_is_authorized_for_what_its_path_targets(method: str, path: str, refused: str) -> None:
    gate = await a_gate()

    with pytest.raises(ApiError) as caught:
        gate.admit(Request(method, path), JANE)

    assert caught.value.code == 403
    assert refused in caught.value.message


async def test_a_request_without_credentials_is_refused_before_it_is_authorized() -> None:
    gate = await a_gate()

    with pytest.raises(ApiError) as caught:
        gate.admit(Request("GET", f"{PODS}/p/log"), CallerCredentials())

    assert caught.value.code == 401
