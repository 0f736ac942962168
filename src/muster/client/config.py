"""Everything an HTTP client must know about one API server and one identity, as a value.

Secrets never show in its `repr`. The value says where credentials come from; `muster.client.credentials`
reads them, and reads them again when they rotate.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class ConfigError(Exception):
    """A client configuration that cannot be used; the message names the file and the field."""


class NoKubeconfig(ConfigError):
    """There is no kubeconfig anywhere it is looked for."""


@dataclass(frozen=True, slots=True)
class ExecConfig:
    """A credential plugin: a command that prints an ExecCredential."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    api_version: str = "client.authentication.k8s.io/v1"
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False
    install_hint: str = ""
    cluster_extension: object = None


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Who to act as; the server checks that this is allowed."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """One server, one identity, and how hard to lean on it. `qps` 0 means no client-side limit."""

    server: str
    ca_file: str = ""
    ca_data: bytes = field(default=b"", repr=False)
    insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    cert_file: str = ""
    cert_data: bytes = field(default=b"", repr=False)
    key_file: str = ""
    key_data: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    exec: ExecConfig | None = None
    impersonate: Impersonation | None = None
    namespace: str = "default"
    context: str = ""
    qps: float = 0.0
    burst: int = 0
    timeout: float = 60.0
    compress: bool = True
    connections: int = 128
    user_agent: str = "muster"
