"""The membership of a pod, and the metadata of any manifest."""

from typing import Any

import pytest

from muster.api import gates
from muster.api.errors import FORBIDDEN, INVALID, REQUIRED, TOO_LONG, TYPE_INVALID
from muster.api.validation import formats, meta, pod


def test_a_pod_without_a_group_and_one_with_a_group_are_fine():
    assert pod.validate_scheduling_group({}) == []
    assert pod.validate_scheduling_group({"schedulingGroup": {"podGroupName": "gang.a"}}) == []


@pytest.mark.parametrize("group", [{}, {"other": 1}, [], "text"])
def test_a_membership_must_name_its_group(group: Any):
    (error,) = pod.validate_scheduling_group({"schedulingGroup": group})
    assert (error.type, error.field, error.detail) == (
        INVALID,
        "spec.schedulingGroup",
        "must specify one of: `podGroupName`",
    )


def test_the_name_of_the_group_is_a_subdomain():
    (error,) = pod.validate_scheduling_group({"schedulingGroup": {"podGroupName": "Not_A_Name"}}, "spec.template.spec")
    assert (error.type, error.field) == (INVALID, "spec.template.spec.schedulingGroup.podGroupName")


def test_members_have_no_eviction_responders():
    spec = {"schedulingGroup": {"podGroupName": "g"}, "evictionResponders": [{}]}
    (error,) = pod.validate_scheduling_group(spec)
    assert (error.type, error.field) == (FORBIDDEN, "spec.schedulingGroup")
    assert error.detail == "may not be set when evictionResponders is set"


def test_the_membership_is_dropped_with_its_gate_unless_it_is_stored():
    off = gates.parse("GenericWorkload=false")[0]
    group = {"schedulingGroup": {"podGroupName": "g"}}
    new, stored = dict(group), dict(group)
    pod.prepare_scheduling_group(new, None, off)
    pod.prepare_scheduling_group(stored, group, off)
    assert new == {}
    assert stored == group


@pytest.mark.parametrize(
    ("metadata", "kind", "field"),
    [
        ({}, REQUIRED, "metadata.name"),
        (None, REQUIRED, "metadata.name"),
        ([], TYPE_INVALID, "metadata"),
        ({"name": "A"}, INVALID, "metadata.name"),
        ({"name": "a" * 254}, INVALID, "metadata.name"),
        ({"generateName": "A-"}, INVALID, "metadata.generateName"),
        ({"name": "a", "namespace": "a.b"}, INVALID, "metadata.namespace"),
        ({"name": "a", "labels": {"a b": "c"}}, INVALID, "metadata.labels"),
        ({"name": "a", "labels": {"a": "b c"}}, INVALID, "metadata.labels"),
        ({"name": "a", "labels": {"a": "b" * 64}}, INVALID, "metadata.labels"),
        ({"name": "a", "labels": {"a": 1}}, TYPE_INVALID, "metadata.labels[a]"),
        ({"name": "a", "annotations": {"": "x"}}, INVALID, "metadata.annotations"),
        ({"name": "a", "annotations": {"a": True}}, TYPE_INVALID, "metadata.annotations[a]"),
        ({"name": "a", "annotations": {"a": "x" * 300_000}}, TOO_LONG, "metadata.annotations"),
    ],
)
def test_bad_metadata_is_refused(metadata: Any, kind: str, field: str):
    found = meta.validate({"metadata": metadata})
    assert {(error.type, error.field) for error in found} == {(kind, field)}


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "a" * 63 + "." + "b" * 63},
        {"name": "x" * 253},
        {"generateName": "a-"},
        {"name": "a", "namespace": "n", "labels": {"x.io/a": ""}, "annotations": {"A": "anything at all"}},
    ],
)
def test_good_metadata_is_accepted(metadata: Any):
    assert meta.validate({"metadata": metadata}) == []


def test_a_cluster_scoped_object_has_no_namespace():
    (error,) = meta.validate({"metadata": {"name": "a", "namespace": "n"}}, namespaced=False)
    assert (error.type, error.field) == (FORBIDDEN, "metadata.namespace")


@pytest.mark.parametrize("text", ["a\n", "é", "a..b", "-a", "a-", "A", ""])
def test_names_are_plain_ascii(text: str):
    assert formats.dns_subdomain(text)


@pytest.mark.parametrize(
    ("text", "good"), [("a", True), ("Any thing:", True), (".", False), ("a/b", False), ("%", False)]
)
def test_a_path_segment_can_stand_in_a_url(text: str, good: bool):
    assert (formats.path_segment(text) == []) is good
