"""Fields, metrics and other words in tables, by what the heading of the table's first column says:

`field of the configuration`  a field of KubeSchedulerConfiguration: `a.b`, `profiles[].c`, `pluginConfig[NAME].args.d`
`field`                       a field of the JSON that the section's command prints
`command`                     with the heading `each entry of the JSON`: the fields of that command's JSON
`attribute`, `method`         of the base class of the Python example on the page
`action`                      of a suggestion of `muster explain`
`gate`                        a feature gate
`code`                        an exit code
`name (prefix …)`             a metric

Blocks of YAML that hold a KubeSchedulerConfiguration are loaded; those that hold a group are validated.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import msgspec
import yaml

from muster.api.gates import KNOWN as GATES
from muster.api.manifests import check as check_manifest
from muster.cli import exits
from muster.scheduler.explain.explanation import Explanation
from muster.scheduler.explain.suggestions import ACTIONS
from muster.scheduler.runtime.config import API_VERSION, KIND, load
from muster.testing import plugin
from muster.views.queue import QueueRow
from muster.views.simulate import Answer
from muster.views.topology import TopologyMap
from muster.views.tree import GroupRow
from tests.doc_checks.code_names import words_of_the_sources
from tests.doc_checks.markdown import Page, Problem, Table, inline_code

JSON_OF = {"explain": Explanation, "simulate": Answer, "queue": QueueRow, "tree": GroupRow, "topology": TopologyMap}
CONFIGURATION_FIELD = "field of the configuration"

_IDENTIFIER = re.compile(r"[a-z]+")
_METRIC = re.compile(r"(?<![\w./])(?:scheduler|muster)_\w+")
_SEGMENT = re.compile(r"(\w+)(\[(\w*)\])?")

Tree = dict[str, Any]
TableCheck = Callable[[Page, Table], Iterator[Problem]]


def check(page: Page, metrics: Set[str]) -> Iterator[Problem]:
    """Every field, metric, gate, action and exit code on the page that does not exist."""
    for table in page.tables:
        found = _check_of(table, metrics)
        if found is not None:
            yield from found(page, table)
            yield from _other_columns(page, table)
    yield from _yaml(page)
    yield from _metric_names(page, metrics)


def _check_of(table: Table, metrics: Set[str]) -> TableCheck | None:
    first = table.header[0]
    if first.startswith("name (prefix"):
        return lambda page, table: _metrics_table(page, table, metrics)
    if first == "command":
        return _command_json if "each entry of the JSON" in table.header else None
    return _CHECKS.get(first.strip("`"))


def _names(page: Page, table: Table, known: Set[str], what: str) -> Iterator[Problem]:
    """The words between backquotes in the first column (or the cells themselves), each a known one."""
    for line, row in table.rows:
        for name in inline_code(row[0]) or [row[0]]:
            if name not in known:
                yield page.problem(line, f"there is no {what} {name}")


def _other_columns(page: Page, table: Table) -> Iterator[Problem]:
    """The words between backquotes in the other columns (nested fields, labels, values): the sources have them."""
    for line, row in table.rows:
        for name in (name for cell in row[1:] for name in inline_code(cell)):
            if _IDENTIFIER.fullmatch(name) and name not in words_of_the_sources():
                yield page.problem(line, f"the sources do not have the word {name}")


# --- JSON ------------------------------------------------------------------------------------------


def _json_fields(page: Page, table: Table) -> Iterator[Problem]:
    command = re.search(r"`muster (\w+)", table.section)
    kind = JSON_OF.get(command.group(1)) if command is not None else None
    if kind is None:
        yield page.problem(table.rows[0][0], f"it is not known which command prints the JSON of {table.section!r}")
        return
    yield from _names(page, table, {field.encode_name for field in msgspec.structs.fields(kind)}, "field")


def _command_json(page: Page, table: Table) -> Iterator[Problem]:
    for line, row in table.rows:
        [command] = inline_code(row[0])
        known = set(_nested(JSON_OF[command]))
        for name in inline_code(row[1]):
            if name not in known:
                yield page.problem(line, f"the JSON of {command} has no field {name}")


def _nested(kind: Any) -> Iterator[str]:
    """The fields of a struct and of the structs in it."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            yield field.encode_name
            yield from _nested(field.type)
    for inner in getattr(kind, "__args__", ()):
        yield from _nested(inner)


# --- the Python example ----------------------------------------------------------------------------


def examples(page: Page) -> Iterator[type[Any]]:
    """The classes that the Python on a page defines."""
    for block in page.blocks:
        if block.language == "python":
            found: Tree = {"__name__": "example"}
            exec(block.text, found)  # noqa: S102
            yield from (each for each in found.values() if isinstance(each, type) and each.__module__ == "example")


