"""No modules import each other in a circle, imports that only the type checker sees included.

import-linter checks the layers of packages; this checks single modules, also inside a layer.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import muster

Graph = dict[str, frozenset[str]]
_SOURCE = Path(muster.__file__).parent


def _modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(_SOURCE.rglob("*.py")):
        parts = path.relative_to(_SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imported(module: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules that a module names in import statements, wherever in the file these are."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for statement in ast.walk(ast.parse(path.read_text())):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names if alias.name in known)
        elif isinstance(statement, ast.ImportFrom):
            source = statement.module or ""
            if statement.level:
                above = package.split(".")[: len(package.split(".")) - statement.level + 1]
                source = ".".join([*above, source] if source else above)
            for alias in statement.names:
                below = f"{source}.{alias.name}"
                if below in known:
                    yield below
                elif source in known:
                    yield source


def _import_graph() -> Graph:
    known = _modules()
    return {module: frozenset(_imported(module, path, known)) - {module} for module, path in known.items()}


def _cycles(graph: Graph) -> list[list[str]]:
    """The sets of modules that reach each other (strongly connected components of more than one, after Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in graph[module]:
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            members = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(members) > 1:
                cycles.append(sorted(members))

    for module in graph:
        if module not in order:
            visit(module)
    return cycles


@pytest.fixture(scope="module")
def cycles() -> list[list[str]]:
    return _cycles(_import_graph())


@pytest.mark.parametrize(
    "package",
    [
        "muster.api",
        "muster.cel",
        "muster.certificates",
        "muster.logs",
        "muster.loop_watch",
        "muster.cli",
        "muster.client",
        "muster.controllers",
        "muster.dashboard",
        "muster.engine",
        "muster.nodes",
        "muster.plane",
        "muster.scheduler",
        "muster.server",
        "muster.testing",
        "muster.views",
    ],
)
def test_no_module_of_a_package_is_part_of_an_import_cycle(package: str, cycles: list[list[str]]) -> None:
    inside = [cycle for cycle in cycles if any(f"{module}.".startswith(f"{package}.") for module in cycle)]
    assert inside == []


def test_every_package_is_checked() -> None:
    marks = test_no_module_of_a_package_is_part_of_an_import_cycle.pytestmark  # type: ignore[attr-defined]
    listed = {getattr(entry, "values", (entry,))[0] for mark in marks for entry in mark.args[1]}
    assert {".".join(module.split(".")[:2]) for module in _modules()} - {"muster"} == listed


def test_a_cycle_is_found() -> None:
    graph = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"b", "d"}), "d": frozenset[str]()}
    assert _cycles(graph) == [["b", "c"]]


def test_imports_for_the_type_checker_and_inside_functions_count(tmp_path: Path) -> None:
    text = (
        "import p.one\n"
        "if TYPE_CHECKING:\n    from p import two\n"
        "def f():\n    from p.three import name\n"
        "from . import four\nfrom .five import name\n"
    )
    (tmp_path / "here.py").write_text(text)
    known = dict.fromkeys(("p", "p.one", "p.two", "p.three", "p.four", "p.five"), tmp_path)

    found = set(_imported("p.here", tmp_path / "here.py", known))

    assert found == {"p.one", "p.two", "p.three", "p.four", "p.five"}
