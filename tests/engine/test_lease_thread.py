"""An elector in its own thread: it renews while the engine's loop stands still."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from muster.api.errors import not_found
from muster.client.clock import MonotonicClock
from muster.engine.engine import LeadershipLost
from muster.engine.leader_election import Election
from muster.engine.lease_thread import ElectorThread


def an_election(identity: str, **kwargs) -> Election:
    times = {"lease_duration": 1.0, "renew_deadline": 0.3, "retry_period": 0.05, **kwargs}
    return Election(identity, **times)


def block(seconds: float) -> None:
    """Hold up the event loop, as a long scheduling cycle does."""
    time.sleep(seconds)


class Leases:
    """As much of a server as an election needs, for any thread."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.down = False

    async def get(self, resource: Any, name: str, namespace: str) -> dict[str, Any]:
        if self.down:
            raise ConnectionError("down")
        if self.lease is None:
            raise not_found("", "leases", name)
        return self.lease

    async def create(self, resource: Any, obj: dict[str, Any]) -> dict[str, Any]:
        self.lease = obj
        return obj

    async def update(self, resource: Any, obj: dict[str, Any]) -> dict[str, Any]:
        self.lease = obj
        return obj

    async def close(self) -> None:
        return None


async def test_an_elector_in_its_own_thread_renews_while_the_engine_is_busy():
    leases = Leases()
    elector = ElectorThread(lambda: leases, an_election("me"), MonotonicClock())  # type: ignore[arg-type]
    task = asyncio.create_task(elector.run(lambda: None))
    await asyncio.wait_for(elector.leading.wait(), 5)

    block(0.8)

    assert elector.may_write()
    task.cancel()
    await elector.release()
    assert leases.lease is not None
    assert leases.lease["spec"]["holderIdentity"] == ""
    assert not elector.may_write()


async def test_an_elector_in_its_own_thread_tells_when_the_lease_is_lost():
    leases, expired = Leases(), asyncio.Event()
    elector = ElectorThread(lambda: leases, an_election("me"), MonotonicClock())  # type: ignore[arg-type]
    task = asyncio.create_task(elector.run(expired.set))
    await asyncio.wait_for(elector.leading.wait(), 5)

    leases.down = True

    with pytest.raises(LeadershipLost):
        await asyncio.wait_for(task, 5)
    assert expired.is_set()
    assert not elector.may_write()
