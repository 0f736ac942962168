"""Who asks: certificates, static tokens, service-account tokens, nobody, somebody else."""

from pathlib import Path

import pytest
from policy_store import a_rule, a_user, grant, put, remove

from muster.api.errors import ApiError
from muster.server.auth.authentication import Authenticator, CallerCredentials, StaticTokens
from muster.server.auth.impersonation import impersonated
from muster.server.auth.rbac import Authorizer
from muster.server.auth.service_accounts import ServiceAccounts
from muster.server.auth.tokens import BadToken, TokenSigner
from muster.server.request import ANONYMOUS, User
from muster.server.store.memory import MemoryStore

NOW = 1_800_000_000.0
SUBJECT = ((("organizationName", "devs"),), (("organizationName", "ops"),), (("commonName", "jane"),))


class World:
    """A store, a signer, and the time."""

    def __init__(self) -> None:
        self.now = NOW
        self.store = MemoryStore()
        self.signer = TokenSigner.create()
        self.accounts = ServiceAccounts(self.signer, self.store, lambda: self.now)
        static = StaticTokens({"static-token": a_user("bob", "admins")})
        self.authenticator = Authenticator(self.accounts, static, lambda: self.now)

    async def token(self, spec: dict[str, object] | None = None) -> str:
        await put(self.store, "ServiceAccount", "bot", "n", uid="sa-uid")
        return self.accounts.issue("n", "bot", {"spec": spec or {}})["status"]["token"]

    def user(self, token: str, path: str = "/api") -> User:
        return self.authenticator.user(CallerCredentials(authorization=f"Bearer {token}"), path)


@pytest.fixture
def world() -> World:
    return World()


def refused(world: World, presented: CallerCredentials, path: str = "/api") -> bool:
    try:
        world.authenticator.user(presented, path)
    except ApiError as error:
        return (error.code, error.reason) == (401, "Unauthorized")
    return False


# Certificates and static tokens


def test_a_certificate_names_the_user_and_the_groups(world: World) -> None:
    user = world.authenticator.user(CallerCredentials(SUBJECT), "/api")
    assert (user.name, user.groups) == ("jane", ("devs", "ops", "system:authenticated"))


def test_a_certificate_without_a_common_name_proves_nothing(world: World) -> None:
    assert refused(world, CallerCredentials(((("organizationName", "devs"),),)))


def test_a_static_token_names_its_user(world: World) -> None:
    assert world.user("static-token") == a_user("bob", "admins")


def test_a_token_file_has_kubernetes_columns(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text('# who\nabc,ann,7,"devs,ops"\nxyz,joe,8\n')
    tokens = StaticTokens.read(file)
    assert tokens.user("abc") == User("ann", ("devs", "ops", "system:authenticated"), "7")
    assert tokens.user("xyz") == User("joe", ("system:authenticated",), "8")
    assert tokens.user("") is None


def test_a_bad_line_in_a_token_file_is_named_without_the_token(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text("sesame,ann\n")
    with pytest.raises(ValueError, match=r"line 1: expected token,user,uid") as caught:
        StaticTokens.read(file)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("authorization", ["Bearer wrong", "Bearer ", "Basic dTpw", "static-token", "Bearer a.b.c"])
def test_credentials_that_prove_nothing_are_refused_even_where_nobody_may_look(
    world: World, authorization: str
) -> None:
    assert refused(world, CallerCredentials(authorization=authorization), "/livez")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/version", "/livez/ping"])
def test_nobody_may_look_at_health_and_version(world: World, path: str) -> None:
    assert world.authenticator.user(CallerCredentials(), path) == ANONYMOUS


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1/pods", "/metrics", "/livezz", "/version/x", "/openapi/v3"])
def test_nobody_may_look_anywhere_else(world: World, path: str) -> None:
    assert refused(world, CallerCredentials(), path)


# Service-account tokens


async def test_a_token_names_its_account(world: World) -> None:
    user = world.user(await world.token())
    assert user.name == "system:serviceaccount:n:bot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated")
    assert user.uid == "sa-uid"
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


async def test_a_token_ends_with_its_time(world: World) -> None:
    token = await world.token({"expirationSeconds": 600})
    world.now += 599
    world.user(token)
    world.now += 1
    assert refused(world, CallerCredentials(authorization=f"Bearer {token}"))


async def test_a_token_for_another_audience_is_refused(world: World) -> None:
    token = await world.token({"audiences": ["vault"]})
    assert refused(world, CallerCredentials(authorization=f"Bearer {token}"))
    reviewed = world.authenticator.review(token, ("vault", "other"))
    assert reviewed is not None
    assert reviewed[1] == ("vault",)


async def test_a_token_dies_with_its_account_even_when_one_of_the_same_name_follows(world: World) -> None:
    token = await world.token()
    world.user(token)
    await put(world.store, "ServiceAccount", "bot", "n", uid="another-uid")
    assert refused(world, CallerCredentials(authorization=f"Bearer {token}"))


async def test_a_token_bound_to_a_pod_knows_it_and_dies_with_it(world: World) -> None:
    await put(world.store, "Node", "node-1", uid="node-uid")
    spec = {"serviceAccountName": "bot", "nodeName": "node-1"}
    await put(world.store, "Pod", "p", "n", uid="pod-uid", spec=spec)
    token = await world.token({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "pod-uid"}})
    extra = world.user(token).extra
    assert extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert extra["authentication.kubernetes.io/node-uid"] == ("node-uid",)
    await remove(world.store, "Pod", "p", "n")
    assert refused(world, CallerCredentials(authorization=f"Bearer {token}"))


