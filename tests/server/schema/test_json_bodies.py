"""Repeated fields of a body are found, however the body is written."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muster.server.json_bodies import decode_json

TEXTS = st.text(alphabet='ab":\\{[é', max_size=4)


def written(value: Any) -> str:
    """JSON of nested lists of pairs, which can say what no dict can: the same key twice."""
    if isinstance(value, list):
        return "[" + ",".join(written(each) for each in value) + "]"
    if isinstance(value, tuple):
        return "{" + ",".join(f"{json.dumps(key)}{colon}{written(each)}" for key, colon, each in value) + "}"
    return json.dumps(value, ensure_ascii=False)


def repeats(value: Any) -> bool:
    if isinstance(value, list):
        return any(repeats(each) for each in value)
    if isinstance(value, tuple):
        names = [key for key, _, _ in value]
        return len(set(names)) < len(names) or any(repeats(each) for _, _, each in value)
    return False


def pairs(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(TEXTS, st.sampled_from([":", ":", ": ", " :"]), children), max_size=4).map(tuple)


BODIES = st.recursive(TEXTS | st.integers(), lambda each: st.lists(each, max_size=3) | pairs(each), max_leaves=12)


@given(BODIES)
def test_a_body_has_repeated_fields_exactly_when_some_are_found(body: Any) -> None:
    text = written(body)
    value, repeated = decode_json(text.encode())
    assert value == json.loads(text)
    if not repeats(body):
        assert repeated == []


@given(BODIES, TEXTS)
def test_a_field_that_comes_twice_is_always_found(body: Any, name: str) -> None:
    text = written((("outer", ":", ((name, ":", body), (name, ":", 1))),))
    assert decode_json(text.encode())[1]
