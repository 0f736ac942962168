"""Runs what-ifs in processes of their own: one at a time for a viewer, two in all, ended when the page goes."""

from __future__ import annotations

import asyncio
import contextlib
import sys

import msgspec

from muster.dashboard.what_if_process import WhatIfFailure, WhatIfRequest
from muster.scheduler.simulation.snapshot import Snapshot, encode
from muster.views.failures import ViewFailure
from muster.views.what_if import WhatIf

MOST_BYTES = 1 << 20
MOST_AT_ONCE = 2
TIME_LIMIT_SECONDS = 300.0
"""The search has its own budget of steps; this ends a process that hangs."""


class Busy(Exception):
    """Too many questions at once; the message says whose."""


class WhatIfRunner:
    """Starts at most so many processes."""

    def __init__(self) -> None:
        self._running: set[str] = set()

    async def run(self, viewer: str, snapshot: Snapshot, manifests: bytes, namespace: str) -> WhatIf:
        """The answer; Busy at once if this viewer or too many others wait for one."""
        if viewer in self._running:
            raise Busy("your last question is still being answered")
        if len(self._running) >= MOST_AT_ONCE:
            raise Busy("others are asking just now; try again in a moment")
        self._running.add(viewer)
        try:
            data = await asyncio.to_thread(encode, snapshot)
            request = msgspec.json.encode(WhatIfRequest(len(data), len(manifests), namespace))
            return _decoded(await self._process(request + b"\n" + data + manifests))
        finally:
            self._running.discard(viewer)

    async def _process(self, data: bytes) -> bytes:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "muster.dashboard.what_if_process",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(TIME_LIMIT_SECONDS):
                answer, _ = await process.communicate(data)
        except TimeoutError:
            raise ViewFailure(f"there was no answer within {TIME_LIMIT_SECONDS:g} s", undecided=True) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode != 0:
            raise ViewFailure("the simulation failed unexpectedly; `muster simulate` says more")
        return answer


def _decoded(data: bytes) -> WhatIf:
    try:
        return msgspec.json.decode(data, type=WhatIf)
    except msgspec.ValidationError:
        failure = msgspec.json.decode(data, type=WhatIfFailure)
        raise ViewFailure(failure.failure, undecided=failure.undecided) from None