def _base(page: Page) -> type[Any]:
    """What the last class of the example is derived from."""
    return list(examples(page))[-1].__mro__[1]


def _attributes(page: Page, table: Table) -> Iterator[Problem]:
    base = _base(page)
    known = {name for kind in base.__mro__ for name in (*vars(kind), *inspect.get_annotations(kind))}
    yield from _names(page, table, known, f"attribute of {base.__name__}")


def _methods(page: Page, table: Table) -> Iterator[Problem]:
    """`name(a, b)`: a method with these parameters."""
    base = _base(page)
    for line, row in table.rows:
        for call in inline_code(row[0]):
            name, parenthesis, rest = call.partition("(")
            method: Any = getattr(base, name, None)
            if method is None:
                yield page.problem(line, f"{base.__name__} has no method {name}")
            elif parenthesis:
                known = [each for each in inspect.signature(method).parameters if each != "self"]
                if [each.strip() for each in rest.rstrip(")").split(",")] != known:
                    yield page.problem(line, f"{name} takes {', '.join(known)}")


# --- the configuration -----------------------------------------------------------------------------


def _configuration_fields(page: Page, table: Table) -> Iterator[Problem]:
    for line, row in table.rows:
        for path in inline_code(row[0]):
            error = _load_error(_with_field(path))
            if error:
                yield page.problem(line, f"{path}: {error}")


def _with_field(path: str) -> Tree:
    """A configuration in which only one field is named, without a value."""
    made: Any = None
    prefix = "" if not path.startswith(("pluginConfig", "plugins", "schedulerName")) else "profiles[]."
    for name, brackets, key in reversed([found.groups() for found in _SEGMENT.finditer(prefix + path)]):
        if brackets:
            made = [{**({"name": key} if key else {}), **(made or {})}]
        made = {name: made}
    return {"apiVersion": API_VERSION, "kind": KIND, **made}


def _load_error(config: Tree, rules: tuple[type[Any], ...] = ()) -> str:
    try:
        load(config, extra=rules)
    except (ValueError, TypeError, AttributeError) as error:
        return str(error)
    return ""


def _yaml(page: Page) -> Iterator[Problem]:
    for block in page.blocks:
        if block.language not in ("yaml", "yml"):
            continue
        for text in re.split(r"^---$", block.text, flags=re.MULTILINE):
            try:
                obj = yaml.safe_load(text)
            except yaml.YAMLError:
                continue  # an ellipsis stands for the rest
            if not isinstance(obj, Mapping):
                continue
            if obj.get("kind") == KIND:
                errors = [_load_error(dict(obj), tuple(examples(page)))]
            else:
                errors = [str(error) for error in check_manifest(dict(obj)) or ()]
            yield from (page.problem(block.line, error) for error in errors if error)


# --- metrics ---------------------------------------------------------------------------------------


def _metric(text: str) -> str:
    return text.partition("{")[0]


def _metrics_table(page: Page, table: Table, metrics: Set[str]) -> Iterator[Problem]:
    for line, name in documented_metrics(table):
        if name not in metrics:
            yield page.problem(line, f"there is no metric {name}")


def documented_metrics(table: Table) -> Iterator[tuple[int, str]]:
    """The full names in a table of metrics, with their lines."""
    [prefix] = inline_code(table.header[0])
    for line, row in table.rows:
        yield from ((line, prefix + _metric(name)) for name in inline_code(row[0]))


FIXTURES = frozenset(name for name in vars(plugin) if name.startswith("muster_"))


def _metric_names(page: Page, metrics: Set[str]) -> Iterator[Problem]:
    for code in page.code:
        for name in _METRIC.findall(code.text):
            if name not in metrics | FIXTURES and not any(
                each.startswith(name) for each in metrics if name.endswith("_")
            ):
                yield page.problem(code.line, f"there is no metric {name}")


# --- which check for which table -------------------------------------------------------------------


def _fixed(known: Set[str], what: str) -> TableCheck:
    return lambda page, table: _names(page, table, known, what)


_CODES = {str(code) for name, code in vars(exits).items() if name.isupper() and isinstance(code, int)}
_CHECKS: Mapping[str, TableCheck] = {
    CONFIGURATION_FIELD: _configuration_fields,
    "field": _json_fields,
    "attribute": _attributes,
    "method": _methods,
    "action": _fixed(frozenset(ACTIONS), "action"),
    "gate": _fixed(frozenset(GATES), "feature gate"),
    "code": _fixed(_CODES, "exit code"),
}
