"""Expressions compile and evaluate as Kubernetes 1.37 does it, within a bound on their cost."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cel import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    TIMESTAMP,
    CompileError,
    Environment,
    EvaluationError,
    ListOf,
    MapOf,
    ObjectOf,
    OptionalOf,
    Program,
    Text,
    compile,
)
from muster.cel.functions.quantity import CODEC, QUANTITY
from tests.cel.expressions import FAILING, REFUSED, TRUE

_SPEC = ObjectOf(
    "test.Spec",
    {
        "replicas": INT,
        "names": ListOf(Text(max_length=10), max_items=5),
        "ports": MapOf(INT),
        "rows": ListOf(ListOf(INT)),
        "since": TIMESTAMP,
        "ratio": DOUBLE,
        "some__dash__name": Text(),
        "__namespace__": Text(),
        "anything": DYN,
    },
)
_ENVIRONMENT = Environment(
    {"self": ObjectOf("test.Self", {"spec": _SPEC}), "oldSelf": OptionalOf(INT), "free": DYN, "amount": QUANTITY}
)
_VALUES: dict[str, Any] = {
    "self": {
        "spec": {
            "replicas": 3,
            "names": ["ab", "c"],
            "ports": {"http": 80},
            "rows": [[1], [2]],
            "since": "2026-01-02T00:00:00Z",
            "ratio": 3,
            "some-name": "dash",
            "namespace": "here",
            "anything": {"deep": [1, 2]},
        }
    },
    "oldSelf": [5],
    "free": "hello",
    "amount": CODEC.encode(10**9),
}


def _compiled(text: str) -> Program:
    program = compile(text, _ENVIRONMENT)
    assert isinstance(program, Program), program
    return program


def _value(text: str, **values: Any) -> Any:
    return _compiled(text).evaluate(_VALUES | values)


@pytest.mark.parametrize("text", TRUE)
def test_expressions_have_the_value_that_kubernetes_gives_them(text: str) -> None:
    assert _value(text) is True


@pytest.mark.parametrize(("text", "complaint"), REFUSED.items())
def test_what_kubernetes_refuses_is_refused_in_its_words(text: str, complaint: str) -> None:
    refused = compile(text, _ENVIRONMENT)
    assert isinstance(refused, CompileError)
    assert complaint in refused.message


@pytest.mark.parametrize(("text", "complaint"), FAILING.items())
def test_an_expression_without_a_value_says_why_as_kubernetes_does(text: str, complaint: str) -> None:
    with pytest.raises(EvaluationError, match=complaint):
        _value(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("self.spec.replicas > 2", True),
        ("self.spec.names.all(n, n.size() < 3)", True),
        ("self.spec.ports.http == 80 && 'http' in self.spec.ports", True),
        ("self.spec.rows.all(r, r.all(i, i > 0))", True),
        ("self.spec.since < timestamp('2026-01-03T00:00:00Z')", True),
        ("self.spec.since.getFullYear()", 2026),
        ("self.spec.ratio / 2.0", 1.5),
        ("self.spec.some__dash__name", "dash"),
        ("self.spec.__namespace__", "here"),
        ("self.spec.anything.deep[1]", 2),
        ("oldSelf.hasValue() && oldSelf.value() == 5", True),
        ("free + '!'", "hello!"),
        ("amount.add(1).asInteger()", 2),
    ],
)
def test_values_are_read_by_their_declared_types(text: str, expected: Any) -> None:
    assert _value(text) == expected


def test_an_absent_optional_has_no_value() -> None:
    assert _value("oldSelf.orValue(7)", oldSelf=[]) == 7


def test_a_null_property_counts_as_absent() -> None:
    assert _value("has(self.spec.replicas)", self={"spec": {"replicas": None}}) is False


def test_an_unknown_field_is_refused_with_its_place() -> None:
    refused = compile("self.spec.nope == 1", _ENVIRONMENT)
    assert refused == CompileError("ERROR: <input>:1:10: undefined field 'nope'\n | self.spec.nope == 1\n | .........^")


def test_a_result_of_another_type_is_refused() -> None:
    assert compile("1 + 1", _ENVIRONMENT, returns=BOOL) == CompileError("must evaluate to bool but got int")
    assert isinstance(compile("free", _ENVIRONMENT, returns=BOOL), Program)  # only known later


def test_a_text_that_is_too_long_is_refused() -> None:
    refused = compile("'" + "a" * 10_240 + "' == ''", _ENVIRONMENT)
    assert isinstance(refused, CompileError)
    assert "longer than 10240 bytes" in refused.message


def test_an_evaluation_that_would_cost_too_much_is_not_started() -> None:
    numbers = list(range(3000))
    text = "free.all(i, free.all(j, i != j || i == j))"
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        _value(text, free=numbers)
    assert _value(text, free=numbers[:50]) is True


def test_the_cost_is_that_of_the_parts_that_are_used() -> None:
    big = {"used": [1, 2, 3], "unused": "x" * 2_000_000}
    assert _value("free.used.all(i, free.used.all(j, i + j > 0))", free=big) is True


def test_more_iterations_than_the_evaluator_allows_are_an_error() -> None:
    with pytest.raises(EvaluationError, match="more than 10000 iterations"):
        _value("free.all(i, i >= 0)", free=[1] * 10_001)


def test_a_list_as_long_as_a_number_says_is_refused_when_the_number_is_not_known() -> None:
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        _value("lists.range(free).size() > 0", free=10**12)


def test_variables_that_an_expression_names_are_known() -> None:
    assert _compiled("self.spec.replicas > 1 && free == 'a'").names == {"self", "free"}
