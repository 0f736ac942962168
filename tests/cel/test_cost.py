"""The estimate follows the sizes that a schema allows, and keeps what is evaluated short."""

from __future__ import annotations

import time

import pytest

from muster.cel import DYN, INT, Environment, EvaluationError, ListOf, MapOf, ObjectOf, Program, Text, compile

_LIMIT = 10_000_000  # Kubernetes' limit for one rule of a custom resource


def _cost(text: str, **variables: ListOf | MapOf | Text | ObjectOf) -> int:
    program = compile(text, Environment(variables))
    assert isinstance(program, Program), program
    return program.cost()


def test_a_loop_costs_its_body_times_the_size_of_its_list() -> None:
    ten = _cost("self.all(x, x > 1)", self=ListOf(INT, max_items=10))
    hundred = _cost("self.all(x, x > 1)", self=ListOf(INT, max_items=100))
    assert 9 < (hundred - 2) / (ten - 2) < 11


def test_nested_loops_without_limits_are_far_above_the_limit_of_kubernetes() -> None:
    text = "self.all(x, self.all(y, x == y))"
    assert _cost(text, self=ListOf(INT)) > 100 * _LIMIT
    assert _cost(text, self=ListOf(INT, max_items=100)) < _LIMIT


def test_the_length_of_a_text_counts() -> None:
    short = _cost("self.matches('^a+$')", self=Text(max_length=10))
    long = _cost("self.matches('^a+$')", self=Text(max_length=10_000))
    assert long > 300 * short


def test_a_field_that_is_not_limited_is_as_large_as_a_request() -> None:
    assert _cost("self.a.contains('x')", self=ObjectOf("test.A", {"a": Text()})) > 300_000


def test_a_look_up_in_a_map_does_not_depend_on_its_size() -> None:
    assert _cost("'a' in self", self=MapOf(INT)) < 10
    assert _cost("'a' in self", self=ListOf(Text())) > 100_000


def test_elements_of_what_a_loop_builds_have_the_size_of_what_it_adds() -> None:
    small = _cost("self.map(x, x + 'y').all(z, z.contains('a'))", self=ListOf(Text(max_length=100), max_items=100))
    large = _cost("self.map(x, x + 'y').all(z, z.contains('a'))", self=ListOf(Text(max_length=10_000), max_items=100))
    assert large > 20 * small


_NUMBERS = list(range(2000))
_WORST = [
    ("free.all(i, cidr('10.0.0.0/8').containsIP('10.1.1.1'))", _NUMBERS),
    ("free.map(i, [i]).size() > 0", _NUMBERS),
    ("free.all(i, free.indexOf(i) >= 0)", _NUMBERS),
    ("free.all(i, 'abc'.find('b') == 'b')", _NUMBERS * 2),
    ("free.split('').size() > 0", "a" * 2_000_000),
    ("free.findAll('a').size() > 0", "a" * 2_000_000),
    ("free == free", {str(number): [number] * 50 for number in range(5000)}),
    ("free.sum() > 0", list(range(400_000))),
    ("free.size() > 0", [[number] for number in range(200_000)]),
]


@pytest.mark.parametrize(("text", "value"), _WORST)
def test_what_would_take_long_is_refused_in_a_fraction_of_that_time(text: str, value: object) -> None:
    program = compile(text, Environment({"free": DYN}))
    assert isinstance(program, Program), program
    start = time.process_time()
    list(range(2_000_000))  # what this machine does in some tens of milliseconds
    calibration = time.process_time() - start
    start = time.process_time()
    with pytest.raises(EvaluationError, match="cost limit exceeded"):
        program.evaluate({"free": value})
    assert time.process_time() - start < 5 * calibration
