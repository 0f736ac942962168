"""Credential plugins."""

import sys
from pathlib import Path

import msgspec
import pytest

from muster.client.config import ClientConfig, ConfigError, ExecConfig
from muster.client.exec_plugin import ExecPlugin

V1 = "client.authentication.k8s.io/v1"


def a_plugin(tmp_path: Path, status: object, *, config: ClientConfig | None = None, now: float = 0.0, **more: object):
    """A plugin that counts its runs, keeps what it was told, and prints a credential with the status."""
    script = tmp_path / "plugin.py"
    answer = msgspec.json.encode({"apiVersion": V1, "kind": "ExecCredential", "status": status}).decode()
    script.write_text(
        "import os, pathlib, sys\n"
        f"here = pathlib.Path({str(tmp_path)!r})\n"
        "(here / 'info').write_text(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "with (here / 'runs').open('a') as f: f.write(os.environ.get('EXTRA', '-'))\n"
        f"sys.stdout.write({answer!r})\n"
    )
    plugin = ExecConfig(command=sys.executable, args=(str(script),), **more)  # type: ignore[arg-type]
    return ExecPlugin(config or ClientConfig("https://x"), plugin, lambda: now)


def runs(tmp_path: Path) -> str:
    return (tmp_path / "runs").read_text()


async def test_the_token_is_kept_until_it_expires(tmp_path: Path) -> None:
    plugin = a_plugin(tmp_path, {"token": "t", "expirationTimestamp": "2030-01-01T00:00:00Z"})
    assert (await plugin.credential()).token == "t"
    assert (await plugin.credential()).token == "t"
    assert runs(tmp_path) == "-"


async def test_an_expired_credential_is_asked_for_again(tmp_path: Path) -> None:
    plugin = a_plugin(tmp_path, {"token": "t", "expirationTimestamp": "1970-01-01T00:00:05Z"})
    await plugin.credential()
    await plugin.credential()
    assert runs(tmp_path) == "--"


async def test_a_refused_credential_is_asked_for_again(tmp_path: Path) -> None:
    plugin = a_plugin(tmp_path, {"token": "t"})
    await plugin.credential()
    plugin.forget()
    await plugin.credential()
    assert runs(tmp_path) == "--"


async def test_the_plugin_gets_its_environment_and_the_cluster_when_asked(tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_bytes(b"PEM")
    config = ClientConfig("https://dev", ca_file=str(ca), tls_server_name="k8s")
    plugin = a_plugin(
        tmp_path,
        {"token": "t"},
        config=config,
        env=(("EXTRA", "e"),),
        provide_cluster_info=True,
        cluster_extension={"audience": "x"},
    )
    await plugin.credential()
    info = msgspec.json.decode((tmp_path / "info").read_bytes())
    assert runs(tmp_path) == "e"
    assert info["apiVersion"] == V1
    assert info["spec"]["interactive"] is False
    assert info["spec"]["cluster"] == {
        "server": "https://dev",
        "tls-server-name": "k8s",
        "certificate-authority-data": "UEVN",
        "config": {"audience": "x"},
    }


async def test_a_certificate_is_taken_as_well(tmp_path: Path) -> None:
    status = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}
    credential = await a_plugin(tmp_path, status).credential()
    assert (credential.cert, credential.key) == (b"CERT", b"KEY")


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        ({}, "neither a token nor a client certificate"),
        (None, "status: required"),
        ({"clientCertificateData": "x"}, "go together"),
        ({"token": "secret-word", "expirationTimestamp": "soon"}, "is not a time"),
        ({"token": 5}, "did not print an ExecCredential"),
    ],
)
async def test_a_useless_answer_is_refused_without_repeating_it(tmp_path: Path, status: object, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        await a_plugin(tmp_path, status).credential()
    assert "secret-word" not in str(caught.value)


async def test_another_version_is_refused(tmp_path: Path) -> None:
    plugin = a_plugin(tmp_path, {"token": "t"}, api_version="client.authentication.k8s.io/v1beta1")
    with pytest.raises(ConfigError, match=r"not client.authentication.k8s.io/v1beta1"):
        await plugin.credential()


async def test_a_missing_command_shows_the_install_hint() -> None:
    plugin = ExecPlugin(ClientConfig("https://x"), ExecConfig("no-such-plugin", install_hint="get it from the shop"))
    with pytest.raises(ConfigError, match=r"No such file(.|\n)*get it from the shop"):
        await plugin.credential()


async def test_a_failing_command_is_named() -> None:
    plugin = ExecPlugin(ClientConfig("https://x"), ExecConfig("false"))
    with pytest.raises(ConfigError, match="exec plugin false: failed with exit code 1"):
        await plugin.credential()


async def test_a_plugin_that_must_have_a_terminal_is_not_run_without_one() -> None:
    plugin = ExecPlugin(ClientConfig("https://x"), ExecConfig("true", interactive_mode="Always"))
    with pytest.raises(ConfigError, match="needs a terminal"):
        await plugin.credential()
