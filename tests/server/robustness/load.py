"""Clients over HTTPS that write, read and watch pods at random, and write down everything they saw."""

from __future__ import annotations

import asyncio
import base64
import random
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import aiohttp
import msgspec
import yaml
from history import Obj, Op, Seen, Session, everything

from muster.server.served_kinds import build_registry

PODS = "/api/v1/namespaces/default/pods"
NAMES = [f"p{index}" for index in range(10)]
SIDES = ("left", "right")
PATCH = "application/merge-patch+json"
LOST = (aiohttp.ClientError, ConnectionError, TimeoutError, asyncio.IncompleteReadError)


class Wire:
    """One client with its own connections, as a kubeconfig describes it."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        self.url: str = config["clusters"][0]["cluster"]["server"]
        self._tls = _tls(config)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Wire:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=4)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=30))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()
        # The transports of TLS connections close a turn later.
        await asyncio.sleep(0.01)

    async def ask(self, method: str, path: str, body: Any = None, content: str = "application/json") -> tuple[int, Obj]:
        assert self._session is not None
        data = None if body is None else msgspec.json.encode(body)
        async with self._session.request(
            method, self.url + path, data=data, headers={"Content-Type": content}
        ) as answer:
            return answer.status, msgspec.json.decode(await answer.read())

    async def follow(self, path: str, take: Callable[[Obj], bool]) -> None:
        """Give every line of a watch to `take`, until it says no or the watch ends."""
        assert self._session is not None
        async with self._session.get(self.url + path, timeout=aiohttp.ClientTimeout(total=None)) as answer:
            assert answer.status == 200, await answer.text()
            async for line in answer.content:
                if line.endswith(b"\n") and not take(msgspec.json.decode(line)):
                    answer.close()
                    return


def _tls(config: Obj) -> ssl.SSLContext:
    user, cluster = config["users"][0]["user"], config["clusters"][0]["cluster"]
    pair = [base64.b64decode(user[part]) for part in ("client-certificate-data", "client-key-data")]
    return client_tls(base64.b64decode(cluster["certificate-authority-data"]), b"".join(pair))


def client_tls(authority: bytes, pair: bytes = b"") -> ssl.SSLContext:
    """TLS for a client with a certificate and its key, or without."""
    context = ssl.create_default_context(cadata=authority.decode())
    if pair:
        with NamedTemporaryFile() as file:
            file.write(pair)
            file.flush()
            context.load_cert_chain(file.name)
    return context


class Writer:
    """Creates, replaces, patches and deletes pods, and reads them in between."""

    def __init__(self, name: str, seed: int) -> None:
        self.ops: list[Op] = []
        self._name = name
        self._rng = random.Random(seed)
        self._count = 0

    async def run(self, wire: Wire, until: Callable[[], bool]) -> None:
        while not until():
            await self._step(wire)

    async def _step(self, wire: Wire) -> None:
        rng = self._rng
        key = rng.choice(NAMES)
        place = f"{PODS}/{key}"
        self._count += 1
        mark = f"{self._name}-{self._count}"
        labels = {"mark": mark, "side": rng.choice(SIDES)}
        match rng.randrange(8):
            case 0 | 1:
                spec = {"containers": [{"name": "c", "image": "i"}]}
                body = {"metadata": {"name": key, "labels": labels}, "spec": spec}
                await self._write(wire, key, mark, "POST", PODS, body)
            case 2:
                found = await self._get(wire, key)
                if found is not None:
                    found["metadata"]["labels"] = labels
                    await self._write(wire, key, mark, "PUT", place, found)
            case 3 | 4:
                await self._write(wire, key, mark, "PATCH", place, {"metadata": {"labels": labels}}, PATCH)
            case 5:
                await self._write(wire, key, mark, "PATCH", f"{place}/status", {"status": {"message": mark}}, PATCH)
            case 6:
                await self._write(wire, key, "", "DELETE", place)
            case _:
                await self._list(wire)

    async def _write(
        self,
        wire: Wire,
        key: str,
        mark: str,
        method: str,
        path: str,
        body: Any = None,
        content: str = "application/json",
    ) -> None:
        began = time.monotonic()
        try:
            status, answer = await wire.ask(method, path, body, content)
        except LOST:
            self.ops.append(Op("write", began, time.monotonic(), key, mark=mark))
            raise
        assert status in (200, 201, 404, 409), answer
        if status < 400:
            revision = int(answer["metadata"]["resourceVersion"])
            self.ops.append(Op("write", began, time.monotonic(), key, revision, answer, mark=mark))

    async def _get(self, wire: Wire, key: str) -> Obj | None:
        began = time.monotonic()
        status, answer = await wire.ask("GET", f"{PODS}/{key}")
        found = answer if status == 200 else None
        revision = int(answer["metadata"]["resourceVersion"]) if found else None
        copy = msgspec.json.decode(msgspec.json.encode(found))
        self.ops.append(Op("get", began, time.monotonic(), key, revision, copy))
        return found

    async def _list(self, wire: Wire) -> None:
        began = time.monotonic()
        status, answer = await wire.ask("GET", PODS)
        assert status == 200, answer
        items = {item["metadata"]["name"]: item for item in answer["items"]}
        revision = int(answer["metadata"]["resourceVersion"])
        self.ops.append(Op("list", began, time.monotonic(), revision=revision, items=items))


class Watcher:
    """Follows the pods of one side (or all), hangs up now and then, and goes on where it was."""

    def __init__(self, name: str, seed: int, side: str = "", start: int = 1) -> None:
        self._rng = random.Random(seed)
        self._side = side
        self._lines = 0
        self.revision = start
        selects = everything if not side else lambda obj: obj["metadata"].get("labels", {}).get("side") == side
        self.session = Session(start, [], selects, name)

    async def run(self, wire: Wire, until: Callable[[], bool]) -> None:
        query = "watch=true&allowWatchBookmarks=true&timeoutSeconds=1"
        if self._side:
            query += f"&labelSelector=side%3D{self._side}"
        while not until():
            self._lines = self._rng.randrange(1, 60)
            await wire.follow(f"{PODS}?{query}&resourceVersion={self.revision}", self._take)

    def _take(self, event: Obj) -> bool:
        obj = event["object"]
        assert event["type"] != "ERROR", obj
        meta = obj["metadata"]
        self.revision = int(meta["resourceVersion"])
        self.session.events.append(Seen(event["type"], self.revision, meta.get("name", ""), obj))
        self._lines -= 1
        return self._lines > 0


def stored_wrongly(obj: Obj) -> list[str]:
    """What a pod that was read from the store has no right to be."""
    kind = build_registry().kind("", "pods")
    assert kind is not None
    assert kind.validate is not None
    whole = {"kind": "Pod", "apiVersion": "v1", **obj}
    return [str(error) for error in kind.validate(whole, None, "")]
