"""Health checks and metrics of an engine over HTTP."""

from __future__ import annotations

from typing import Any

import aiohttp

from muster.cli.scheduler import serving_tls
from muster.engine.health_server import HealthServer
from tests.engine.builders import FirstNodeScheduler
from tests.engine.conftest import World, eventually


class Reviews:
    """An API server that knows one token."""

    async def request(self, method: str, path: str, body: Any = None, query: Any = None) -> dict[str, Any]:
        spec = body["spec"]
        if path.endswith("tokenreviews"):
            known = spec["token"] in ("prometheus", "nobody")
            return {"status": {"authenticated": known, "user": {"username": spec["token"], "groups": []}}}
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        return {"status": {"allowed": spec["user"] == "prometheus"}}


async def ask(url: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as answer:
        return answer.status, await answer.text()


async def test_a_working_engine_is_alive_and_ready(world: World):
    engine = await world.start()
    health = HealthServer(engine)
    port = await health.listen("127.0.0.1", 0)
    try:
        assert await ask(f"http://127.0.0.1:{port}/livez") == (200, "ok")
        status, text = await ask(f"http://127.0.0.1:{port}/readyz?verbose&exclude=ping")
        assert status == 200
        assert "[+]informer-sync ok" in text
        assert "ping" not in text
        assert text.endswith("readyz check passed\n")
        assert (await ask(f"http://127.0.0.1:{port}/readyz/nonsense"))[0] == 404
    finally:
        await health.close()


async def test_an_engine_that_lost_the_server_is_alive_and_not_ready(world: World):
    engine = await world.start()
    health = HealthServer(engine)
    port = await health.listen("127.0.0.1", 0)

    def down(verb: str, name: str) -> None:
        raise ConnectionError("connection refused")

    world.client.before = down
    world.client.drop_watches()
    try:

        async def unready() -> bool:
            status, text = await ask(f"http://127.0.0.1:{port}/readyz")
            return status == 500 and "connection refused" in text

        await eventually(unready)
        assert (await ask(f"http://127.0.0.1:{port}/livez"))[0] == 200

        world.client.before = lambda verb, name: None

        async def ready() -> bool:
            return (await ask(f"http://127.0.0.1:{port}/readyz"))[0] == 200

        await eventually(ready)
    finally:
        await health.close()


async def test_metrics_are_for_reviewed_tokens_on_the_secure_port(world: World):
    engine = await world.start()
    health = HealthServer(engine, Reviews())  # type: ignore[arg-type]
    port = await health.listen("127.0.0.1", 0, serving_tls())
    try:
        url = f"https://127.0.0.1:{port}/metrics"
        assert (await ask(url))[0] == 401
        assert (await ask(url, "stranger"))[0] == 403
        assert (await ask(url, "nobody"))[0] == 403
        assert (await ask(url, "prometheus"))[0] == 200
        assert (await ask(f"https://127.0.0.1:{port}/livez"))[0] == 200
    finally:
        await health.close()


async def test_metrics_have_the_names_that_dashboards_use(world: World):
    await world.node()
    await world.pod("p")
    scheduler = FirstNodeScheduler()
    engine = await world.start(scheduler)
    health = HealthServer(engine)
    port = await health.listen("127.0.0.1", 0)

    async def bound() -> bool:
        return bool(scheduler.results())

    await eventually(bound)
    try:
        text = (await ask(f"http://127.0.0.1:{port}/metrics"))[1]
    finally:
        await health.close()
    assert 'scheduler_schedule_attempts_total{profile="muster",result="scheduled"} 1.0' in text
    assert 'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"} 1.0' in text
    assert 'scheduler_async_api_call_execution_total{call_type="pod_binding",result="success"} 1.0' in text
    for name in ("scheduling_algorithm_duration_seconds", "podgroup_schedule_attempts", "pending_async_api_calls"):
        assert f"scheduler_{name}" in text
