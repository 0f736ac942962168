"""The HTTP client against a scripted server."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from muster.api.errors import ApiError, conflict, gone, too_many_requests
from muster.api.resources import NODES, POD_GROUPS, PODS
from muster.api.types import ObjectMeta
from muster.certificates import Authority
from muster.client.config import ClientConfig, ConfigError, ExecConfig, Impersonation
from muster.client.credentials import REREAD_SECONDS, Credentials
from muster.client.http import HTTPClient
from muster.server.http import HttpServer
from muster.server.request import Request, Response, WatchStream
from tests.client.scripted_server import ScriptedServer, a_watch, an_answer, tls_server

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "resourceVersion": "7"}}
A_TOKEN_PRINTER = """
import sys, pathlib
count = pathlib.Path(sys.argv[1])
n = len(count.read_text()) + 1 if count.exists() else 1
count.write_text("x" * n)
print('{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t%d"}}' % n)
"""


class NamedThing(msgspec.Struct):
    metadata: ObjectMeta


@pytest.fixture
async def client(scripted: ScriptedServer) -> AsyncIterator[HTTPClient]:
    async with HTTPClient(scripted.config) as made:
        yield made


# Lists


async def test_a_list_is_decoded_straight_into_the_asked_type(scripted: ScriptedServer, client: HTTPClient) -> None:
    scripted.script = [an_answer({"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [POD]})]
    page = await client.list(PODS, "n", label_selector="a=b", limit=5, into=NamedThing)
    assert page.items == [NamedThing(ObjectMeta("p", "n", resource_version="7"))]
    assert (page.resource_version, page.continue_token) == ("9", "more")
    assert scripted.last.path == "/api/v1/namespaces/n/pods"
    assert scripted.last.query == {"labelSelector": ("a=b",), "limit": ("5",)}


async def test_an_empty_list_may_have_no_items_at_all(scripted: ScriptedServer, client: HTTPClient) -> None:
    scripted.script = [an_answer({"metadata": {"resourceVersion": "9"}, "items": None})]
    assert (await client.list(NODES)).items == []


async def test_a_large_answer_arrives_compressed_when_allowed(scripted: ScriptedServer) -> None:
    scripted.script = [an_answer({"metadata": {}, "items": [POD] * 5000})]
    # Another loopback address counts as another machine.
    server = HttpServer(scripted.admit, scripted.handle)
    await server.start("127.0.0.2")
    far = replace(scripted.config, server=f"http://127.0.0.2:{server.port}")
    for config, encoding in ((far, "gzip"), (replace(far, compress=False), "identity"), (scripted.config, "identity")):
        async with HTTPClient(config) as client:
            assert len((await client.list(PODS)).items) == 5000
        assert scripted.last.headers["accept-encoding"] == encoding
    await server.stop(0.1)


# Watches


async def test_a_watch_yields_events_and_bookmarks(scripted: ScriptedServer, client: HTTPClient) -> None:
    mark = {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "9"}}}
    frames = [msgspec.json.encode(frame) + b"\n" for frame in ({"type": "ADDED", "object": POD}, mark)]
    scripted.script = [a_watch(*frames)]
    events = [event async for event in client.watch(PODS, "n", resource_version="5", timeout_seconds=3)]
    assert [(event.type, event.resource_version) for event in events] == [("ADDED", "7"), ("BOOKMARK", "9")]
    assert scripted.last.query["resourceVersion"] == ("5",)
    assert scripted.last.query["allowWatchBookmarks"] == ("true",)
    assert scripted.last.query["timeoutSeconds"] == ("3",)


async def test_a_version_that_is_too_old_is_an_api_error(scripted: ScriptedServer, client: HTTPClient) -> None:
    status = msgspec.json.encode(gone("too old resource version").status())
    scripted.script = [Response(410, status), a_watch(b'{"type":"ERROR","object":' + status + b"}\n")]
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            [event async for event in client.watch(PODS)]
        assert caught.value.code == 410


async def test_a_watch_that_breaks_in_the_middle_is_a_connection_error(
    scripted: ScriptedServer, client: HTTPClient
) -> None:
    async def stream() -> AsyncIterator[bytes]:
        yield b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}\n'
        raise ConnectionResetError

    scripted.script = [WatchStream(stream())]
    watch = client.watch(PODS)
    assert (await anext(watch)).resource_version == "1"
    with pytest.raises(ConnectionError):
        await anext(watch)


async def test_leaving_a_watch_frees_its_connection(scripted: ScriptedServer, client: HTTPClient) -> None:
    closed = asyncio.Event()

    async def stream() -> AsyncIterator[bytes]:
        try:
            yield b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}\n'
            await asyncio.sleep(60)
        finally:
            closed.set()

    scripted.script = [WatchStream(stream())]
    watch = client.watch(PODS)
    async for _ in watch:
        break
    await watch.aclose()
    async with asyncio.timeout(2):
        await closed.wait()


# Writes


async def test_create_fills_in_the_kind_and_takes_the_namespace_of_the_object(
    scripted: ScriptedServer, client: HTTPClient
) -> None:
    await client.create(POD_GROUPS, {"metadata": {"name": "g", "namespace": "n"}}, dry_run=True)
    sent = msgspec.json.decode(scripted.last.body)
    assert scripted.last.path == "/apis/scheduling.k8s.io/v1alpha3/namespaces/n/podgroups"
    assert (sent["kind"], sent["apiVersion"]) == ("PodGroup", "scheduling.k8s.io/v1alpha3")
    assert scripted.last.query == {"dryRun": ("All",)}


async def test_update_of_a_subresource_puts_to_its_path(scripted: ScriptedServer, client: HTTPClient) -> None:
    await client.update(PODS, POD, subresource="status")
    assert (scripted.last.method, scripted.last.path) == ("PUT", "/api/v1/namespaces/n/pods/p/status")


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [
        ("json", "application/json-patch+json"),
        ("merge", "application/merge-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
        ("apply", "application/apply-patch+yaml"),
    ],
)
async def test_each_patch_type_has_its_content_type(
    scripted: ScriptedServer, client: HTTPClient, kind: str, content_type: str
) -> None:
    await client.patch(PODS, "p", {}, "n", type=kind, field_manager="me", force=True)  # type: ignore[arg-type]
    assert scripted.last.headers["content-type"] == content_type
    assert scripted.last.query == {"fieldManager": ("me",), "force": ("true",)}


async def test_delete_carries_its_options(scripted: ScriptedServer, client: HTTPClient) -> None:
    await client.delete(
        PODS, "p", "n", uid="u", resource_version="7", grace_period_seconds=0, propagation_policy="Orphan"
    )
    assert msgspec.json.decode(scripted.last.body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Orphan",
    }


async def test_bind_posts_a_binding_with_the_uid(scripted: ScriptedServer, client: HTTPClient) -> None:
    await client.bind("n", "p", "u", "node-1")
    binding = msgspec.json.decode(scripted.last.body)
    assert scripted.last.path == "/api/v1/namespaces/n/pods/p/binding"
    assert (binding["metadata"]["uid"], binding["target"]["name"]) == ("u", "node-1")


async def test_sixty_four_binds_run_side_by_side(scripted: ScriptedServer, client: HTTPClient) -> None:
    waiting, everybody = 0, asyncio.Event()

    async def answer(_: Request) -> Response:
        nonlocal waiting
        waiting += 1
        if waiting == 64:
            everybody.set()
        await everybody.wait()
        return Response(201, b"{}")

    scripted.script = [answer]
    async with asyncio.timeout(5):
        await asyncio.gather(*(client.bind("n", f"p{i}", "u", "node") for i in range(64)))


# Failures


async def test_a_refusal_is_the_status_that_the_server_sent(scripted: ScriptedServer, client: HTTPClient) -> None:
    error = conflict("", "pods", "p", "it changed")
    scripted.script = [Response(409, msgspec.json.encode(error.status()))]
    with pytest.raises(ApiError) as caught:
        await client.bind("n", "p", "u", "node")
    assert (caught.value.code, caught.value.reason, caught.value.message) == (409, "Conflict", error.message)


async def test_a_refusal_that_is_no_status_keeps_its_words(scripted: ScriptedServer, client: HTTPClient) -> None:
    scripted.script = [Response(502, b"bad gateway", "text/plain")]
    with pytest.raises(ApiError, match="bad gateway") as caught:
        await client.get(NODES, "n")
    assert caught.value.code == 502


async def test_a_busy_server_is_asked_again_when_it_says_when(scripted: ScriptedServer, client: HTTPClient) -> None:
    busy = Response(429, msgspec.json.encode(too_many_requests("busy").status()), headers={"Retry-After": "0"})
    scripted.script = [busy, busy, an_answer(POD)]
    assert (await client.get(PODS, "p", "n"))["metadata"]["name"] == "p"
    assert len(scripted.requests) == 3


async def test_a_budget_refusal_without_a_time_is_not_repeated(scripted: ScriptedServer, client: HTTPClient) -> None:
    scripted.script = [Response(429, msgspec.json.encode(too_many_requests("budget").status()))]
    with pytest.raises(ApiError):
        await client.request("POST", "/api/v1/namespaces/n/pods/p/eviction", {})
    assert len(scripted.requests) == 1


# A fence


class Forbidden(Exception):
    pass


class Guard:
    """Lets writes through until it is shut."""

    def __init__(self) -> None:
        self.shut = False

    def __call__(self) -> None:
        if self.shut:
            raise Forbidden


async def test_a_shut_fence_stops_writes_and_lets_reads_through(scripted: ScriptedServer, client: HTTPClient) -> None:
    guard = Guard()
    fenced = client.fenced(guard)
    await fenced.bind("n", "p", "u", "node")
    guard.shut = True

    with pytest.raises(Forbidden):
        await fenced.bind("n", "p", "u", "node")
    await fenced.get(PODS, "p", "n")
    await client.bind("n", "p", "u", "node")

    assert [request.method for request in scripted.requests] == ["POST", "GET", "POST"]


async def test_a_fence_that_shuts_while_a_write_awaits_its_turn_stops_it(scripted: ScriptedServer) -> None:
    guard = Guard()
    async with HTTPClient(replace(scripted.config, qps=5, burst=1)) as client:
        fenced = client.fenced(guard)
        await fenced.bind("n", "first", "u", "node")
        waiting = asyncio.ensure_future(fenced.bind("n", "second", "u", "node"))
        await asyncio.sleep(0)
        guard.shut = True
        with pytest.raises(Forbidden):
            await waiting
    assert len(scripted.requests) == 1


async def test_a_fence_that_shuts_while_a_connection_is_made_stops_the_write(
    scripted: ScriptedServer, client: HTTPClient
) -> None:
    guard = Guard()
    connecting = asyncio.ensure_future(client.fenced(guard).bind("n", "p", "u", "node"))
    await asyncio.sleep(0)
    guard.shut = True
    with pytest.raises(Forbidden):
        await connecting
    assert scripted.requests == []


async def test_a_fence_that_shuts_while_a_busy_server_is_given_time_stops_the_repetition(
    scripted: ScriptedServer, client: HTTPClient
) -> None:
    guard = Guard()

    async def busy(_: Request) -> Response:
        guard.shut = True
        return Response(429, msgspec.json.encode(too_many_requests("busy").status()), headers={"Retry-After": "0"})

    scripted.script = [busy, an_answer(POD)]
    with pytest.raises(Forbidden):
        await client.fenced(guard).create(PODS, POD)
    assert len(scripted.requests) == 1


async def test_two_fences_are_both_asked_at_every_try(scripted: ScriptedServer, client: HTTPClient) -> None:
    asked: list[str] = []
    busy = Response(429, msgspec.json.encode(too_many_requests("busy").status()), headers={"Retry-After": "0"})
    scripted.script = [busy, an_answer(POD)]
    outer = client.fenced(lambda: asked.append("first"))
    await outer.fenced(lambda: asked.append("second")).bind("n", "p", "u", "node")
    assert asked == ["first", "second"] * 2
    await outer.bind("n", "p", "u", "node")
    assert asked[4:] == ["first"], "the client that was fenced a second time has its own fence only"


# No answer


async def test_nobody_listening_is_a_connection_error() -> None:
    async with HTTPClient(ClientConfig("http://127.0.0.1:1")) as client:
        with pytest.raises(ConnectionError, match=r"GET http://127.0.0.1:1/api/v1/nodes"):
            await client.list(NODES)


async def test_a_silent_server_is_a_connection_error(scripted: ScriptedServer) -> None:
    async def never(_: Request) -> Response:
        await asyncio.sleep(30)
        return Response(200)

    scripted.script = [never]
    async with HTTPClient(replace(scripted.config, timeout=0.1)) as client:
        with pytest.raises(ConnectionError):
            await client.list(NODES)


# Identity


async def test_a_rotated_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    now = 0.0
    file = tmp_path / "token"
    file.write_text("old\n")
    credentials = Credentials(ClientConfig("http://x", token_file=str(file)), lambda: now)
    assert (await credentials.current())[0]["Authorization"] == "Bearer old"
    file.write_text("new\n")
    assert (await credentials.current())[0]["Authorization"] == "Bearer old"
    now += REREAD_SECONDS
    assert (await credentials.current())[0]["Authorization"] == "Bearer new"


async def test_a_token_file_that_vanishes_leaves_the_last_token(tmp_path: Path) -> None:
    now = 0.0
    file = tmp_path / "token"
    file.write_text("old")
    credentials = Credentials(ClientConfig("http://x", token_file=str(file)), lambda: now)
    await credentials.current()
    file.unlink()
    now += REREAD_SECONDS
    assert (await credentials.current())[0]["Authorization"] == "Bearer old"


async def test_a_refused_token_is_read_again_at_once(scripted: ScriptedServer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")

    async def refuse(_: Request) -> Response:
        file.write_text("new")
        return Response(401, b"{}")

    scripted.script = [refuse, an_answer(POD)]
    async with HTTPClient(replace(scripted.config, token_file=str(file))) as client:
        await client.get(PODS, "p", "n")
    assert [seen.authorization for seen in scripted.presented] == ["Bearer old", "Bearer new"]


async def test_a_refused_plugin_credential_is_asked_for_again(scripted: ScriptedServer, tmp_path: Path) -> None:
    script = tmp_path / "printer.py"
    script.write_text(A_TOKEN_PRINTER)
    plugin = ExecConfig("python3", (str(script), str(tmp_path / "count")))
    scripted.script = [Response(401, b"{}"), an_answer(POD)]
    async with HTTPClient(replace(scripted.config, exec=plugin)) as client:
        await client.get(PODS, "p", "n")
    assert [seen.authorization for seen in scripted.presented] == ["Bearer t1", "Bearer t2"]


async def test_a_fixed_token_that_is_refused_is_not_tried_twice(scripted: ScriptedServer) -> None:
    scripted.script = [Response(401, b"{}")]
    async with HTTPClient(replace(scripted.config, token="t")) as client:
        with pytest.raises(ApiError):
            await client.get(PODS, "p", "n")
    assert len(scripted.requests) == 1


async def test_a_password_is_sent_as_basic_authentication(scripted: ScriptedServer) -> None:
    async with HTTPClient(replace(scripted.config, username="u", password="p")) as client:
        await client.request("GET", "/version")
    assert scripted.presented[0].authorization == "Basic dTpw"


async def test_impersonation_is_sent_with_every_request(scripted: ScriptedServer) -> None:
    acting = Impersonation("jane", "7", ("a", "b"), (("scopes", ("x", "y")),))
    async with HTTPClient(replace(scripted.config, impersonate=acting)) as client:
        await client.request("GET", "/version")
    assert scripted.presented[0].impersonate == (
        ("impersonate-user", "jane"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "a"),
        ("impersonate-group", "b"),
        ("impersonate-extra-scopes", "x"),
        ("impersonate-extra-scopes", "y"),
    )


# TLS


async def test_a_server_of_another_authority_is_not_trusted(scripted: ScriptedServer) -> None:
    async with tls_server(scripted, Authority.create()) as port:
        config = ClientConfig(f"https://127.0.0.1:{port}", ca_data=Authority.create("someone-else").pem)
        async with HTTPClient(config) as client:
            with pytest.raises(ConnectionError, match="certificate not trusted"):
                await client.request("GET", "/version")
        assert scripted.requests == []


async def test_a_name_that_is_not_in_the_certificate_is_not_trusted(scripted: ScriptedServer) -> None:
    authority = Authority.create()
    async with tls_server(scripted, authority, "kubernetes") as port:
        config = ClientConfig(f"https://127.0.0.1:{port}", ca_data=authority.pem)
        async with HTTPClient(config) as client:
            with pytest.raises(ConnectionError, match="certificate not trusted"):
                await client.request("GET", "/version")
        async with HTTPClient(replace(config, tls_server_name="kubernetes")) as client:
            await client.request("GET", "/version")


async def test_verification_can_be_switched_off(scripted: ScriptedServer) -> None:
    async with (
        tls_server(scripted, Authority.create(), "elsewhere") as port,
        HTTPClient(ClientConfig(f"https://127.0.0.1:{port}", insecure=True)) as client,
    ):
        await client.request("GET", "/version")


async def test_a_client_certificate_is_presented_from_files_and_from_data(
    scripted: ScriptedServer, tmp_path: Path
) -> None:
    authority = Authority.create()
    pair = authority.for_client("jane", ["devs"])
    (tmp_path / "c").write_bytes(pair.cert)
    (tmp_path / "k").write_bytes(pair.key)
    async with tls_server(scripted, authority) as port:
        config = ClientConfig(f"https://127.0.0.1:{port}", ca_data=authority.pem)
        for one in (
            replace(config, cert_data=pair.cert, key_data=pair.key),
            replace(config, cert_file=str(tmp_path / "c"), key_file=str(tmp_path / "k")),
        ):
            async with HTTPClient(one) as client:
                await client.request("GET", "/version")
    subject = ((("organizationName", "devs"),), (("commonName", "jane"),))
    assert [seen.subject for seen in scripted.presented] == [subject, subject]


async def test_a_key_that_does_not_fit_its_certificate_is_a_clear_error() -> None:
    authority = Authority.create()
    config = ClientConfig(
        "https://127.0.0.1:1", cert_data=authority.for_client("a").cert, key_data=authority.for_client("b").key
    )
    async with HTTPClient(config) as client:
        with pytest.raises(ConfigError, match="do not form a usable pair"):
            await client.request("GET", "/version")


async def test_a_proxy_is_used_when_the_config_names_one(scripted: ScriptedServer) -> None:
    config = ClientConfig("http://cluster.invalid", proxy_url=f"http://127.0.0.1:{scripted.port}")
    async with HTTPClient(config) as client:
        with pytest.raises(ApiError, match="must be a path"):
            await client.request("GET", "/version")
