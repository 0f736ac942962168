"""The dashboard as a server: listens, says by which address it is opened, and closes."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass

from aiohttp import web

from muster.client.protocol import Client
from muster.dashboard.app import application
from muster.dashboard.backstage import Backstage
from muster.dashboard.live_cluster import LiveCluster
from muster.dashboard.recording import Recording
from muster.dashboard.sessions import OneTimeToken, ReviewedTokens, Sessions
from muster.dashboard.source import Source


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen. With TLS the dashboard asks for bearer tokens: others than its user reach it."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None
    names: tuple[str, ...] = ()  # further names by which it is reached


class DashboardServer:
    """One dashboard. `async with DashboardServer(...) as server: ...`"""

    def __init__(self, source: Source, listen: Listen, past: Recording | None = None) -> None:
        self._source = source
        self._listen = listen
        self._past = past
        self._runner: web.AppRunner | None = None
        self._gate: OneTimeToken | None = None
        self._address = ""

    async def start(self) -> None:
        """Listen. Raises OSError if the address is taken."""
        listen, source = self._listen, self._source
        client: Client | None = source.client if isinstance(source, LiveCluster) else None
        if listen.tls is not None:
            assert isinstance(source, LiveCluster), "tokens are reviewed by the cluster that is shown"
            sessions = Sessions(ReviewedTokens(source.client, time.monotonic, source.group_api), time.monotonic)
        else:
            self._gate = OneTimeToken()
            sessions = Sessions(self._gate, time.monotonic)
        secure = listen.tls is not None
        app = application(Backstage(source, sessions, self._past, client, listen.names, secure))
        # A handler ends with its request: a what-if whose page has gone is not worked on any more.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            site = web.TCPSite(self._runner, listen.host, listen.port, ssl_context=listen.tls)
            await site.start()
        except OSError:
            await self.close()
            raise
        host = f"[{listen.host}]" if ":" in listen.host else listen.host
        self._address = f"{'https' if secure else 'http'}://{host}:{self._runner.addresses[0][1]}/"

    @property
    def address(self) -> str:
        """The address of the pages, without a token."""
        return self._address

    def link(self) -> str:
        """An address that opens one session; the one before, if nobody used it, is void."""
        return self._address if self._gate is None else f"{self._address}?token={self._gate.renew()}"

    async def close(self) -> None:
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
        await self._source.close()

    async def __aenter__(self) -> DashboardServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
