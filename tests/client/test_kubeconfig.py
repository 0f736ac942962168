"""Reading kubeconfig files the way kubectl does."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.client.config import ConfigError
from muster.client.kubeconfig import in_cluster, load

B64 = base64.b64encode(b"PEM").decode()


def a_kubeconfig(path: Path, *, cluster: Any = None, user: Any = None, name: str = "dev", **more: Any) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": f"{name}-cluster", "cluster": cluster or {"server": f"https://{name}:6443"}}],
        "users": [{"name": f"{name}-user", "user": user or {"token": f"{name}-token"}}],
        "contexts": [{"name": name, "context": {"cluster": f"{name}-cluster", "user": f"{name}-user"}}],
        **more,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def test_an_explicit_path_is_read_alone(tmp_path: Path) -> None:
    a_kubeconfig(tmp_path / "other", name="other")
    config = load(a_kubeconfig(tmp_path / "mine"), environ={"KUBECONFIG": str(tmp_path / "other")})
    assert (config.server, config.token, config.context) == ("https://dev:6443", "dev-token", "dev")


def test_the_first_file_of_the_path_list_wins(tmp_path: Path) -> None:
    first = a_kubeconfig(tmp_path / "a", user={"token": "first"})
    second = a_kubeconfig(tmp_path / "b", user={"token": "second"})
    assert load(environ={"KUBECONFIG": f"{first}:{second}"}).token == "first"


def test_contexts_clusters_and_users_come_together_from_several_files(tmp_path: Path) -> None:
    first = a_kubeconfig(tmp_path / "a")
    second = a_kubeconfig(tmp_path / "b", name="prod")
    config = load(context="prod", environ={"KUBECONFIG": f"{first}:{second}"})
    assert (config.server, config.token) == ("https://prod:6443", "prod-token")


def test_missing_files_in_the_path_list_are_passed_over(tmp_path: Path) -> None:
    there = a_kubeconfig(tmp_path / "there")
    assert load(environ={"KUBECONFIG": f"{tmp_path}/gone:{there}"}).context == "dev"


def test_the_home_directory_is_looked_at_last(tmp_path: Path) -> None:
    a_kubeconfig(tmp_path / ".kube" / "config")
    assert load(environ={"HOME": str(tmp_path)}).server == "https://dev:6443"


def test_relative_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    cluster = {"server": "https://dev:6443", "certificate-authority": "pki/ca.crt"}
    user = {"client-certificate": "me.crt", "client-key": "/abs/me.key", "tokenFile": "token"}
    config = load(a_kubeconfig(tmp_path / "deep" / "config", cluster=cluster, user=user))
    assert config.ca_file == str(tmp_path / "deep" / "pki" / "ca.crt")
    assert config.cert_file == str(tmp_path / "deep" / "me.crt")
    assert config.key_file == "/abs/me.key"
    assert config.token_file == str(tmp_path / "deep" / "token")


def test_inline_data_wins_over_files(tmp_path: Path) -> None:
    cluster = {"server": "https://dev", "certificate-authority": "ca.crt", "certificate-authority-data": B64}
    user = {"client-certificate-data": B64, "client-certificate": "x", "client-key-data": B64}
    config = load(a_kubeconfig(tmp_path / "c", cluster=cluster, user=user))
    assert (config.ca_file, config.ca_data) == ("", b"PEM")
    assert (config.cert_file, config.cert_data, config.key_data) == ("", b"PEM", b"PEM")


def test_every_cluster_and_user_option_is_carried(tmp_path: Path) -> None:
    cluster = {
        "server": "https://10.0.0.1/",
        "tls-server-name": "kubernetes",
        "insecure-skip-tls-verify": True,
        "proxy-url": "http://proxy:3128",
        "disable-compression": True,
    }
    user = {
        "username": "u",
        "password": "p",
        "as": "jane",
        "as-groups": ["g"],
        "as-uid": "7",
        "as-user-extra": {"k": ["v"]},
    }
    config = load(a_kubeconfig(tmp_path / "c", cluster=cluster, user=user))
    assert config.server == "https://10.0.0.1"
    assert (config.tls_server_name, config.insecure, config.proxy_url) == ("kubernetes", True, "http://proxy:3128")
    assert (config.username, config.password, config.compress) == ("u", "p", False)
    assert config.impersonate is not None
    assert (config.impersonate.user, config.impersonate.groups, config.impersonate.uid) == ("jane", ("g",), "7")
    assert config.impersonate.extra == (("k", ("v",)),)


def test_an_exec_plugin_with_a_path_is_beside_the_kubeconfig(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./get-token",
        "args": ["--for", "me"],
        "env": [{"name": "A", "value": "1"}],
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    config = load(a_kubeconfig(tmp_path / "c", user={"exec": plugin}))
    assert config.exec is not None
    assert config.exec.command == str(tmp_path / "get-token")
    assert (config.exec.args, config.exec.env) == (("--for", "me"), (("A", "1"),))
    assert (config.exec.provide_cluster_info, config.exec.interactive_mode) == (True, "Never")


def test_secrets_do_not_show_when_a_config_is_printed(tmp_path: Path) -> None:
    config = load(a_kubeconfig(tmp_path / "c", user={"username": "u", "password": "hunter2"}))
    assert "hunter2" not in repr(config)
    assert "dev-token" not in repr(load(a_kubeconfig(tmp_path / "d")))


@pytest.mark.parametrize(
    ("cluster", "user", "complaint"),
    [
        ({"server": ""}, {}, "clusters[dev-cluster].cluster.server: required"),
        ({"server": "dev:6443"}, {}, "must start with https:// or http://"),
        ({"server": "https://x", "certificate-authority-data": "%%"}, {}, "certificate-authority-data: not base64"),
        (
            {"server": "https://x", "insecure-skip-tls-verify": True, "certificate-authority": "ca"},
            {},
            "insecure-skip-tls-verify: cannot be true together",
        ),
        ({"server": "https://x", "proxy-url": "socks5://p"}, {}, "proxy-url"),
        (None, {"client-certificate": "a"}, "users[dev-user].user.client-key: required"),
        (None, {"client-key": "a"}, "users[dev-user].user.client-certificate: required"),
        (None, {"auth-provider": {"name": "gcp"}}, "auth-provider: no longer exists"),
        (None, {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}, "exec.command: required"),
        (None, {"exec": {"command": "x", "apiVersion": "v0"}}, 'exec.apiVersion: "v0" is not one of'),
        (None, {"token": "t", "username": "u"}, "username: cannot be combined with a token"),
        (None, {"token": 5}, "users[0].user.token"),
    ],
)
def test_a_bad_field_is_named_with_its_file(tmp_path: Path, cluster: Any, user: Any, complaint: str) -> None:
    file = a_kubeconfig(tmp_path / "bad", cluster=cluster, user=user or {"token": "t"})
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert complaint in str(caught.value)
    assert str(file) in str(caught.value)


def test_an_unknown_context_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'context: "prod" does not exist \(known: dev\)'):
        load(a_kubeconfig(tmp_path / "c"), "prod")


def test_a_context_that_names_a_missing_cluster_says_which(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'contexts\[dev\].context.cluster: "dev-cluster" does not exist'):
        load(a_kubeconfig(tmp_path / "c", clusters=[]))


def test_without_a_current_context_the_only_one_is_taken(tmp_path: Path) -> None:
    assert load(a_kubeconfig(tmp_path / "c", **{"current-context": ""})).context == "dev"


def test_a_missing_explicit_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such kubeconfig file"):
        load(tmp_path / "gone")


def test_broken_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("clusters:\n- name: [\n")
    with pytest.raises(ConfigError, match=r"not YAML: .* on line 3"):
        load(tmp_path / "c")


def test_nothing_to_read_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"looked at {tmp_path}/.kube/config"):
        load(environ={"HOME": str(tmp_path)})


def test_inside_a_pod_the_service_account_is_used(tmp_path: Path) -> None:
    for name, text in (("token", "abc"), ("ca.crt", "PEM"), ("namespace", "jobs\n")):
        (tmp_path / name).write_text(text)
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    config = in_cluster(tmp_path, environ=env)
    assert (config.server, config.namespace) == ("https://[fd00::1]:6443", "jobs")
    assert config.token_file == str(tmp_path / "token")


def test_a_pod_without_a_mounted_token_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is the service account token mounted"):
        in_cluster(tmp_path, environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
