"""The JSONPath of printer columns, selectable fields and scales: fields, indexes, filters by one comparison.

`.spec.containers[0].image`, `.metadata.annotations['a/b']`, `.status.conditions[?(@.type=="Ready")].status`, `[*]` and
`..name` are understood; a definition with any other path is answered with a warning, and its column stays empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

_NAME = re.compile(r"\.((?:[^.\[\]\\]|\\.)+)")
_RECURSIVE = re.compile(r"\.\.((?:[^.\[\]\\]|\\.)+)")
_INDEX = re.compile(r"\[(-?\d+)\]")
_SLICE = re.compile(r"\[(-?\d*):(-?\d*)(?::(\d+))?\]")
_QUOTED = re.compile(r"""\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]""")
_EVERY = re.compile(r"\[\*\]|\.\*")
_FILTER = re.compile(r"\[\?\(\s*@((?:\.[^\s=!<>()]+|\['[^']*'\])*)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?)\s*)?\)\]")

Step = Callable[[Any], Iterator[Any]]


@lru_cache(maxsize=4096)
def parse(path: str) -> tuple[Step, ...]:
    """The steps of a path; ValueError says what is not understood."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    text = text.removeprefix("$")
    if text and text[0] not in ".[":
        raise ValueError(f"expected a path that starts with a dot: {path}")
    steps: list[Step] = []
    at = 1 if text == "." else 0
    while at < len(text):
        step, at = _step(text, at)
        steps.append(step)
    return tuple(steps)


def _step(text: str, at: int) -> tuple[Step, int]:
    if found := _RECURSIVE.match(text, at):
        return _below(_unescaped(found[1])), found.end()
    if found := _EVERY.match(text, at):
        return _each, found.end()
    if found := _NAME.match(text, at):
        return _member(_unescaped(found[1])), found.end()
    if found := _INDEX.match(text, at):
        return _element(int(found[1])), found.end()
    if found := _SLICE.match(text, at):
        bounds = [int(each) if each else None for each in found.groups()]
        return _slice(slice(*bounds)), found.end()
    if found := _QUOTED.match(text, at):
        return _member(_unescaped(found[1] if found[1] is not None else found[2])), found.end()
    if found := _FILTER.match(text, at):
        return _filter(parse(found[1]) if found[1] else (), found[2] or "", found[3] or ""), found.end()
    raise ValueError(f"not understood: {text[at:]}")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _member(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if type(value) is dict and name in value:
            yield value[name]

    return step


def _element(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if type(value) is list and -len(value) <= index < len(value):
            yield value[index]

    return step


def _slice(bounds: slice) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if type(value) is list:
            yield from value[bounds]

    return step


def _each(value: Any) -> Iterator[Any]:
    if type(value) is dict:
        yield from value.values()
    elif type(value) is list:
        yield from value


def _below(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if type(value) is dict and name in value:
            yield value[name]
        for each in _each(value):
            yield from step(each)

    return step


def _filter(inner: tuple[Step, ...], operator: str, text: str) -> Step:
    wanted = _literal(text)

    def step(value: Any) -> Iterator[Any]:
        for each in _each(value):
            found = list(_walk(each, inner))
            if (not operator and found) or any(_compare(one, operator, wanted) for one in found):
                yield each

    return step


def _literal(text: str) -> Any:
    if len(text) >= 2 and text[0] in "\"'" and text[-1] == text[0]:
        return _unescaped(text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        return text


def _compare(one: Any, operator: str, other: Any) -> bool:
    if operator in ("==", "!="):
        return (one == other and type(one) is type(other)) is (operator == "==")
    if type(one) not in (int, float, str) or isinstance(one, str) is not isinstance(other, str):
        return False
    return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}.get(operator, False)


def _walk(value: Any, steps: tuple[Step, ...]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    for each in steps[0](value):
        yield from _walk(each, steps[1:])


def complaint(path: str) -> str:
    """Why a path is not understood; empty where it is."""
    try:
        parse(path)
    except ValueError as wrong:
        return str(wrong)
    return ""


def find(value: Any, path: str) -> list[Any]:
    """Every value at a path."""
    return list(_walk(value, parse(path)))


def simple_fields(path: str) -> tuple[str, ...] | None:
    """The names of a path that is fields only, such as `.spec.replicas`; None for any other."""
    if not path.startswith("."):
        return None
    names = path[1:].split(".")
    return tuple(names) if all(names) and not any(mark in path for mark in "[]\\*'\"()@?") else None
