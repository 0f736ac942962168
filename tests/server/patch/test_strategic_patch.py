"""Strategic merge patch: keyed lists, directives, order, and laws."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.errors import ApiError
from muster.server import schema
from muster.server.patch import strategic

POD = schema.kind("", "v1", "Pod")
DEPLOYMENT = schema.kind("apps", "v1", "Deployment")


def attempt(run: Callable[[], Any]) -> Any:
    """What the call gives, or the ApiError it raises."""
    try:
        return run()
    except ApiError as error:
        return error


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(items)}}


def names(obj: dict[str, Any], field: str = "containers") -> list[str]:
    return [item["name"] for item in obj["spec"][field]]


def test_elements_of_a_keyed_list_merge_by_key():
    current = containers({"name": "a", "image": "1"}, {"name": "b", "image": "1"})

    result = strategic.apply(current, containers({"name": "b", "image": "2"}), POD)

    assert result == containers({"name": "a", "image": "1"}, {"name": "b", "image": "2"})


def test_a_new_element_comes_before_those_only_the_server_has():
    result = strategic.apply(containers({"name": "a"}), containers({"name": "b"}), POD)

    assert names(result) == ["b", "a"]


def test_an_element_is_deleted_by_its_key():
    current = containers({"name": "a"}, {"name": "b"})

    assert names(strategic.apply(current, containers({"name": "a", "$patch": "delete"}), POD)) == ["b"]


def test_a_list_is_replaced_by_directive():
    current = containers({"name": "a", "image": "1"}, {"name": "b"})

    result = strategic.apply(current, containers({"name": "a"}, {"$patch": "replace"}), POD)

    assert result == containers({"name": "a"})


def test_an_object_is_replaced_by_directive():
    current = {"metadata": {"labels": {"a": "1", "b": "2"}}}

    result = strategic.apply(current, {"metadata": {"labels": {"c": "3", "$patch": "replace"}}}, POD)

    assert result == {"metadata": {"labels": {"c": "3"}}}


def test_an_object_is_emptied_by_directive():
    current = {"metadata": {"labels": {"a": "1"}}}

    assert strategic.apply(current, {"metadata": {"labels": {"$patch": "delete"}}}, POD) == {"metadata": {"labels": {}}}


def test_null_deletes_a_key():
    current = {"metadata": {"labels": {"a": "1", "b": "2"}}}

    assert strategic.apply(current, {"metadata": {"labels": {"a": None}}}, POD) == {"metadata": {"labels": {"b": "2"}}}


def test_nulls_inside_a_new_value_are_not_stored():
    result = strategic.apply({}, {"spec": {"nodeName": None, "containers": [{"name": "a", "image": None}]}}, POD)

    assert result == containers({"name": "a"})


def test_primitive_lists_with_a_merge_strategy_are_united():
    current = {"metadata": {"finalizers": ["a", "b"]}}

    result = strategic.apply(current, {"metadata": {"finalizers": ["b", "c"]}}, POD)

    assert sorted(result["metadata"]["finalizers"]) == ["a", "b", "c"]


def test_values_are_deleted_from_a_primitive_list():
    current = {"metadata": {"finalizers": ["a", "b", "c"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"]}}

    assert strategic.apply(current, patch, POD) == {"metadata": {"finalizers": ["a", "c"]}}


def test_lists_without_a_strategy_are_replaced():
    current = containers({"name": "a", "command": ["x", "y"]})

    result = strategic.apply(current, containers({"name": "a", "command": ["z"]}), POD)

    assert result == containers({"name": "a", "command": ["z"]})


def test_retain_keys_drops_the_other_members_of_a_union():
    current = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}

    assert strategic.apply(current, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_retain_keys_that_contradict_the_patch_are_a_bad_request():
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}}

    with pytest.raises(ApiError) as caught:
        strategic.apply({"spec": {"strategy": {}}}, patch, DEPLOYMENT)
    assert caught.value.code == 400


def test_set_element_order_orders_the_merged_list():
    current = containers({"name": "a"}, {"name": "b"}, {"name": "c"})
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "new"}, {"name": "a"}],
            "containers": [{"name": "new"}],
        }
    }

    assert names(strategic.apply(current, patch, POD)) == ["b", "c", "new", "a"]


def test_set_element_order_works_without_a_list_beside_it():
    current = containers({"name": "a"}, {"name": "b"})
    patch = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}

    assert names(strategic.apply(current, patch, POD)) == ["b", "a"]


def test_an_element_missing_from_its_own_order_list_is_a_bad_request():
    patch = {"spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}}

    with pytest.raises(ApiError) as caught:
        strategic.apply(containers({"name": "a"}), patch, POD)
    assert caught.value.code == 400


def test_an_element_without_its_merge_key_is_a_bad_request():
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        strategic.apply(containers({"name": "a"}), containers({"image": "x"}), POD)


def test_directives_never_reach_the_object():
    patch = {"spec": {"template": {"spec": {"$setElementOrder/containers": [], "$retainKeys": ["containers"]}}}}

    assert strategic.apply({}, patch, DEPLOYMENT) == {"spec": {"template": {"spec": {}}}}


def test_a_kind_without_a_schema_is_not_patched_this_way():
    with pytest.raises(ApiError) as caught:
        strategic.apply({}, {}, None)
    assert caught.value.code == 415


def test_kubectl_apply_moves_an_env_variable():
    current = containers({"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]})
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "a"}],
            "containers": [
                {
                    "$setElementOrder/env": [{"name": "Y"}, {"name": "Z"}],
                    "env": [{"name": "Z", "value": "3"}, {"$patch": "delete", "name": "X"}],
                    "name": "a",
                }
            ],
        }
    }

    env = strategic.apply(current, patch, POD)["spec"]["containers"][0]["env"]

    assert env == [{"name": "Y", "value": "2"}, {"name": "Z", "value": "3"}]


ITEMS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcd")}, optional={"image": st.sampled_from("12")}),
    max_size=4,
    unique_by=lambda item: item["name"],
)
LABELS = st.dictionaries(st.sampled_from("ab"), st.none() | st.sampled_from("12"))
PATCHES = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {}, optional={"labels": LABELS, "finalizers": st.lists(st.sampled_from("xyz"), unique=True)}
        ),
        "spec": st.fixed_dictionaries({}, optional={"containers": ITEMS, "nodeName": st.none() | st.just("n")}),
    },
)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@given(PATCHES.map(without_nulls), PATCHES)
def test_patching_twice_is_patching_once_and_changes_nothing_it_was_given(current: Any, patch: Any):
    before = json.dumps([current, patch])

    once = strategic.apply(current, patch, POD)

    assert strategic.apply(once, patch, POD) == once
    assert json.dumps([current, patch]) == before


@given(PATCHES.map(without_nulls), PATCHES.map(without_nulls))
def test_everything_a_patch_names_is_in_the_result_and_nothing_else_is_lost(current: Any, patch: Any):
    result = strategic.apply(current, patch, POD)

    for source in (current, patch):
        for item in source.get("spec", {}).get("containers", []):
            assert item["name"] in names(result)
        assert set(source.get("metadata", {}).get("finalizers", [])) <= set(
            result["metadata"].get("finalizers", []) if "metadata" in result else []
        )
    for item in patch.get("spec", {}).get("containers", []):
        merged = next(found for found in result["spec"]["containers"] if found["name"] == item["name"])
        assert item.items() <= merged.items()


WILD = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "delete", "replace", "merge"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "spec",
                    "containers",
                    "name",
                    "finalizers",
                    "$patch",
                    "$retainKeys",
                    "$setElementOrder/containers",
                    "$deleteFromPrimitiveList/finalizers",
                    "$setElementOrder/finalizers",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(WILD)
def test_a_wild_patch_is_applied_or_refused_with_an_api_error(patch: Any):
    current = {"metadata": {"finalizers": ["a"]}, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}}

    for wild in (patch, {"spec": patch}, {"metadata": patch}):
        result = attempt(lambda wild=wild: strategic.apply(current, wild, POD))
        assert isinstance(result, dict) or result.code in (400, 422)
