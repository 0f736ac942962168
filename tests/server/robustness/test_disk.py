"""A disk that is full, read-only or damaged stops the server with words that say so; what was acknowledged stays."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
from pathlib import Path

import pytest
from data_directory import copied, damaged, pods, rows
from history import check_clients, check_log
from process import Server

from load import LOST, PODS, Wire, Writer

pytestmark = pytest.mark.slow
ROOM = 1_500_000


def a_small_disk() -> None:
    """No file may grow beyond a little more than what a fresh server needs."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, ROOM))


async def test_a_full_disk_ends_the_server_and_takes_back_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    server = Server(data, before=a_small_disk)
    assert server.up, server.said
    writer = Writer("w", 1)
    async with Wire(server.kubeconfig) as wire:
        try:
            await wire.ask("POST", PODS, a_large_pod("first", 1_000))
            async with asyncio.timeout(30):
                for index in range(200):
                    status, answer = await wire.ask("POST", PODS, a_large_pod(f"big-{index}", 200_000))
                    if status == 500:
                        assert "the store takes no more writes" in answer["message"]
                        break
                    assert status == 201, answer
        except LOST:
            pass
    code = server.end()

    assert code == 69
    assert "the store takes no more writes" in server.said
    assert "Traceback" not in server.said
    again = Server(data)
    assert again.up, again.said
    async with Wire(again.kubeconfig) as wire:
        assert (await wire.ask("GET", f"{PODS}/first"))[0] == 200
        await writer.run(wire, lambda: len(writer.ops) > 20)
    again.kill()
    found = rows(copied(data, tmp_path / "copy"))
    assert damaged(found) == []
    assert check_log(pods(found)) == []
    assert check_clients([op for op in writer.ops if op.kind == "write"], pods(found)) == []


def a_large_pod(name: str, size: int) -> dict[str, object]:
    meta = {"name": name, "annotations": {"filling": "x" * size}}
    return {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def refusal(data: Path) -> str:
    server = Server(data)
    assert not server.up, server.said
    assert server.end() in (1, 65, 69), server.said
    assert "Traceback" not in server.said
    return server.said


def test_a_directory_that_cannot_be_made_is_named() -> None:
    assert "/proc/muster" in refusal(Path("/proc/muster"))


def test_a_database_that_is_none_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "muster.db").write_bytes(b"hello, I am a database" * 1_000)

    assert "muster.db is damaged" in refusal(tmp_path)


def test_a_database_from_another_time_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    server = Server(tmp_path)
    server.kill()

    database = sqlite3.connect(tmp_path / "muster.db")
    database.execute("UPDATE meta SET value = 99 WHERE name = 'schema_version'")
    database.commit()
    database.close()

    assert "schema version 99" in refusal(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_is_read_only_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o500)

    assert str(tmp_path) in refusal(tmp_path / "data")
