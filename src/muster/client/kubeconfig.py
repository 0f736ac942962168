"""Finds and reads kubeconfig files the way kubectl does.

An explicit path is read alone and must exist. Otherwise the files of `KUBECONFIG` are merged (the first file to name
a cluster, user or context wins), else `~/.kube/config` is read, else the service account of the pod we run in is used.
Relative paths inside a file are relative to that file. Every complaint names the file and the field.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import yaml

from muster.client.config import ClientConfig, ConfigError, ExecConfig, Impersonation, NoKubeconfig

SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount"
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


class _Kebab(msgspec.Struct, rename="kebab", frozen=True):
    """Kubeconfig spells its fields with dashes."""


class _Extension(_Kebab, frozen=True):
    name: str = ""
    extension: Any = None


class _Cluster(_Kebab, frozen=True):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[_Extension, ...] | None = None


class _EnvVar(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, rename="camel", frozen=True):
    command: str = ""
    args: tuple[str, ...] | None = None
    env: tuple[_EnvVar, ...] | None = None
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class _User(_Kebab, frozen=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: tuple[str, ...] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, tuple[str, ...]] | None = msgspec.field(default=None, name="as-user-extra")
    username: str = ""
    password: str = ""
    exec: _Exec | None = None
    auth_provider: Any = None


class _Context(_Kebab, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Kebab, frozen=True):
    name: str
    cluster: _Cluster | None = None


class _NamedUser(_Kebab, frozen=True):
    name: str
    user: _User | None = None


class _NamedContext(_Kebab, frozen=True):
    name: str
    context: _Context | None = None


class _File(_Kebab, frozen=True):
    current_context: str | None = None
    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None
    contexts: tuple[_NamedContext, ...] | None = None


class _From(NamedTuple):
    """A merged entry and the file it was read from."""

    file: Path
    value: Any


class _Merged:
    """Several files as one: for every name the first file that has it."""

    def __init__(self) -> None:
        self.current = ""
        self.clusters: dict[str, _From] = {}
        self.users: dict[str, _From] = {}
        self.contexts: dict[str, _From] = {}
        self.files: list[Path] = []

    def add(self, path: Path, file: _File) -> None:
        self.files.append(path)
        self.current = self.current or file.current_context or ""
        for cluster in file.clusters or ():
            self.clusters.setdefault(cluster.name, _From(path, cluster.cluster or _Cluster()))
        for user in file.users or ():
            self.users.setdefault(user.name, _From(path, user.user or _User()))
        for context in file.contexts or ():
            self.contexts.setdefault(context.name, _From(path, context.context or _Context()))

    @property
    def where(self) -> str:
        return ", ".join(map(str, self.files))


def load(
    path: str | os.PathLike[str] | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
) -> ClientConfig:
    """The client configuration that kubectl would use with the same arguments and environment."""
    env = os.environ if environ is None else environ
    merged = _Merged()
    for file in _candidates(path, env):
        merged.add(file, _read(file))
    if merged.files:
        return _select(merged, context)
    if context is None and env.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environ=env)
    looked = env.get("KUBECONFIG") or str(_default_file(env))
    raise NoKubeconfig(f"no kubeconfig found: looked at {looked}; pass --kubeconfig FILE or set KUBECONFIG")


def in_cluster(
    directory: str | os.PathLike[str] = SERVICE_ACCOUNT_DIR, *, environ: Mapping[str, str] | None = None
) -> ClientConfig:
    """The service account of the pod that this process runs in; its token and CA are read again as they rotate."""
    env = os.environ if environ is None else environ
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("not inside a cluster: KUBERNETES_SERVICE_HOST is not set")
    base = Path(directory)
    for name in ("token", "ca.crt"):
        if not (base / name).is_file():
            raise ConfigError(f"{base / name}: missing; is the service account token mounted?")
    namespace = base / "namespace"
    shown = f"[{host}]" if ":" in host else host
    return ClientConfig(
        server=f"https://{shown}:{port}",
        ca_file=str(base / "ca.crt"),
        token_file=str(base / "token"),
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        context="in-cluster",
    )


def _default_file(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home()) / ".kube" / "config"


def _candidates(path: str | os.PathLike[str] | None, env: Mapping[str, str]) -> list[Path]:
    if path is not None:
        file = Path(path).expanduser()
        if not file.is_file():
            raise ConfigError(f"{file}: no such kubeconfig file")
        return [file]
    listed = [Path(part).expanduser() for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    if not listed:
        listed = [_default_file(env)]
    return [file for file in listed if file.is_file()]


def _read(path: Path) -> _File:
    loader = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        # S506: the loader is one of PyYAML's two safe ones.
        data = yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not YAML: {_first_line(error)}") from None
    try:
        return msgspec.convert(data or {}, _File)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$.")
        field = place.rstrip("`") or "(top level)"
        raise ConfigError(f"{path}: {field}: {message.lower().replace('`', '')}") from None


def _first_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "unreadable"
    return f"{problem} on line {mark.line + 1}" if mark is not None else str(problem)


def _select(merged: _Merged, wanted: str | None) -> ClientConfig:
    name = wanted or merged.current
    if not name:
        if len(merged.contexts) != 1:
            raise ConfigError(f"{merged.where}: current-context: not set; name one with --context")
        name = next(iter(merged.contexts))
    context = _named(merged.contexts, name, "context", merged.where)
    ctx = cast(_Context, context.value)
    cluster = _named(merged.clusters, ctx.cluster, f"contexts[{name}].context.cluster", str(context.file))
    user = _From(context.file, _User())
    if ctx.user:
        user = _named(merged.users, ctx.user, f"contexts[{name}].context.user", str(context.file))
    return _config(name, ctx, cluster, f"clusters[{ctx.cluster}].cluster", user, f"users[{ctx.user}].user")


def _named(entries: dict[str, _From], name: str, field: str, where: str) -> _From:
    found = entries.get(name)
    if found is None:
        known = ", ".join(sorted(entries)) or "none"
        raise ConfigError(f'{where}: {field}: "{name}" does not exist (known: {known})')
    return found


def _config(
    name: str, ctx: _Context, cluster_from: _From, at_cluster: str, user_from: _From, at_user: str
) -> ClientConfig:
    cluster, user = cast(_Cluster, cluster_from.value), cast(_User, user_from.value)
    place, who = f"{cluster_from.file}: {at_cluster}", f"{user_from.file}: {at_user}"
    _check_cluster(cluster, place)
    _check_user(user, who)
    return ClientConfig(
        server=cluster.server.rstrip("/"),
        ca_file="" if cluster.certificate_authority_data else _path(cluster_from.file, cluster.certificate_authority),
        ca_data=_data(cluster.certificate_authority_data, f"{place}.certificate-authority-data"),
        insecure=cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name,
        proxy_url=cluster.proxy_url,
        cert_file="" if user.client_certificate_data else _path(user_from.file, user.client_certificate),
        cert_data=_data(user.client_certificate_data, f"{who}.client-certificate-data"),
        key_file="" if user.client_key_data else _path(user_from.file, user.client_key),
        key_data=_data(user.client_key_data, f"{who}.client-key-data"),
        token=user.token,
        token_file=_path(user_from.file, user.token_file),
        username=user.username,
        password=user.password,
        exec=_exec(user.exec, cluster, user_from.file, f"{who}.exec"),
        impersonate=_impersonation(user),
        namespace=ctx.namespace or "default",
        context=name,
        compress=not cluster.disable_compression,
    )


def _check_cluster(cluster: _Cluster, place: str) -> None:
    if not cluster.server:
        raise ConfigError(f"{place}.server: required")
    if not cluster.server.startswith(("https://", "http://")):
        raise ConfigError(f'{place}.server: "{cluster.server}" must start with https:// or http://')
    if cluster.insecure_skip_tls_verify and (cluster.certificate_authority or cluster.certificate_authority_data):
        raise ConfigError(f"{place}.insecure-skip-tls-verify: cannot be true together with a certificate authority")
    if cluster.proxy_url and not cluster.proxy_url.startswith(("http://", "https://")):
        raise ConfigError(f'{place}.proxy-url: "{cluster.proxy_url}" must start with http:// or https://')


def _check_user(user: _User, who: str) -> None:
    if user.auth_provider is not None:
        raise ConfigError(f"{who}.auth-provider: no longer exists in Kubernetes; use an exec credential plugin")
    has_cert = bool(user.client_certificate or user.client_certificate_data)
    has_key = bool(user.client_key or user.client_key_data)
    if has_cert and not has_key:
        raise ConfigError(f"{who}.client-key: required with a client certificate")
    if has_key and not has_cert:
        raise ConfigError(f"{who}.client-certificate: required with a client key")
    if user.exec is not None and (user.token or user.username):
        raise ConfigError(f"{who}.exec: cannot be combined with a token or a password")
    if (user.token or user.token_file) and user.username:
        raise ConfigError(f"{who}.username: cannot be combined with a token")


def _path(file: Path, value: str) -> str:
    return str(file.parent / Path(value).expanduser()) if value else ""


def _data(value: str, place: str) -> bytes:
    if not value:
        return b""
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{place}: not base64") from None


def _exec(plugin: _Exec | None, cluster: _Cluster, file: Path, place: str) -> ExecConfig | None:
    if plugin is None:
        return None
    if not plugin.command:
        raise ConfigError(f"{place}.command: required")
    if plugin.api_version not in _EXEC_VERSIONS:
        raise ConfigError(f'{place}.apiVersion: "{plugin.api_version}" is not one of {", ".join(_EXEC_VERSIONS)}')
    if plugin.interactive_mode not in _INTERACTIVE_MODES:
        raise ConfigError(
            f'{place}.interactiveMode: "{plugin.interactive_mode}" is not one of {", ".join(_INTERACTIVE_MODES)}'
        )
    extension = next((e.extension for e in cluster.extensions or () if e.name == EXEC_EXTENSION), None)
    # A bare name is looked up on PATH; anything with a slash is a file beside the kubeconfig.
    command = _path(file, plugin.command) if "/" in plugin.command else plugin.command
    return ExecConfig(
        command=command,
        args=plugin.args or (),
        env=tuple((item.name, item.value) for item in plugin.env or ()),
        api_version=plugin.api_version,
        interactive_mode=plugin.interactive_mode,
        provide_cluster_info=plugin.provide_cluster_info,
        install_hint=plugin.install_hint,
        cluster_extension=extension,
    )


def _impersonation(user: _User) -> Impersonation | None:
    if not (user.impersonate or user.impersonate_groups or user.impersonate_uid or user.impersonate_extra):
        return None
    return Impersonation(
        user=user.impersonate,
        uid=user.impersonate_uid,
        groups=user.impersonate_groups or (),
        extra=tuple((user.impersonate_extra or {}).items()),
    )
