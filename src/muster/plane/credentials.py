"""The credentials of one control plane: CAs, server certificate, administrator certificate and kubeconfig.

In a data directory everything is kept under `pki/`, readable by its owner only; without one it is kept in memory.
"""

from __future__ import annotations

import base64
import socket
from pathlib import Path
from typing import Any

import yaml

from muster.certificates import (
    DEFAULT_NAMES,
    Authority,
    Pair,
    expires_soon,
    private_directory,
    write_private,
)
from muster.client.config import ClientConfig
from muster.server.auth.tokens import TokenSigner

ADMIN = "kubernetes-admin"
MASTERS = "system:masters"
FRONT_PROXY = "front-proxy-client"
_FRONT_PROXY_CA = ("front-proxy-ca", "muster-front-proxy-ca")  # file and name


class Credentials:
    """The CA, the token signing key and the certificates of one control plane."""

    def __init__(self, data: Path | None = None) -> None:
        self._directory = private_directory(data / "pki") if data is not None else None
        if self._directory is None:
            self.authority, self.signer = Authority.create(), TokenSigner.create()
            self.front_proxy = Authority.create(_FRONT_PROXY_CA[1])
        else:
            self.authority, self.signer = Authority.open(self._directory), TokenSigner.open(self._directory)
            self.front_proxy = Authority.open(self._directory, *_FRONT_PROXY_CA)

    def for_front_proxy(self) -> Pair:
        """The certificate by which other API servers know this one; fresh at every start, of a CA that is kept."""
        return self.front_proxy.for_client(FRONT_PROXY)

    def for_server(self, host: str) -> Pair:
        """A server certificate for the usual names and the address we listen on; fresh at every start."""
        reached_as = socket.gethostname() if host in ("0.0.0.0", "::") else host
        return self.authority.for_server((*DEFAULT_NAMES, reached_as))

    def for_admin(self) -> Pair:
        """The administrator's certificate; kept, so that a kubeconfig that was copied goes on working."""
        if self._directory is None:
            return self.authority.for_client(ADMIN, [MASTERS])
        cert, key = self._directory / "admin.crt", self._directory / "admin.key"
        if cert.exists() and key.exists() and not expires_soon(cert.read_bytes()):
            return Pair(cert.read_bytes(), key.read_bytes())
        pair = self.authority.for_client(ADMIN, [MASTERS])
        write_private(key, pair.key)
        write_private(cert, pair.cert)
        return pair

    def kubeconfig(self, url: str, *, name: str = "muster") -> bytes:
        """A kubeconfig with the administrator's certificate inside."""
        pair = self.for_admin()
        content: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": name, "cluster": {"server": url, "certificate-authority-data": _b64(self.authority.pem)}}
            ],
            "users": [
                {
                    "name": f"{name}-admin",
                    "user": {"client-certificate-data": _b64(pair.cert), "client-key-data": _b64(pair.key)},
                }
            ],
            "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-admin"}}],
            "current-context": name,
        }
        return yaml.safe_dump(content, sort_keys=False).encode()

    def client_config(self, url: str, user: str = ADMIN, groups: tuple[str, ...] = (MASTERS,)) -> ClientConfig:
        """A client configuration with a certificate of its own, for clients in this process."""
        pair = self.authority.for_client(user, groups)
        return ClientConfig(url, ca_data=self.authority.pem, cert_data=pair.cert, key_data=pair.key)

    def write_kubeconfig(self, path: Path, url: str) -> None:
        """Write the kubeconfig where only its owner can read it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, self.kubeconfig(url))


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()
