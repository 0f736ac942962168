"""An elector in a thread of its own, so that a brain that thinks hard does not lose the lease meanwhile.

The event loop of the engine stands still during a turn of the brain; renewing must not. The elector lives in
a second loop with a client of its own; what it learns is handed to the engine's loop, and `may_write` is asked
across threads, which is safe because it only reads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from muster.client.protocol import Client
from muster.engine.leader import Election, Elector, LeadershipLost
from muster.engine.pace import Pace


class ElectorThread:
    """Has the face of `Elector`."""

    def __init__(self, connect: Callable[[], Client], election: Election, pace: Pace) -> None:
        self.election = election
        self.leading = asyncio.Event()
        self._connect = connect
        self._pace = pace
        self._inner: Elector | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._campaign: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None

    def may_write(self) -> bool:
        return self._inner is not None and self._inner.may_write()

    def guard(self) -> None:
        if self._inner is None:
            raise LeadershipLost("no write may start: there is no lease yet")
        self._inner.guard()

    async def run(self, expired: Callable[[], None]) -> None:
        """Campaign and renew until the lease is lost; raises what ended it."""
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._thread = threading.Thread(target=self._live, args=(outcome, expired), name="lease", daemon=True)
        self._thread.start()
        await outcome

    async def release(self) -> None:
        """Give the lease back and end the thread."""
        if self._thread is None or not self._thread.is_alive() or self._loop is None:
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._resign(), self._loop))
        await asyncio.to_thread(self._thread.join, 5.0)

    # --- in the thread -----------------------------------------------------------------------------

    def _live(self, outcome: asyncio.Future[None], expired: Callable[[], None]) -> None:
        engine = outcome.get_loop()
        ended: BaseException | None = None
        try:
            asyncio.run(self._life(engine, expired))
        except BaseException as error:
            ended = error
        if not engine.is_closed():
            engine.call_soon_threadsafe(_settle, outcome, ended)

    async def _life(self, engine: asyncio.AbstractEventLoop, expired: Callable[[], None]) -> None:
        client = self._connect()
        inner = Elector(client, self.election, Pace(self._pace.now, asyncio.sleep, self._pace.chance))

        async def tell() -> None:
            await inner.leading.wait()
            engine.call_soon_threadsafe(self.leading.set)

        teller = asyncio.create_task(tell())
        self._campaign = asyncio.create_task(inner.run(lambda: _hand_over(engine, expired)))
        self._inner, self._loop = inner, asyncio.get_running_loop()
        try:
            await self._campaign
        except asyncio.CancelledError:
            return
        finally:
            teller.cancel()
            await client.close()

    async def _resign(self) -> None:
        assert self._inner is not None
        assert self._campaign is not None
        await self._inner.release()
        self._campaign.cancel()


def _hand_over(engine: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not engine.is_closed():
        engine.call_soon_threadsafe(call)


def _settle(outcome: asyncio.Future[None], error: BaseException | None) -> None:
    if outcome.done():
        return
    if error is None:
        outcome.set_result(None)
    else:
        outcome.set_exception(error)
