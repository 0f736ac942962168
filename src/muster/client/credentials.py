"""Turns a client configuration into request headers and a TLS context, and keeps both current.

Token files, certificate files and the CA file are looked at again once a minute, so that rotated credentials are
picked up without a restart; exec plugins are asked again when their credential expires or is refused.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from muster.client.config import ClientConfig, ConfigError
from muster.client.exec_plugin import ExecCredential, ExecPlugin

REREAD_SECONDS = 60.0


class Credentials:
    """The current identity of one client."""

    def __init__(self, config: ClientConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._clock = clock
        self._plugin = ExecPlugin(config, config.exec) if config.exec is not None else None
        self._secure = config.server.startswith("https://")
        self._fixed = _fixed_headers(config)
        self._token = config.token
        self._context: ssl.SSLContext | None = None
        self._context_of: object = None
        self._stamps: tuple[int, ...] = ()
        self._read_at: float | None = None

    async def current(self) -> tuple[dict[str, str], ssl.SSLContext | None]:
        """Headers and TLS context for the next request."""
        plugged = await self._plugin.credential() if self._plugin is not None else None
        now = self._clock()
        if self._read_at is None or now - self._read_at >= REREAD_SECONDS:
            self._read_at = now
            self._reread()
        context = self._tls(plugged) if self._secure else None
        token = plugged.token if plugged is not None else self._token
        return ({**self._fixed, "Authorization": f"Bearer {token}"} if token else self._fixed), context

    def refused(self) -> bool:
        """The server said 401. True when asking again could give something else."""
        self._read_at = None
        if self._plugin is not None:
            self._plugin.forget()
            return True
        return bool(self._config.token_file)

    def _reread(self) -> None:
        config = self._config
        if config.token_file:
            try:
                self._token = Path(config.token_file).read_text().strip()
            except OSError as error:
                # A token file that vanishes for a moment during rotation must not lose a token that works.
                if not self._token:
                    raise ConfigError(f"{config.token_file}: token cannot be read: {error.strerror}") from None
        stamps = tuple(_stamp(file) for file in (config.ca_file, config.cert_file, config.key_file))
        if stamps != self._stamps:
            self._stamps = stamps
            self._context = None

    def _tls(self, plugged: ExecCredential | None) -> ssl.SSLContext:
        if self._context is None or self._context_of is not plugged:
            cert = plugged.cert if plugged is not None and plugged.cert else b""
            key = plugged.key if plugged is not None and plugged.cert else b""
            self._context = tls_context(self._config, cert, key)
            self._context_of = plugged
        return self._context


def _stamp(file: str) -> int:
    if not file:
        return 0
    try:
        return Path(file).stat().st_mtime_ns
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _fixed_headers(config: ClientConfig) -> dict[str, str]:
    headers = {"User-Agent": config.user_agent}
    if config.username:
        pair = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
        headers["Authorization"] = f"Basic {pair}"
    return headers


def impersonation_headers(config: ClientConfig) -> list[tuple[str, str]]:
    """The headers that ask the server to act as somebody else; groups repeat."""
    acting = config.impersonate
    if acting is None:
        return []
    headers = [("Impersonate-User", acting.user)] if acting.user else []
    headers += [("Impersonate-Uid", acting.uid)] if acting.uid else []
    headers += [("Impersonate-Group", group) for group in acting.groups]
    headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for key, values in acting.extra for value in values]
    return headers


def tls_context(config: ClientConfig, cert: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    """Verifies the server against the configured CA; presents the given or the configured client certificate."""
    context = ssl.create_default_context() if not (config.ca_data or config.ca_file) else _empty_context()
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        if config.ca_data:
            context.load_verify_locations(cadata=config.ca_data.decode())
        elif config.ca_file:
            context.load_verify_locations(cafile=config.ca_file)
    except (ssl.SSLError, OSError, UnicodeDecodeError):
        raise ConfigError(f"{config.ca_file or 'certificate-authority-data'}: holds no usable certificate") from None
    cert = cert or config.cert_data or _read_bytes(config.cert_file)
    key = key or config.key_data or _read_bytes(config.key_file)
    if cert:
        _load_pair(context, cert, key, config.cert_file or "client-certificate-data")
    return context


def _empty_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _read_bytes(file: str) -> bytes:
    if not file:
        return b""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _load_pair(context: ssl.SSLContext, cert: bytes, key: bytes, name: str) -> None:
    # The ssl module reads certificates from files only; the copy lives for this call, private to us.
    with tempfile.TemporaryDirectory(prefix="muster-") as directory:
        pair = Path(directory) / "pair.pem"
        pair.touch(mode=0o600)
        pair.write_bytes(cert.rstrip() + b"\n" + key)
        try:
            context.load_cert_chain(pair)
        except (ssl.SSLError, OSError):
            raise ConfigError(f"{name}: client certificate and key do not form a usable pair") from None
