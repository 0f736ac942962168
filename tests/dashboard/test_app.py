"""The questions of the pages, over HTTP on a snapshot: the same answers as the commands."""

from __future__ import annotations

import aiohttp
import msgspec
import pytest

from muster.dashboard.server import DashboardServer, Listen
from muster.dashboard.source import SnapshotSource
from muster.views.explain import explain_in
from tests.build.objects import a_gang, a_node, pods
from tests.build.scheduler import TestWorld, a_world
from tests.cli.snapshots import snapshot_of
from tests.dashboard.pages import RACK, a_browser, get


@pytest.fixture
def world() -> TestWorld:
    """One gang that runs, one that does not fit in any rack."""
    nodes = [a_node(f"n{i}", cpu=4, labels={RACK: f"r{i // 2}"}) for i in range(4)]
    world = a_world(nodes=nodes)
    world.add(a_gang("runs", min_count=2), *pods(2, group="runs", cpu=3))
    world.run()
    world.add(a_gang("waits", min_count=3, topology=RACK), *pods(3, group="waits", cpu=4))
    return world.run()


async def test_the_board_has_nodes_gangs_and_the_queue(world: TestWorld):
    async with a_browser(world) as browser:
        board = await get(browser, "/api/board")
    assert board["whole"]
    assert board["levels"] == [RACK]
    assert {node[0]: node[4][0] for node in board["nodes"]} == {
        name: sum(3000 for node in world.bound().values() if node == name) for name in ("n0", "n1", "n2", "n3")
    }
    assert {(gang[3], gang[5], gang[8]) for gang in board["gangs"]} == {("runs", 2, True), ("waits", 0, False)}
    assert [(row["name"], row["members"]) for row in board["queue"]] == [("waits", "0/3")]


async def test_the_explanation_is_that_of_the_command(world: TestWorld):
    async with a_browser(world) as browser:
        found = await get(browser, "/api/explain/PodGroup/ns/waits")
    assert found == msgspec.json.decode(msgspec.json.encode(explain_in(snapshot_of(world), "PodGroup", "ns", "waits")))


async def test_a_group_has_its_tree_its_members_and_its_past(world: TestWorld):
    async with a_browser(world) as browser:
        found = await get(browser, "/api/group/PodGroup/ns/runs")
    assert [(row["name"], row["bound"]) for row in found["rows"]] == [("runs", 2)]
    assert {member["name"]: member["node"] for member in found["members"]} == world.bound("runs")
    assert "created" in [moment["what"] for moment in found["timeline"]]


async def test_seats_are_counted_for_the_pod_that_was_asked_for(world: TestWorld):
    async with a_browser(world) as browser:
        whole = await get(browser, "/api/seats?cpu=4")
        small = await get(browser, "/api/seats?cpu=1")
        wrong = await get(browser, "/api/seats?cpu=many", 422)
    assert (whole["total"], whole["largest"][RACK]) == (2, 1)
    assert small["total"] == 10
    assert wrong["message"].startswith("cpu: 'many' is no amount")


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/group/PodGroup/ns/none", 422, 'podgroup "none" does not exist in namespace "ns"'),
        ("/api/group/Secret/ns/none", 422, "kind: 'Secret' is none of"),
        ("/api/node/none", 404, 'node "none" does not exist'),
        ("/api/board?since=-1", 422, "'-1' is no number"),
    ],
)
async def test_a_question_that_makes_no_sense_is_answered_with_a_status(
    world: TestWorld, path: str, status: int, says: str
):
    async with a_browser(world) as browser:
        found = await get(browser, path, status)
    assert (found["kind"], found["code"]) == ("Status", status)
    assert says in found["message"]


async def test_the_token_of_the_address_opens_one_session(world: TestWorld):
    async with DashboardServer(SnapshotSource(snapshot_of(world), "file"), Listen()) as server:
        link = server.link()
        first, second = (aiohttp.CookieJar(unsafe=True) for _ in range(2))
        async with aiohttp.ClientSession(server.address, cookie_jar=first) as browser:
            async with browser.get(link, allow_redirects=False) as answer:
                cookie = answer.headers["Set-Cookie"]
                assert (answer.status, answer.headers["Location"]) == (303, "/")
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert (await get(browser, "/api/session"))["signedIn"]
        async with aiohttp.ClientSession(server.address, cookie_jar=second) as browser:
            async with browser.get(link):
                pass
            assert not (await get(browser, "/api/session"))["signedIn"]
            assert (await get(browser, "/api/board", 401))["message"] == "sign in first"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:80"}, 200),
    ],
)
async def test_other_hosts_and_origins_find_nobody(world: TestWorld, headers: dict[str, str], status: int):
    async with a_browser(world) as browser, browser.get("/api/session", headers=headers) as answer:
        assert answer.status == status
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
        assert "unsafe" not in answer.headers["Content-Security-Policy"]


async def test_a_post_from_another_site_is_refused(world: TestWorld):
    other = {"Sec-Fetch-Site": "cross-site"}
    async with a_browser(world) as browser, browser.post("/api/what-if", data=b"", headers=other) as answer:
        assert answer.status == 403


async def test_only_what_is_in_the_package_is_served_as_a_file(world: TestWorld):
    async with a_browser(world) as browser:
        for path in ("/static/%2e%2e/app.py", "/static/../app.py", "/static/js/none.js"):
            async with browser.get(path) as answer:
                assert answer.status in (403, 404)
        async with browser.get("/static/js/app.js") as answer:
            assert answer.status == 200
        async with browser.get("/group/PodGroup/ns/runs") as answer:
            assert answer.content_type == "text/html"


async def test_health_counts_what_waits(world: TestWorld):
    async with a_browser(world) as browser:
        found = await get(browser, "/api/health")
    assert (found["pendingPods"], found["pendingGroups"], found["nodes"]) == (3, 1, 4)
    assert found["verdicts"] == {"Scheduled": 1, "Unschedulable": 1}
