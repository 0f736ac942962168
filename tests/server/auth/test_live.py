"""Identity and rights on a running server, through HTTPS."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.api.errors import ApiError
from muster.api.resources import LEASES, NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, Resource
from muster.client.config import ClientConfig, Impersonation
from muster.client.http import HTTPClient
from muster.plane.options import Options
from muster.plane.plane import Plane
from muster.server.auth.bootstrap import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from muster.testing import a_pod, api_server

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "roles", "Role", True)
ROLE_BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding", True)
SECRETS = Resource("", "v1", "secrets", "Secret", True)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True)
AUTHZ = "/apis/authorization.k8s.io/v1"
AUTHN = "/apis/authentication.k8s.io/v1"


class World:
    """A running plane, and clients of whoever a test needs."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.admin = plane.client

    @asynccontextmanager
    async def client(self, user: str = "jane", *groups: str, **changes: Any) -> AsyncIterator[HTTPClient]:
        config = replace(self.plane.api.credentials.client_config(self.plane.url, user, groups), **changes)
        async with HTTPClient(config) as client:
            yield client

    @asynccontextmanager
    async def bearer(self, token: str) -> AsyncIterator[HTTPClient]:
        config = ClientConfig(self.plane.url, ca_data=self.plane.api.credentials.authority.pem, token=token)
        async with HTTPClient(config) as client:
            yield client

    async def bind(self, role: str, user: str, namespace: str = "") -> None:
        """Give a cluster role to a user."""
        binding = {
            "metadata": {"name": f"{role}-{user}".replace(":", "-")},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        }
        if namespace:
            await self.admin.create(ROLE_BINDINGS, binding, namespace)
        else:
            await self.admin.create(CLUSTER_ROLE_BINDINGS, binding)

    async def role(self, name: str, *rules: dict[str, Any]) -> None:
        await self.admin.create(CLUSTER_ROLES, {"metadata": {"name": name}, "rules": list(rules)})


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with api_server(https=True) as plane:
        yield World(plane)


def a_rule(verbs: str, resources: str, group: str = "") -> dict[str, Any]:
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}


# Who gets in


async def test_without_credentials_only_health_and_version_answer(world: World) -> None:
    async with world.bearer("") as nobody:
        for path in ("/livez", "/readyz", "/healthz"):
            assert await nobody.text(path) == "ok"
        assert "gitVersion" in await nobody.request("GET", "/version")
        for path in ("/api", "/apis", "/api/v1/pods", "/metrics", "/openapi/v3"):
            with pytest.raises(ApiError) as caught:
                await nobody.request("GET", path)
            assert (caught.value.code, caught.value.reason) == (401, "Unauthorized")


async def test_a_certificate_of_another_authority_does_not_get_in(world: World) -> None:
    from muster.certificates import Authority

    pair = Authority.create().for_client("kubernetes-admin", ["system:masters"])
    async with world.client(cert_data=pair.cert, key_data=pair.key) as forger:
        with pytest.raises((ConnectionError, ApiError)):
            await forger.list(PODS)


async def test_a_user_without_rights_gets_kubernetes_words(world: World) -> None:
    async with world.client() as jane:
        with pytest.raises(ApiError) as caught:
            await jane.list(PODS, "default")
    assert caught.value.code == 403
    assert caught.value.message == (
        'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"'
    )


async def test_rights_count_from_the_next_request_and_end_with_their_binding(world: World) -> None:
    async with world.client() as jane:
        await world.bind("view", "jane", "default")
        await jane.list(PODS, "default")
        with pytest.raises(ApiError):
            await jane.list(PODS, "kube-system")
        with pytest.raises(ApiError):
            await jane.create(PODS, a_pod("p"))
        await world.admin.delete(ROLE_BINDINGS, "view-jane", "default")
        with pytest.raises(ApiError):
            await jane.list(PODS, "default")


async def test_a_path_that_does_not_exist_is_forbidden_before_it_is_missing(world: World) -> None:
    async with world.client() as jane, world.client("root", "system:masters") as root:
        with pytest.raises(ApiError) as caught:
            await jane.request("GET", "/apis/no.such.group/v1/things")
        assert caught.value.code == 403
        with pytest.raises(ApiError) as caught:
            await root.request("GET", "/apis/no.such.group/v1/things")
        assert caught.value.code == 404


async def test_apply_needs_the_right_to_create_when_it_would(world: World) -> None:
    await world.role("patcher", a_rule("get patch", "configmaps"))
    await world.bind("patcher", "jane")
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    async with world.client() as jane:
        with pytest.raises(ApiError, match="cannot create resource") as caught:
            await jane.patch(CONFIG_MAPS, "c", wanted, "default", type="apply", field_manager="me")
        assert caught.value.code == 403
        await world.admin.create(CONFIG_MAPS, wanted, "default")
        await jane.patch(CONFIG_MAPS, "c", wanted, "default", type="apply", field_manager="me", force=True)


