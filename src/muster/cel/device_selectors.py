"""Selectors of devices: expressions over one device, as device classes and resource claims have them.

A domain that a device has no attributes of is an empty map, as in Kubernetes: `device.attributes["other"].?x` is none,
not an error, while `"other" in device.attributes` is false.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from muster.cel import evaluator
from muster.cel.environment import Environment
from muster.cel.errors import CompileError, EvaluationError
from muster.cel.functions import quantity, semver
from muster.cel.program import LONGEST, Program, compile
from muster.cel.types import BOOL, DYN, MapOf, ObjectOf, Text

_NO_KEY = "no such key: "
_MOST_VALUES = 32  # attributes and capacities of a device
_HINT = (
    "consider using CEL optional chaining (.? followed by orValue())"
    " or guarding the check with has() for optional fields"
)

Domains = Mapping[str, Mapping[str, Any]]  # values by domain and name


@cache
def environment() -> Environment:
    """Where selectors of devices are compiled."""
    by_name = MapOf(DYN, _MOST_VALUES, key=Text(max_length=32))
    amounts = MapOf(quantity.QUANTITY, _MOST_VALUES, key=Text(max_length=32))
    fields = {
        "driver": Text(max_length=63),
        "allowMultipleAllocations": BOOL,
        "attributes": MapOf(by_name, _MOST_VALUES, key=Text(max_length=63)),
        "capacity": MapOf(amounts, _MOST_VALUES, key=Text(max_length=63)),
    }
    return Environment({"device": ObjectOf("Device", fields)})


def load() -> None:
    """Make everything ready that the first selector needs, where the evaluator is installed."""
    if not evaluator.missing():
        environment()


def compile_selector(text: str) -> Program | CompileError:
    """A selector, or why the text is none."""
    return compile(text, environment(), returns=BOOL)


def too_long(text: str) -> bool:
    """Whether a selector is longer than the API takes."""
    return len(text.encode()) > LONGEST


def amount(nanos: int) -> bytes:
    """A capacity, in billionths of a unit, as selectors take it."""
    return quantity.CODEC.encode(nanos)


def version(text: str) -> bytes:
    """A semantic version as selectors take it. Raises ValueError for anything else."""
    return semver.CODEC.encode(semver.parse(text))


def selects(program: Program, driver: str, shareable: bool, attributes: Domains, capacity: Domains) -> bool:
    """Whether a selector selects a device. Raises EvaluationError where that has no answer."""
    device: dict[str, Any] = {
        "driver": driver,
        "allowMultipleAllocations": shareable,
        "attributes": dict(attributes),
        "capacity": dict(capacity),
    }
    added: set[str] = set()
    while True:
        try:
            found = program.evaluate({"device": device})
            break
        except EvaluationError as error:
            _, missing, key = str(error).partition(_NO_KEY)
            if not missing:
                raise
            if key in added:  # no domain, but a name in one
                raise EvaluationError(f"{error}; {_HINT}") from None
            added.add(key)
            for values in (device["attributes"], device["capacity"]):
                values.setdefault(key, {})
    if not isinstance(found, bool):
        raise EvaluationError(f"must evaluate to bool, not {type(found).__name__}")
    return found
