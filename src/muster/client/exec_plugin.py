"""Runs a credential plugin and keeps its answer until it expires.

The plugin learns what we want through `KUBERNETES_EXEC_INFO` and prints an ExecCredential. Its standard error goes to
ours, so that its own words reach the person; our messages never repeat what it printed on standard output, because
that is the secret.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from muster.client.config import ClientConfig, ConfigError, ExecConfig

_SKEW = 10.0  # seconds before the stated expiry at which a credential counts as expired


class _Status(msgspec.Struct, rename="camel", frozen=True):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _Answer(msgspec.Struct, rename="camel", frozen=True):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecCredential(msgspec.Struct, frozen=True):
    """What a plugin gave us."""

    token: str
    cert: bytes
    key: bytes
    expires: float | None

    def __repr__(self) -> str:
        return f"ExecCredential(expires={self.expires})"


def _wall_clock() -> float:
    return datetime.now(UTC).timestamp()


class ExecPlugin:
    """One plugin of one user. Concurrent callers share a single run."""

    def __init__(self, config: ClientConfig, plugin: ExecConfig, clock: Callable[[], float] = _wall_clock) -> None:
        self._config = config
        self._plugin = plugin
        self._clock = clock
        self._cached: ExecCredential | None = None
        self._lock = asyncio.Lock()

    def forget(self) -> None:
        """Drop the cached credential: the server refused it."""
        self._cached = None

    async def credential(self) -> ExecCredential:
        cached = self._cached
        if cached is not None and self._fresh(cached):
            return cached
        async with self._lock:
            if self._cached is None or not self._fresh(self._cached):
                self._cached = await self._run()
            return self._cached

    def _fresh(self, credential: ExecCredential) -> bool:
        return credential.expires is None or self._clock() < credential.expires - _SKEW

    async def _run(self) -> ExecCredential:
        plugin = self._plugin
        interactive = plugin.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if plugin.interactive_mode == "Always" and not interactive:
            raise ConfigError(f"exec plugin {plugin.command}: needs a terminal (interactiveMode: Always)")
        environment = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": self._exec_info(interactive)}
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.args,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            hint = f"\n{plugin.install_hint}" if plugin.install_hint else ""
            raise ConfigError(f"exec plugin {plugin.command}: {error.strerror or error}{hint}") from None
        output, _ = await process.communicate()
        if process.returncode != 0:
            raise ConfigError(f"exec plugin {plugin.command}: failed with exit code {process.returncode}")
        return self._parse(output)

    def _exec_info(self, interactive: bool) -> str:
        spec: dict[str, Any] = {"interactive": interactive}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = _cluster_info(self._config, self._plugin)
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(info).decode()

    def _parse(self, output: bytes) -> ExecCredential:
        name = f"exec plugin {self._plugin.command}"
        try:
            answer = msgspec.json.decode(output, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ConfigError(f"{name}: did not print an ExecCredential") from None
        if answer.kind != "ExecCredential" or answer.api_version != self._plugin.api_version:
            said = f"{answer.api_version} {answer.kind}".strip() or "nothing"
            raise ConfigError(f"{name}: printed {said}, not {self._plugin.api_version} ExecCredential")
        status = answer.status
        if status is None:
            raise ConfigError(f"{name}: status: required")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise ConfigError(f"{name}: status: clientCertificateData and clientKeyData go together")
        if not status.token and not status.client_certificate_data:
            raise ConfigError(f"{name}: status: holds neither a token nor a client certificate")
        return ExecCredential(
            token=status.token,
            cert=status.client_certificate_data.encode(),
            key=status.client_key_data.encode(),
            expires=_expiry(status.expiration_timestamp, name),
        )


def _expiry(text: str | None, name: str) -> float | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ConfigError(f'{name}: status.expirationTimestamp: "{text}" is not a time') from None


def _cluster_info(config: ClientConfig, plugin: ExecConfig) -> dict[str, Any]:
    info: dict[str, Any] = {"server": config.server}
    if config.tls_server_name:
        info["tls-server-name"] = config.tls_server_name
    if config.insecure:
        info["insecure-skip-tls-verify"] = True
    authority = config.ca_data or (Path(config.ca_file).read_bytes() if config.ca_file else b"")
    if authority:
        info["certificate-authority-data"] = base64.b64encode(authority).decode()
    if config.proxy_url:
        info["proxy-url"] = config.proxy_url
    if plugin.cluster_extension is not None:
        info["config"] = plugin.cluster_extension
    return info