async def test_names_in_a_rule_are_honoured(world: World) -> None:
    await world.role("one-lease", {**a_rule("get update", "leases", "coordination.k8s.io"), "resourceNames": ["mine"]})
    await world.bind("one-lease", "jane")
    for name in ("mine", "yours"):
        await world.admin.create(LEASES, {"metadata": {"name": name}}, "default")
    async with world.client() as jane:
        await jane.get(LEASES, "mine", "default")
        with pytest.raises(ApiError, match=r'leases.coordination.k8s.io "yours" is forbidden'):
            await jane.get(LEASES, "yours", "default")


# Static tokens, service accounts


async def test_a_token_file_lets_its_users_in(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('sesame,ali,1,"system:masters"\n')
    options = Options(token_file=tokens, controllers=False, scheduler=False, freeze=False)
    async with Plane(options) as plane, World(plane).bearer("sesame") as ali:
        review = await ali.request(
            "POST",
            f"{AUTHN}/selfsubjectreviews",
            {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"},
        )
        assert review["status"]["userInfo"]["username"] == "ali"
        await ali.list(NODES)


async def test_a_requested_token_works_and_dies_with_its_account(world: World) -> None:
    await world.admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "bot"}}, "default")
    await world.bind("view", "system:serviceaccount:default:bot")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    async with world.client("root", "system:masters") as root:
        answer = await root.request("POST", "/api/v1/namespaces/default/serviceaccounts/bot/token", request)
        token = answer["status"]["token"]
        reviewed = await root.request(
            "POST",
            f"{AUTHN}/tokenreviews",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}},
        )
    assert reviewed["status"]["authenticated"] is True
    assert reviewed["status"]["user"]["username"] == "system:serviceaccount:default:bot"
    async with world.bearer(token) as bot:
        await bot.list(PODS)
        await world.admin.delete(SERVICE_ACCOUNTS, "bot", "default")
        with pytest.raises(ApiError) as caught:
            await bot.list(PODS)
        assert caught.value.code == 401


async def test_a_token_review_of_nonsense_is_not_authenticated(world: World) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "nonsense"}}
    answer = await world.admin.request("POST", f"{AUTHN}/tokenreviews", body)
    assert not answer["status"].get("authenticated")
    assert answer["status"]["error"]


async def test_the_key_set_is_published(world: World) -> None:
    async with world.client("root", "system:masters") as root:
        assert (await root.request("GET", "/openid/v1/jwks"))["keys"][0]["crv"] == "P-256"
        found = await root.request("GET", "/.well-known/openid-configuration")
    assert found["jwks_uri"].endswith("/openid/v1/jwks")


# Acting as somebody else


async def test_acting_as_somebody_needs_the_right_and_then_has_only_theirs(world: World) -> None:
    await world.bind("view", "joe", "default")
    async with world.client("root", "system:masters", impersonate=Impersonation("joe")) as as_joe:
        await as_joe.list(PODS, "default")
        with pytest.raises(ApiError, match='User "joe" cannot list resource "nodes"'):
            await as_joe.list(NODES)
    async with world.client("jane", impersonate=Impersonation("joe")) as jane:
        with pytest.raises(ApiError, match='User "jane" cannot impersonate resource "users"'):
            await jane.list(PODS, "default")


# Nobody grants what they do not have


async def test_a_role_cannot_be_written_with_more_than_its_writer_has(world: World) -> None:
    await world.bind("admin", "jane", "default")
    async with world.client() as jane:
        role = {"metadata": {"name": "r"}, "rules": [a_rule("get", "pods")]}
        await jane.create(ROLES, role, "default")
        with pytest.raises(ApiError, match="attempting to grant RBAC permissions not currently held") as caught:
            await jane.create(ROLES, {"metadata": {"name": "s"}, "rules": [a_rule("get", "nodes")]}, "default")
        assert caught.value.code == 403
        assert '{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}' in caught.value.message
        with pytest.raises(ApiError, match="not currently held"):
            await jane.patch(ROLES, "r", {"rules": [a_rule("*", "*", "*")]}, "default")
        await jane.patch(ROLES, "r", {"metadata": {"labels": {"a": "b"}}}, "default")


async def test_a_binding_cannot_name_a_role_with_more_than_its_writer_has(world: World) -> None:
    await world.bind("admin", "jane", "default")

    def binding(role: str) -> dict[str, Any]:
        ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
        subjects = [{"apiGroup": RBAC, "kind": "User", "name": "jane"}]
        return {"metadata": {"name": role}, "roleRef": ref, "subjects": subjects}

    async with world.client() as jane:
        await jane.create(ROLE_BINDINGS, binding("edit"), "default")
        with pytest.raises(ApiError, match="not currently held"):
            await jane.create(ROLE_BINDINGS, binding("cluster-admin"), "default")
        await world.role("binder", {**a_rule("bind", "clusterroles", RBAC), "resourceNames": ["cluster-admin"]})
        await world.bind("binder", "jane")
        await jane.create(ROLE_BINDINGS, binding("cluster-admin"), "default")