async def test_a_token_cannot_be_bound_to_the_pod_of_another_account(world: World) -> None:
    await put(world.store, "Pod", "p", "n", spec={"serviceAccountName": "other"})
    with pytest.raises(ApiError, match="different serviceaccount name") as caught:
        await world.token({"boundObjectRef": {"kind": "Pod", "name": "p"}})
    assert caught.value.code == 403


async def test_a_token_cannot_be_bound_to_a_pod_with_another_uid(world: World) -> None:
    await put(world.store, "Pod", "p", "n", uid="new", spec={"serviceAccountName": "bot"})
    with pytest.raises(ApiError, match="does not match the UID") as caught:
        await world.token({"boundObjectRef": {"kind": "Pod", "name": "p", "uid": "old"}})
    assert caught.value.code == 409


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        ({"expirationSeconds": 599}, 422, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 2**33}, 422, "larger than 2"),
        ({"boundObjectRef": {"kind": "Service", "name": "x"}}, 422, "cannot bind token"),
        ({"boundObjectRef": {"kind": "Pod", "name": "x"}}, 404, "not found"),
    ],
)
async def test_an_impossible_token_request_is_refused(
    world: World, spec: dict[str, object], code: int, words: str
) -> None:
    with pytest.raises(ApiError, match=words) as caught:
        await world.token(spec)
    assert caught.value.code == code


async def test_a_token_request_is_answered_with_its_defaults(world: World) -> None:
    await put(world.store, "ServiceAccount", "bot", "n")
    answer = world.accounts.issue("n", "bot", {"spec": {}})
    assert answer["spec"]["expirationSeconds"] == 3600
    assert answer["spec"]["audiences"] == [world.signer.issuer]
    assert answer["status"]["expirationTimestamp"] == "2027-01-15T09:00:00Z"


# Signatures


def test_only_our_own_signature_counts(world: World) -> None:
    claims = {"exp": int(NOW) + 60}
    token = world.signer.sign(claims)
    assert world.signer.verify(token, NOW)["exp"] == claims["exp"]
    with pytest.raises(BadToken, match="unknown key"):
        world.signer.verify(TokenSigner.create().sign(claims), NOW)
    head, body, signature = token.split(".")
    with pytest.raises(BadToken, match="bad signature"):
        world.signer.verify(f"{head}.{body}.{signature[:-8]}AAAAAAAA", NOW)


@pytest.mark.parametrize("token", ["", "a", "a.b", "a.b.c.d", "....", "e30.e30.e30", "é.é.é"])
def test_anything_else_is_no_token(world: World, token: str) -> None:
    with pytest.raises(BadToken):
        world.signer.verify(token, NOW)


def test_an_unsigned_token_is_refused(world: World) -> None:
    # {"alg":"none"} . {"exp":9999999999} . nothing
    with pytest.raises(BadToken, match="unknown key"):
        world.signer.verify("eyJhbGciOiJub25lIn0.eyJleHAiOjk5OTk5OTk5OTl9.", NOW)


def test_the_signing_key_survives_a_restart_and_is_private(tmp_path: Path) -> None:
    token = TokenSigner.open(tmp_path).sign({"exp": int(NOW) + 60})
    assert TokenSigner.open(tmp_path).verify(token, NOW)
    assert (tmp_path / "sa.key").stat().st_mode & 0o777 == 0o600


# Acting as somebody else


async def test_impersonation_needs_the_right_for_every_part() -> None:
    store = MemoryStore()
    await put(store, "ClusterRole", "as-jane", rules=[a_rule("impersonate", "users", names="jane")])
    await grant(store, "as-jane", ("User", "bob"))
    authorizer, bob = Authorizer(store), a_user("bob")
    acting = impersonated(bob, (("impersonate-user", "jane"),), authorizer)
    assert (acting.name, acting.groups) == ("jane", ("system:authenticated",))
    for headers in (
        (("impersonate-user", "joe"),),
        (("impersonate-user", "jane"), ("impersonate-group", "system:masters")),
        (("impersonate-user", "jane"), ("impersonate-uid", "1")),
        (("impersonate-user", "jane"), ("impersonate-extra-scopes", "x")),
        (("impersonate-user", "system:serviceaccount:n:bot"),),
    ):
        with pytest.raises(ApiError, match="cannot impersonate resource") as caught:
            impersonated(bob, headers, authorizer)
        assert caught.value.code == 403


def test_whoever_may_do_everything_may_act_as_anybody() -> None:
    root = a_user("root", "system:masters")
    headers = (
        ("impersonate-user", "system:serviceaccount:n:bot"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-a%2fb", "x"),
    )
    acting = impersonated(root, headers, Authorizer(MemoryStore()))
    assert acting.groups == ("system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated")
    assert (acting.uid, acting.extra) == ("7", {"a/b": ("x",)})


def test_a_group_alone_cannot_be_impersonated() -> None:
    with pytest.raises(ApiError, match="needs Impersonate-User"):
        impersonated(a_user("root", "system:masters"), (("impersonate-group", "g"),), Authorizer(MemoryStore()))
