"""An elector in a thread of its own, so that the lease is renewed during a long scheduling cycle.

The engine's event loop stands still during a scheduling cycle; renewing must not. The elector runs in a second loop
with a client of its own. What it learns is handed to the engine's loop, and `may_write` is called across threads, which
is safe because it only reads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from muster.client.clock import Clock
from muster.client.protocol import Client
from muster.engine.leader_election import Election, Elector, LeadershipLost


class ElectorThread:
    """Has the interface of `Elector`. The clock is used by both threads."""

    def __init__(self, connect: Callable[[], Client], election: Election, clock: Clock) -> None:
        self.election = election
        self.leading = asyncio.Event()
        self._connect = connect
        self._clock = clock
        self._inner: Elector | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._election_task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None

    def may_write(self) -> bool:
        return self._inner is not None and self._inner.may_write()

    def guard(self) -> None:
        if self._inner is None:
            raise LeadershipLost("no write may start: there is no lease yet")
        self._inner.guard()

    async def run(self, expired: Callable[[], None]) -> None:
        """Acquire and renew until the lease is lost; raises what ended it."""
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._thread = threading.Thread(target=self._run_thread, args=(outcome, expired), name="lease", daemon=True)
        self._thread.start()
        await outcome

    async def release(self) -> None:
        """Release the lease and end the thread."""
        if self._thread is None or not self._thread.is_alive() or self._loop is None:
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._release(), self._loop))
        await asyncio.to_thread(self._thread.join, 5.0)

    # --- in the thread -----------------------------------------------------------------------------

    def _run_thread(self, outcome: asyncio.Future[None], expired: Callable[[], None]) -> None:
        engine = outcome.get_loop()
        ended: BaseException | None = None
        try:
            asyncio.run(self._elect(engine, expired))
        except BaseException as error:
            ended = error
        if not engine.is_closed():
            engine.call_soon_threadsafe(_set_outcome, outcome, ended)

    async def _elect(self, engine: asyncio.AbstractEventLoop, expired: Callable[[], None]) -> None:
        client = self._connect()
        inner = Elector(client, self.election, self._clock)

        async def announce() -> None:
            await inner.leading.wait()
            engine.call_soon_threadsafe(self.leading.set)

        announcing = asyncio.create_task(announce())
        self._election_task = asyncio.create_task(inner.run(lambda: _call_in(engine, expired)))
        self._inner, self._loop = inner, asyncio.get_running_loop()
        try:
            await self._election_task
        except asyncio.CancelledError:
            return
        finally:
            announcing.cancel()
            await client.close()

    async def _release(self) -> None:
        assert self._inner is not None
        assert self._election_task is not None
        await self._inner.release()
        self._election_task.cancel()


def _call_in(engine: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not engine.is_closed():
        engine.call_soon_threadsafe(call)


def _set_outcome(outcome: asyncio.Future[None], error: BaseException | None) -> None:
    if outcome.done():
        return
    if error is None:
        outcome.set_result(None)
    else:
        outcome.set_exception(error)
