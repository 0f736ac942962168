"""JSON merge patch: the examples of RFC 7386, and its laws."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.errors import ApiError
from muster.server.patch import merge_patch

VALUES = st.recursive(
    st.none() | st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_rfc(target: Any, patch: Any, expected: Any):
    assert merge_patch.apply(target, patch) == expected


@pytest.mark.parametrize("patch", [[], "x", 1, None])
def test_a_patch_that_is_no_object_is_a_bad_request(patch: Any):
    with pytest.raises(ApiError) as caught:
        merge_patch.apply({}, patch)
    assert caught.value.code == 400


@given(OBJECTS, OBJECTS)
def test_patching_twice_is_patching_once_and_changes_nothing_it_was_given(target: Any, patch: Any):
    before = json.dumps([target, patch])

    once = merge_patch.apply(target, patch)

    assert merge_patch.apply(once, patch) == once
    assert json.dumps([target, patch]) == before
