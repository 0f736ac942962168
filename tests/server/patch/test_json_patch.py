"""JSON patch: RFC 6902 as Kubernetes reads it, its limits, and a naive model."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.errors import ApiError
from muster.server.patch import json_patch
from tests.build.examples import examples


def patched(document: dict[str, Any], *operations: dict[str, Any]) -> Any:
    return json_patch.apply(document, list(operations))


def attempt(run: Callable[[], Any]) -> Any:
    """What the call gives, or the ApiError it raises."""
    try:
        return run()
    except ApiError as error:
        return error


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": [2]}, {"a": [1, [2]]}),
        ({"a": 1, "b": 2}, {"op": "remove", "path": "/b"}, {"a": 1}),
        ({"a": [1, 2, 3]}, {"op": "remove", "path": "/a/1"}, {"a": [1, 3]}),
        ({"a": [1, 2, 3]}, {"op": "remove", "path": "/a/-1"}, {"a": [1, 2]}),
        ({"a": 1}, {"op": "replace", "path": "/a", "value": None}, {"a": None}),
        ({"a": 1}, {"op": "replace", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"op": "copy", "from": "/b", "path": "/c"}, {"a": 1, "c": None}),
        ({"a": 1}, {"op": "test", "path": "/b", "value": None}, {"a": 1}),
        ({"a": {"b": 1}, "c": {}}, {"op": "move", "from": "/a/b", "path": "/c/d"}, {"a": {}, "c": {"d": 1}}),
        ({"a": [1, 2, 3]}, {"op": "move", "from": "/a/0", "path": "/a/2"}, {"a": [2, 3, 1]}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": 1, "m~n": 2}, {"op": "replace", "path": "/a~1b", "value": 3}, {"a/b": 3, "m~n": 2}),
        ({"m~n": 2}, {"op": "remove", "path": "/m~0n"}, {}),
        ({"": 1}, {"op": "replace", "path": "/", "value": 2}, {"": 2}),
        ({"a": [1, {"b": 2}]}, {"op": "test", "path": "/a", "value": [1, {"b": 2.0}]}, {"a": [1, {"b": 2}]}),
        ({"a": 1}, {"op": "replace", "path": "", "value": {"b": 2}}, {"b": 2}),
    ],
)
def test_an_operation_does_what_kubernetes_does(document: Any, operation: Any, expected: Any):
    assert patched(document, operation) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/a", "value": True},
        {"op": "test", "path": "/missing", "value": 1},
        {"op": "remove", "path": "/missing"},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "/missing/x", "value": 1},
        {"op": "add", "path": "/missing/x", "value": 1},
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "add", "path": "/list/3", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "move", "from": "/o", "path": "/o/p"},
        {"op": "move", "from": "/missing", "path": "/b"},
        {"op": "copy", "from": "/missing/x", "path": "/b"},
    ],
)
def test_an_operation_that_does_not_fit_the_object_is_a_422(operation: dict[str, Any]):
    with pytest.raises(ApiError) as caught:
        patched({"a": 1, "list": [1, 2], "o": {}}, operation)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")


@pytest.mark.parametrize(
    "patch",
    [
        {},
        "x",
        [1],
        [{"op": "add"}],
        [{"op": "add", "path": "/a"}],
        [{"op": "move", "path": "/a"}],
        [{"op": "jump", "path": "/a"}],
        [{"op": "remove", "path": "a"}],
        [{"op": "remove", "path": 1}],
        [{"op": "replace", "path": "", "value": []}],
    ],
)
def test_something_that_is_no_json_patch_is_a_bad_request(patch: Any):
    with pytest.raises(ApiError) as caught:
        json_patch.apply({"a": 1}, patch)
    assert caught.value.code == 400


def test_more_operations_than_kubernetes_allows_are_too_large():
    with pytest.raises(ApiError) as caught:
        json_patch.apply({}, [{"op": "add", "path": "/a", "value": 1}] * 10_001)
    assert caught.value.code == 413


def test_copying_has_a_budget():
    grow = {"op": "copy", "from": "/a", "path": "/a/-"}

    with pytest.raises(ApiError, match="accumulated size increase of copy"):
        json_patch.apply({"a": ["x" * 1000]}, [grow] * 100)


def test_a_copy_does_not_change_with_its_source():
    result = patched(
        {"a": {"n": 1}},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "replace", "path": "/a/n", "value": 2},
    )

    assert result == {"a": {"n": 2}, "b": {"n": 1}}


def test_many_operations_on_a_long_list_cost_what_they_touch():
    operations = [{"op": "replace", "path": f"/a/{index}", "value": index} for index in range(10_000)]

    assert json_patch.apply({"a": [0] * 10_000}, operations)["a"] == list(range(10_000))


# --- a naive model: deep copies, and paths resolved by hand ---------------------------------------------


def naive(document: Any, operations: list[dict[str, Any]]) -> Any:
    root = {"root": copy.deepcopy(document)}
    for operation in operations:
        keys = ["root", *operation["path"].split("/")[1:]]
        holder, last = walk(root, keys[:-1]), keys[-1]
        name = operation["op"]
        if name == "test":
            assert read(holder, last) == operation["value"]
        elif name == "remove":
            del holder[last if isinstance(holder, dict) else position(last, holder)]
        elif name == "replace":
            holder[last if isinstance(holder, dict) else position(last, holder)] = copy.deepcopy(operation["value"])
        else:
            value = operation.get("value")
            if name in ("copy", "move"):
                source = ["root", *operation["from"].split("/")[1:]]
                value = copy.deepcopy(read(walk(root, source[:-1]), source[-1]))
                assert name == "copy" or keys == source or keys[: len(source)] != source
                if name == "move":
                    above = walk(root, source[:-1])
                    del above[source[-1] if isinstance(above, dict) else position(source[-1], above)]
                    holder = walk(root, keys[:-1])
            if isinstance(holder, dict):
                holder[last] = copy.deepcopy(value)
            else:
                assert isinstance(holder, list)
                holder.insert(len(holder) if last == "-" else position(last, [*holder, None]), copy.deepcopy(value))
    return root["root"]


def read(holder: Any, last: str) -> Any:
    return holder.get(last) if isinstance(holder, dict) else holder[position(last, holder)]


def walk(value: Any, keys: list[str]) -> Any:
    for key in keys:
        value = value[key] if isinstance(value, dict) else value[position(key, value)]
    return value


def position(token: str, holder: list[Any]) -> int:
    assert isinstance(holder, list)
    assert token.isdigit()
    assert int(token) < len(holder)
    return int(token)


LEAVES = st.integers(0, 3) | st.text("ab", max_size=2)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab01"), inner, max_size=3)
)
DOCUMENTS = st.dictionaries(st.sampled_from("ab01"), VALUES, max_size=3)
PATHS = st.lists(st.sampled_from(["a", "b", "0", "1", "-"]), min_size=1, max_size=3).map(
    lambda keys: "/" + "/".join(keys)
)
OPERATIONS = st.lists(
    st.fixed_dictionaries({"op": st.sampled_from(["add", "replace", "test"]), "path": PATHS, "value": VALUES})
    | st.fixed_dictionaries({"op": st.sampled_from(["move", "copy"]), "path": PATHS, "from": PATHS})
    | st.fixed_dictionaries({"op": st.just("remove"), "path": PATHS}),
    max_size=4,
)


@settings(max_examples=examples(300))
@given(DOCUMENTS, OPERATIONS)
def test_it_agrees_with_a_naive_model_and_changes_nothing_it_was_given(document: Any, operations: list[dict[str, Any]]):
    before = json.dumps([document, operations])
    try:
        expected = naive(document, operations)
    except (AssertionError, KeyError, IndexError, TypeError):
        expected = None

    result = attempt(lambda: json_patch.apply(document, operations))

    assert (None if isinstance(result, ApiError) else result) == expected
    assert json.dumps([document, operations]) == before


@given(VALUES | st.lists(DOCUMENTS, max_size=3))
def test_anything_else_is_refused_with_an_api_error(patch: Any):
    result = attempt(lambda: json_patch.apply({"a": 1}, patch))

    assert isinstance(result, ApiError | dict)
