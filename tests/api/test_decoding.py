"""A wrong JSON type is a clear error with a path, never a crash."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import decoding, gates, versions
from muster.api.errors import TYPE_INVALID
from muster.api.validation import composite, podgroup, workload
from tests.build.manifests import Obj, a_pod_group, a_workload, changed
from tests.build.random_manifests import any_group, json_values


@given(any_group)
def test_valid_objects_have_their_shape(obj: Obj):
    assert decoding.decode_errors(obj, obj["kind"]) == []


@pytest.mark.parametrize(
    ("path", "value", "wanted"),
    [
        ("spec.schedulingPolicy.gang.minCount", "3", "must be a whole number"),
        ("spec.schedulingPolicy.gang.minCount", 1.5, "must be a whole number"),
        ("spec.schedulingPolicy.gang.minCount", True, "must be a whole number"),
        ("spec.schedulingPolicy.gang.minCount", 2**31, "must be a whole number between -2147483648 and 2147483647"),
        ("spec.schedulingPolicy.gang.minCount", 10**400, "must be a whole number between"),
        ("spec.schedulingPolicy.gang", [], "must be an object"),
        ("spec.schedulingPolicy.basic", "yes", "must be an object"),
        ("spec.disruptionMode", "Pod", "must be an object"),
        ("spec.resourceClaims", {}, "must be a list"),
        ("spec.priorityClassName", ["x"], "must be a string"),
        ("spec", "text", "must be an object"),
        ("metadata.labels", ["a"], "must be an object"),
        ("metadata.name", 7, "must be a string"),
        ("metadata", "x" * 500, "must be an object"),
        ("metadata.generation", 2**70, "must be a whole number between"),
    ],
)
def test_each_wrong_type_is_named(path: str, value: Any, wanted: str):
    (error,) = decoding.decode_errors(changed(a_pod_group(), path, value), "PodGroup")
    assert (error.type, error.field) == (TYPE_INVALID, path)
    assert error.detail.startswith(wanted)
    assert len(str(error)) < 400


def test_a_number_too_long_to_print_is_described():
    (error,) = decoding.decode_errors(changed(a_pod_group(), "spec.priority", 10**5000), "PodGroup")
    assert "a number of 16610 bits" in str(error)


def test_items_and_map_values_have_paths_too():
    obj = a_workload({"name": 5, "schedulingPolicy": []})
    obj["metadata"]["labels"] = {"a": 1}
    found = [error.field for error in decoding.decode_errors(obj, "Workload")]
    assert found == [
        "metadata.labels[a]",
        "spec.podGroupTemplates[0].name",
        "spec.podGroupTemplates[0].schedulingPolicy",
    ]


def test_quantities_are_text_or_numbers_and_booleans_are_booleans():
    pod = {
        "metadata": {"name": "p"},
        "spec": {"hostNetwork": "no", "containers": [{"resources": {"requests": {"cpu": 1, "memory": [], "x": True}}}]},
    }
    found = [error.field for error in decoding.decode_errors(pod, "Pod")]
    prefix = "spec.containers[0].resources.requests"
    assert found == ["spec.hostNetwork", f"{prefix}[memory]", f"{prefix}[x]"]


def test_kinds_without_a_shape_are_not_judged():
    assert decoding.decode_errors({"spec": 3}, "ConfigMap") == []


def test_unknown_fields_are_found_at_any_depth():
    obj = changed(a_pod_group(), "spec.schedulingPolicy.gang.maxCount", 3)
    obj["metadata"]["managedFields"] = []
    obj["extra"] = 1
    assert decoding.unknown_fields(obj, "PodGroup") == ["extra", "spec.schedulingPolicy.gang.maxCount"]
    assert decoding.unknown_fields({"spec": {"whatever": 1}}, "Pod") == []


def test_an_object_nested_without_end_is_judged_quickly():
    body: Any = {}
    for _ in range(20_000):
        body = {"compositePodGroupTemplates": [body], "name": 1}
    obj = {**a_workload(), "spec": body}
    assert len(decoding.decode_errors(obj, "Workload")) <= decoding.MOST_PROBLEMS
    assert "nested less than 200 levels" in decoding.decode_errors(obj, "Workload")[0].detail
    assert workload.validate(obj, None, "")


@given(st.sampled_from(["Workload", "PodGroup", "CompositePodGroup"]), any_group, st.data())
def test_no_json_makes_the_rules_crash(kind: str, base: Obj, data: st.DataObject):
    """Take a valid object and put anything anywhere."""
    obj = base
    for _ in range(data.draw(st.integers(1, 3))):
        obj = _spoiled(obj, data)
    obj = {**obj, "kind": kind, "apiVersion": "scheduling.k8s.io/v1alpha3"}
    rules = {"Workload": workload, "PodGroup": podgroup, "CompositePodGroup": composite}[kind]
    decoding.decode_errors(obj, kind)
    decoding.unknown_fields(obj, kind)
    off = gates.parse("TopologyAwareWorkloadScheduling=false,DRAWorkloadResourceClaims=false")[0]
    for old in (None, base):
        for subresource in ("", "status"):
            for error in rules.validate(obj, old, subresource, off):
                assert str(error)
    assert versions.convert(versions.convert(obj, "v1alpha2"), "v1alpha3")["kind"] == kind
    rules.default(obj)
    rules.prepare(obj, base, data.draw(st.sampled_from(["", "status"])), off)


def _spoiled(value: Any, data: st.DataObject) -> Any:
    if isinstance(value, dict) and value and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: _spoiled(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 9)):
        index = data.draw(st.integers(0, len(value) - 1))
        return [*value[:index], _spoiled(value[index], data), *value[index + 1 :]]
    if isinstance(value, dict) and "metadata" in value:
        return value
    return data.draw(json_values)
