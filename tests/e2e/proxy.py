"""A wire that can be cut: TCP between a scheduler and its server, broken, mended or made to swallow everything."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import yaml


class Proxy:
    """Forwards one port of this machine to another; runs in a thread of its own."""

    def __init__(self, server: str, *, open_: bool = True) -> None:
        self._target = urlsplit(server)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._swallowing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None
        self._open = open_
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._call(self._stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def kubeconfig(self, original: Path, directory: Path) -> Path:
        """The same credentials, through the wire."""
        config = yaml.safe_load(original.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self.port}"
        path = directory / f"through-{self.port}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def swallow(self) -> None:
        """Nothing arrives any more, and nobody is told; what is sent from now on is lost for good."""
        self._call(self._swallow)

    def cut(self) -> None:
        """Connections break and new ones are refused at once."""
        self._call(self._cut)

    def mend(self) -> None:
        self._call(self._mend)

    # --- in the thread -----------------------------------------------------------------------------

    def _call(self, work: Callable[[], Any]) -> None:
        asyncio.run_coroutine_threadsafe(work(), self._loop).result(20)

    async def _start(self) -> None:
        self._listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        assert self._listening is not None
        self._listening.close()
        await self._break()

    async def _swallow(self) -> None:
        self._swallowing = True

    async def _cut(self) -> None:
        self._open = False
        await self._break()

    async def _mend(self) -> None:
        self._open = True

    async def _break(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if self._open:
                far_reader, far_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
                try:
                    await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
                finally:
                    far_writer.close()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            if not self._swallowing:
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError, RuntimeError):
            writer.write_eof()
