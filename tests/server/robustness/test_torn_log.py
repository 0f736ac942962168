"""What a power cut leaves of the write-ahead log: a prefix of what was written, never something else.

The log is cut at every kind of place (in a page, in a frame's head, between frames, bits flipped) and the store is
opened on what is left. It must hold exactly the first so many writes, go on from there, and say so when it cannot.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import pytest
from data_directory import copied, damaged, rows

from muster.server.store.records import StoreError
from muster.server.store.sqlite import SqliteStore

FRAME = 24 + 4096
HEAD = 32


def a_body(revision: int) -> bytes:
    return b'{"metadata":{"resourceVersion":"%d"},"data":"%s"}' % (revision, b"x" * (revision * 37 % 3000))


async def written(directory: Path, writes: int = 60) -> Path:
    """A copy of a data directory in the middle of its life, its last writes only in the write-ahead log."""
    store = SqliteStore.open(directory / "live")
    for index in range(writes):
        await store.create("pods", ("a", f"p{index}"), f"u{index}", a_body)
        if index % 7 == 0:
            # Several writes in one transaction: they are there together or not at all.
            await asyncio.gather(*(store.create("pods", ("a", f"g{index}-{each}"), "u", a_body) for each in range(5)))
    copy = copied(directory / "live", directory / "copy")
    await store.close()
    return copy


async def opened(directory: Path) -> list[tuple[int, str, bytes]]:
    """What a server would serve from a directory."""
    store = SqliteStore.open(directory)
    try:
        await store.create("pods", ("a", "one-more"), "u", a_body)
        return sorted((record.revision, record.key[1], record.body) for record in store.table("pods").scan())
    finally:
        await store.close()


async def check_prefix(directory: Path, whole: list[tuple[int, str, bytes]]) -> int:
    """What is served is a prefix of what was written, and the next write has the next revision; its length."""
    found = await opened(directory)
    *kept, (last, name, _) = found
    assert kept == whole[: len(kept)]
    assert name == "one-more"
    assert last == (kept[-1][0] if kept else 1) + 1
    return len(kept)


def cuts(size: int, rng: random.Random, count: int) -> list[int]:
    """Places to cut: around the borders of the last frames, and anywhere."""
    borders = range(HEAD, size + 1, FRAME)
    near = [border + offset for border in list(borders)[-8:] for offset in (-1, 0, 1, 7, 8, 23, 24, 25, 2048)]
    anywhere = [rng.randrange(size + 1) for _ in range(count)]
    return sorted({at for at in (*near, *anywhere, 0, 1, HEAD - 1, size) if 0 <= at <= size})


async def cut_everywhere(directory: Path, count: int) -> None:
    copy = await written(directory)
    whole = [(row.revision, row.name, row.body) for row in rows(copied(copy, directory / "whole"))]
    log = (copy / "muster.db-wal").read_bytes()
    lengths: list[int] = []
    for at in cuts(len(log), random.Random(1), count):
        torn = copied(copy, directory / "torn")
        (torn / "muster.db-wal").write_bytes(log[:at])
        lengths.append(await check_prefix(torn, whole))
    assert lengths == sorted(lengths), "more of the log gives more of the writes"
    assert lengths[-1] == len(whole)
    assert lengths[0] < len(whole)


async def test_a_log_cut_anywhere_gives_a_prefix_of_the_writes(tmp_path: Path) -> None:
    await cut_everywhere(tmp_path, 60)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_log_cut_at_very_many_places_gives_a_prefix_of_the_writes(tmp_path: Path) -> None:
    await cut_everywhere(tmp_path, 3_000)


async def flip_everywhere(directory: Path, name: str, count: int) -> None:
    copy = await written(directory)
    if name == "muster.db":
        # Fold the log into the database, so that there is something to damage in it.
        await SqliteStore.open(copy).close()
    whole = [(row.revision, row.name, row.body) for row in rows(copied(copy, directory / "whole"))]
    data = bytearray((copy / name).read_bytes())
    rng = random.Random(2)
    for _ in range(count):
        at, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
        torn = copied(copy, directory / "torn")
        data[at] ^= bit
        (torn / name).write_bytes(data)
        data[at] ^= bit
        with suppress(StoreError):
            await check_prefix(torn, whole)


async def test_a_flipped_bit_in_the_log_is_never_served(tmp_path: Path) -> None:
    await flip_everywhere(tmp_path, "muster.db-wal", 40)


async def test_a_flipped_bit_in_the_database_is_never_served(tmp_path: Path) -> None:
    await flip_everywhere(tmp_path, "muster.db", 60)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["muster.db", "muster.db-wal"])
async def test_very_many_flipped_bits_are_never_served(tmp_path: Path, name: str) -> None:
    await flip_everywhere(tmp_path, name, 1_000)


async def test_a_group_of_writes_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    copy = await written(tmp_path)

    assert damaged(rows(copy)) == []
