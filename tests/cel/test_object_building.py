"""Expressions that build objects of types nobody declares."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cel import DYN, CompileError, Environment, Program
from muster.cel.object_building import compile_building

_ENVIRONMENT = Environment({"object": DYN, "variables.x": DYN})
_VALUES = {"object": {"n": 3, "items": [{"name": "a"}]}, "variables.x": 7}


def _built(text: str) -> Any:
    program = compile_building(text, _ENVIRONMENT, ("Object", "JSONPatch"))
    assert isinstance(program, Program), program
    return program.evaluate(_VALUES)


def _complaint(text: str) -> str:
    refused = compile_building(text, _ENVIRONMENT, ("Object", "JSONPatch"))
    assert isinstance(refused, CompileError)
    return refused.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Object{spec: Object.spec{n: object.n + variables.x}}", {"spec": {"n": 10}}),
        ("Object{?n: object.?n, ?absent: object.?absent}", {"n": 3}),
        ("Object{items: object.items.map(i, Object.items{name: i.name + '!'})}", {"items": [{"name": "a!"}]}),
        ("object.n > 1 ? Object{} : Object{a: 1}", {}),
        ("[JSONPatch{op: 'add', path: '/a', value: {'b': [1]}}]", [{"op": "add", "path": "/a", "value": {"b": [1]}}]),
        ("Object{a: sets.contains([1], [1]), b: optional.of(2).value()}", {"a": True, "b": 2}),
        ("Object{a: format.dns1123Label().validate('A').hasValue()}", {"a": True}),
    ],
)
def test_objects_are_maps(text: str, expected: Any) -> None:
    assert _built(text) == expected


def test_names_that_nobody_knows_are_refused_with_their_place() -> None:
    assert _complaint("Object{a: nope}") == (
        "ERROR: <input>:1:11: undeclared reference to 'nope' (in container '')\n | Object{a: nope}\n | ..........^"
    )
    assert "undeclared reference to 'Other'" in _complaint("Other{}")
    assert "undeclared reference to 'i'" in _complaint("object.items.all(i, true) ? i : Object{}")
    assert "Syntax error" in _complaint("Object{")


def test_the_form_of_the_result_is_known() -> None:
    def result(text: str) -> str:
        program = compile_building(text, _ENVIRONMENT, ("Object", "JSONPatch"))
        assert isinstance(program, Program)
        return program.result

    assert result("Object{}") == "Object"
    assert result("true ? Object{} : Object{a: 1}") == "Object"
    assert result("[JSONPatch{op: 'x'}]") == "list(JSONPatch)"
    assert result("1") == "int"
    assert result("object.n") == "dyn"
