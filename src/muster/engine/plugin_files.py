"""Plugins of users in files that the configuration names: found, checked and loaded at the start.

A file is code that the scheduler runs, so it comes from the file system only, and nobody but its owner may be able to
write it. A plugin must be a function of what it is given: a file that imports anything but arithmetic and the types of
the scheduler, or that opens, evaluates or imports at run time, is refused before it is run. That keeps mistakes
out, not malice.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from muster.scheduler.framework.plugin import Plugin
from muster.scheduler.plugins import DEFAULT
from muster.scheduler.runtime.config import BUILT_IN

FIELD = "pluginFiles"
ALLOWED = frozenset(
    (
        "__future__",
        "abc",
        "collections",
        "dataclasses",
        "enum",
        "fractions",
        "functools",
        "itertools",
        "math",
        "muster.api",
        "muster.scheduler",
        "numpy",
        "operator",
        "re",
        "typing",
    )
)
_BUILT_IN = frozenset((*(kind.name for kind in DEFAULT), *BUILT_IN))
FORBIDDEN_CALLS = frozenset(("__import__", "breakpoint", "compile", "eval", "exec", "input", "open"))

Tree = Mapping[str, Any]


class BadPluginFile(ValueError):
    """A file that cannot be used; the message names the field, the file and the line."""


def plugins_in(configuration: Tree) -> list[type[Plugin]]:
    """The plugin classes of all files that the profiles of a configuration name, each file once."""
    files: dict[Path, str] = {}
    for where, path in _named(configuration):
        files.setdefault(path, where)
    return [kind for path, where in files.items() for kind in _load(path, where)]


def _named(configuration: Tree) -> Iterator[tuple[str, Path]]:
    for at, profile in enumerate(_items(configuration.get("profiles"))):
        for index, entry in enumerate(_items(profile.get("pluginConfig"))):
            if entry.get("name") != "Muster" or not isinstance(entry.get("args"), Mapping):
                continue
            where = f"profiles[{at}].pluginConfig[{index}].args.{FIELD}"
            found = cast("Tree", entry["args"]).get(FIELD)
            if found is None:
                continue
            if not isinstance(found, list) or not all(isinstance(each, str) for each in cast("list[Any]", found)):
                raise BadPluginFile(f"{where}: {found!r} is no list of paths")
            for place, path in enumerate(cast("list[str]", found)):
                if not os.path.isabs(path):  # noqa: PTH117
                    raise BadPluginFile(f"{where}[{place}]: {path!r} is no absolute path")
                yield f"{where}[{place}]", Path(path)


def _items(value: Any) -> list[Tree]:
    items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Tree", each) for each in items if isinstance(each, Mapping)]


def _load(path: Path, where: str) -> list[type[Plugin]]:
    try:
        _check_owner(path, where)
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadPluginFile(f"{where}: {path} cannot be read: {error}") from None
    try:
        tree = ast.parse(source, str(path))
    except (SyntaxError, ValueError) as error:
        raise BadPluginFile(f"{where}: {path} is not Python: {error}") from None
    for fault, line in _faults(tree):
        why = f"{fault}; a plugin computes from what it is given and nothing else"
        raise BadPluginFile(f"{where}: {path}, line {line}: {why}")
    found = [kind for kind in _run(path, where).values() if _is_plugin(kind)]
    if not found:
        raise BadPluginFile(f"{where}: {path} defines no class derived from Plugin")
    for kind in found:
        name: str = getattr(kind, "name", "")
        if not name or name in _BUILT_IN:
            why = f"is called {name}, as a plugin of Kubernetes is" if name else "has no name"
            raise BadPluginFile(f"{where}: {path}: class {kind.__name__} {why}")
    return found


def _check_owner(path: Path, where: str) -> None:
    """Refuse a file that somebody else than its owner may write, or whose owner is neither root nor this process."""
    state = path.stat()
    if not stat.S_ISREG(state.st_mode):
        raise BadPluginFile(f"{where}: {path} is no file")
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise BadPluginFile(f"{where}: {path} can be written by others than its owner; chmod go-w")
    if state.st_uid not in (0, os.geteuid()):
        raise BadPluginFile(f"{where}: {path} belongs to another user")


def _faults(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """What a plugin may not do, with the line it does it at."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _imported(node):
                if not any(name == each or name.startswith(f"{each}.") for each in ALLOWED):
                    yield f"import of {name} is not allowed", node.lineno
        elif isinstance(node, ast.Name) and node.id in FORBIDDEN_CALLS:
            yield f"{node.id} is not available to plugins", node.lineno


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return ["." if node.level else str(node.module)]


def _run(path: Path, where: str) -> dict[str, Any]:
    name = f"muster_plugin_file_{re.sub('[^a-z0-9]', '_', path.stem.lower())}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadPluginFile(f"{where}: {path} does not end in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadPluginFile(f"{where}: {path} cannot be loaded: {type(error).__name__}: {error}") from error
    return vars(module)


def _is_plugin(kind: Any) -> bool:
    """Whether something is a plugin class of the file itself, not one that it imported."""
    return isinstance(kind, type) and issubclass(kind, Plugin) and kind.__module__.startswith("muster_plugin_file_")
