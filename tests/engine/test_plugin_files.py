"""Plugins in files: loaded where the configuration names them, refused where they could do harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.engine import options
from muster.engine.plugin_files import BadPluginFile, plugins_in

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugins" / "quiet_nodes.py"
PLUGIN = """
from muster.scheduler.framework.plugin import DependsOn, Plugin

class Mine(Plugin):
    name = "Mine"
    filter_depends_on = DependsOn.NODE
    def filter(self, shape, cluster, slots):
        return cluster.alive[slots]
"""


def configuration(*files: Path | str, enabled: str = "") -> dict[str, Any]:
    plugins = {"multiPoint": {"enabled": [{"name": enabled}]}} if enabled else {}
    args = {"pluginFiles": [str(path) for path in files]}
    profile = {"plugins": plugins, "pluginConfig": [{"name": "Muster", "args": args}]}
    return options.source(
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    )


def written(directory: Path, text: str, mode: int = 0o644) -> Path:
    path = directory / "mine.py"
    path.write_text(text)
    path.chmod(mode)
    return path


def refusal(found: dict[str, Any]) -> str:
    with pytest.raises(BadPluginFile) as caught:
        plugins_in(found)
    return str(caught.value)


def test_the_example_is_enabled_by_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, EXAMPLE.read_text())
    config = options.config(configuration(path, enabled="QuietNodes"))
    assert "QuietNodes" in {plugin.name for plugin in config.profiles["muster"].plugins}


def test_a_file_that_no_profile_enables_changes_nothing(tmp_path: Path) -> None:
    config = options.config(configuration(written(tmp_path, PLUGIN)))
    assert "Mine" not in {plugin.name for plugin in config.profiles["muster"].plugins}


def test_a_file_named_twice_is_loaded_once(tmp_path: Path) -> None:
    path = written(tmp_path, PLUGIN)
    assert [kind.name for kind in plugins_in(configuration(path, path))] == ["Mine"]


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    assert "chmod go-w" in refusal(configuration(written(tmp_path, PLUGIN, mode)))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import socket", "import of socket"),
        ("import os.path", "import of os.path"),
        ("from random import random", "import of random"),
        ("from . import other", "import of ."),
        ("open('/etc/passwd')", "open is not available"),
        ("found = eval", "eval is not available"),
        ("__import__('os')", "__import__ is not available"),
    ],
)
def test_a_file_that_reaches_outside_is_refused_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    text = refusal(configuration(written(tmp_path, f"{PLUGIN}\n{line}\n")))
    assert said in text
    assert "line 10" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (", "is not Python"),
        ("x = 1", "defines no class derived from Plugin"),
        ("1 / 0", "ZeroDivisionError"),
        (PLUGIN.replace('name = "Mine"', 'name = "NodeAffinity"'), "as a plugin of Kubernetes is"),
        (PLUGIN.replace('name = "Mine"', 'name = ""'), "has no name"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(configuration(written(tmp_path, text)))


def test_a_path_must_be_absolute_and_a_file(tmp_path: Path) -> None:
    assert "profiles[0].pluginConfig[0].args.pluginFiles[0]" in refusal(configuration("mine.py"))
    assert "no absolute path" in refusal(configuration("mine.py"))
    assert "cannot be read" in refusal(configuration(tmp_path / "none.py"))
    assert "is no file" in refusal(configuration(tmp_path))