async def test_an_aggregated_role_needs_all_rights(world: World) -> None:
    await world.role("role-writer", a_rule("create", "clusterroles", RBAC))
    await world.bind("role-writer", "jane")
    role = {
        "metadata": {"name": "gather"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]},
        "rules": [],
    }
    async with world.client() as jane:
        with pytest.raises(ApiError, match="must have cluster-admin privileges to use the aggregationRule"):
            await jane.create(CLUSTER_ROLES, role)


# Reviews


async def allowed(client: Any, kind: str, spec: dict[str, Any], path: str = "") -> bool:
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    if path:
        body["metadata"] = {"namespace": "default"}
    answer = await client.request("POST", path or f"{AUTHZ}/{kind.lower()}s", body)
    return answer["status"]["allowed"]


async def test_access_reviews_answer_for_oneself_and_for_others(world: World) -> None:
    await world.bind("view", "jane", "default")
    may = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}
    may_not = {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "default"}}
    async with world.client() as jane:
        assert await allowed(jane, "SelfSubjectAccessReview", may)
        assert not await allowed(jane, "SelfSubjectAccessReview", may_not)
        with pytest.raises(ApiError, match="cannot create resource"):
            await allowed(jane, "SubjectAccessReview", {**may, "user": "jane"})
    assert await allowed(world.admin, "SubjectAccessReview", {**may, "user": "jane"})
    assert not await allowed(world.admin, "SubjectAccessReview", {**may_not, "user": "jane"})
    local = f"{AUTHZ}/namespaces/default/localsubjectaccessreviews"
    assert await allowed(world.admin, "LocalSubjectAccessReview", {**may, "user": "jane"}, local)


async def test_a_review_of_a_page(world: World) -> None:
    async with world.client() as jane:
        for path, answer in (("/version", True), ("/metrics", False)):
            spec = {"nonResourceAttributes": {"verb": "get", "path": path}}
            assert await allowed(jane, "SelfSubjectAccessReview", spec) is answer


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("SubjectAccessReview", {"resourceAttributes": {"verb": "get", "resource": "pods"}}),
        ("SelfSubjectAccessReview", {}),
        ("SelfSubjectAccessReview", {"resourceAttributes": {}, "nonResourceAttributes": {}}),
    ],
)
async def test_a_review_that_asks_nothing_clear_is_invalid(world: World, kind: str, spec: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        await allowed(world.admin, kind, spec)
    assert caught.value.code == 422


async def test_the_rules_review_lists_what_one_may_do(world: World) -> None:
    await world.bind("view", "jane", "default")
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "default"},
    }
    async with world.client() as jane:
        status = (await jane.request("POST", f"{AUTHZ}/selfsubjectrulesreviews", body))["status"]
    listed = {
        (group, resource, verb)
        for rule in status["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert ("", "pods", "list") in listed
    assert ("scheduling.k8s.io", "podgroups", "watch") in listed
    assert not any(verb in ("create", "delete") and group == "" for group, _, verb in listed)
    assert any("/version" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])


# Across restarts


async def test_keys_and_policy_survive_a_restart_and_lost_rights_come_back(tmp_path: Path) -> None:
    options = Options(data=tmp_path / "d", controllers=False, scheduler=False, freeze=False)
    async with Plane(options) as plane:
        config = plane.api.credentials.client_config(plane.url)
        view = await plane.client.get(CLUSTER_ROLES, "system:aggregate-to-view")
        view["rules"] = view["rules"][1:]
        await plane.client.update(CLUSTER_ROLES, view)
        kept = await plane.client.get(CLUSTER_ROLES, "edit")
        kept["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"
        kept["rules"] = []
        await plane.client.update(CLUSTER_ROLES, kept)
        before = (await plane.client.get(NAMESPACES, "default"))["metadata"]["uid"]
    async with Plane(options) as plane, HTTPClient(replace(config, server=plane.url)) as admin:
        assert (await admin.get(NAMESPACES, "default"))["metadata"]["uid"] == before
        again = await admin.get(CLUSTER_ROLES, "system:aggregate-to-view")
        assert any("pods" in rule["resources"] for rule in again["rules"])
        assert not (await admin.get(CLUSTER_ROLES, "edit")).get("rules")
    for file in (tmp_path / "d" / "pki").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
    for directory in (tmp_path / "d", tmp_path / "d" / "pki"):
        assert directory.stat().st_mode & 0o777 == 0o700


# Nothing leaks


async def test_no_secret_reaches_a_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    canary = "canary-7f3a"
    async with world.bearer(canary) as forger:
        with pytest.raises(ApiError):
            await forger.list(PODS, label_selector=f"a={canary}")
    async with world.client("root", "system:masters") as root:
        secret = {"metadata": {"name": "s"}, "stringData": {"password": canary}}
        await root.create(SECRETS, secret, "default")
        with pytest.raises(ApiError):
            await root.create(SECRETS, {**secret, "type": 5}, "default")
        await root.get(SECRETS, "s", "default")
    assert any(record.name == "muster.server.http" for record in caplog.records)
    assert canary not in caplog.text
