"""The annotation that says which members of a group are still to come: what is read, what is refused and where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import expected_members as em
from muster.api.validation import podgroup


def entry(count: Any = 3, after: Any = "ready", **spec: Any) -> dict[str, Any]:
    return {"count": count, "after": after, "podTemplate": {"metadata": {"labels": {"role": "w"}}, "spec": spec}}


def faults(*entries: Any) -> list[str]:
    with pytest.raises(em.MalformedExpectation) as raised:
        em.decode(json.dumps(list(entries)), "list")
    return [error.field for error in raised.value.errors]


def test_count_template_and_order_are_read():
    container = {"name": "c", "env": [{"name": "A", "value": "b"}], "resources": {"requests": {"cpu": "2"}}}
    found = em.decode(json.dumps([entry(containers=[container], schedulerName="muster"), entry(1, "created")]))
    assert [(one.count, one.after) for one in found] == [(3, "ready"), (1, "created")]
    template = found[0].pod_template
    assert template.metadata.labels == {"role": "w"}
    assert template.spec.containers is not None
    assert template.spec.containers[0].resources is not None
    assert template.spec.containers[0].resources.requests == {"cpu": "2"}


def test_what_is_encoded_is_decoded_and_without_what_scheduling_does_not_read():
    template = {
        "metadata": {"labels": {"b": "1", "a": "2"}, "annotations": {"other": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i", "command": ["sleep"]}], "dnsPolicy": "Default"},
    }
    expected, errors = em.expected_of(template, 4, em.SCHEDULED)
    assert errors == []
    assert expected is not None
    text = em.encode([expected])
    assert "sleep" not in text
    assert "dnsPolicy" not in text
    assert em.decode(text) == (expected,)
    assert em.encode(em.decode(text)) == text


def test_an_owners_template_that_cannot_be_read_is_named_by_its_own_path():
    template = {"spec": {"containers": [{"resources": {"limits": {"cpu": "two"}}}]}}
    expected, errors = em.expected_of(template, 4, em.READY, "spec.template")
    assert expected is None
    assert [error.field for error in errors] == ["spec.template.spec.containers[0].resources.limits[cpu]"]


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (3, "list[0]"),
        (entry(0), "list[0].count"),
        (entry(True), "list[0].count"),
        (entry("3"), "list[0].count"),
        (entry(em.MOST_MEMBERS + 1), "list[0].count"),
        (entry(after="deleted"), "list[0].after"),
        (entry(after=["ready"]), "list[0].after"),
        (entry() | {"minCount": 3}, "list[0].minCount"),
        ({"count": 1, "after": "ready"}, "list[0].podTemplate"),
        ({"count": 1, "after": "ready", "podTemplate": []}, "list[0].podTemplate"),
        ({"count": 1, "after": "ready", "podTemplate": {}}, "list[0].podTemplate.spec"),
        ({"count": 1, "after": "ready", "podTemplate": {"spec": 1}}, "list[0].podTemplate.spec"),
        (
            {"count": 1, "after": "ready", "podTemplate": {"metadata": 1, "spec": {}}},
            "list[0].podTemplate.metadata",
        ),
        (
            {"count": 1, "after": "ready", "podTemplate": {"metadata": {"labels": {"a": 1}}, "spec": {}}},
            "list[0].podTemplate.metadata.labels[a]",
        ),
        (entry(containers={}), "list[0].podTemplate.spec.containers"),
        (entry(nodeName="node-1"), "list[0].podTemplate.spec.nodeName"),
        (
            entry(containers=[{"resources": {"requests": {"cpu": "-1"}}}]),
            "list[0].podTemplate.spec.containers[0].resources.requests[cpu]",
        ),
        (entry(overhead={"memory": "1Qi"}), "list[0].podTemplate.spec.overhead[memory]"),
        (
            entry(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
            "list[0].podTemplate.spec.topologySpreadConstraints[0].maxSkew",
        ),
        (
            entry(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "Never"}]),
            "list[0].podTemplate.spec.topologySpreadConstraints[0].whenUnsatisfiable",
        ),
        (
            entry(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z"}]),
            "list[0].podTemplate.spec.topologySpreadConstraints[0]",
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_path(item: Any, field: str):
    assert faults(item) == [field]


def test_every_fault_is_named_not_only_the_first():
    assert faults(entry(0), entry(after="")) == ["list[0].count", "list[1].after"]


@pytest.mark.parametrize("text", ["", "{}", "null", '"x"', "[", "[1,]", "\ud800"])
def test_what_is_no_list_in_json_is_refused_whole(text: str):
    with pytest.raises(em.MalformedExpectation) as raised:
        em.decode(text)
    assert [error.field for error in raised.value.errors] == [em.PATH]


def test_size_number_of_templates_and_number_of_members_have_limits():
    with pytest.raises(em.MalformedExpectation, match=f"may not be more than {em.MOST_BYTES} bytes"):
        em.decode(" " * em.MOST_BYTES + "[]")
    assert faults(*[entry()] * (em.MOST_TEMPLATES + 1)) == ["list"]
    assert faults(entry(em.MOST_MEMBERS), entry(1)) == ["list"]
    assert len(em.decode(json.dumps([entry(1000)] * em.MOST_TEMPLATES))) == em.MOST_TEMPLATES


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["spec", "metadata", "labels", "containers", "resources", "x"]), inner)
    ),
    max_leaves=20,
)


@given(st.lists(st.fixed_dictionaries({"count": JSON, "after": JSON, "podTemplate": JSON}) | JSON, max_size=3))
def test_any_json_is_read_or_refused_with_paths(value: list[Any]):
    try:
        found = em.decode(json.dumps(value))
    except em.MalformedExpectation as malformed:
        paths = [error.field for error in malformed.errors]
        assert paths
        assert all(path.startswith(em.PATH) for path in paths)
    else:
        assert em.decode(em.encode(found)) == found


def test_a_pod_group_with_a_malformed_annotation_is_not_stored():
    group = {
        "metadata": {"name": "g", "annotations": {em.EXPECTED_MEMBERS: json.dumps([entry(0)])}},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    assert [error.field for error in podgroup.validate(group, None, "")] == [f"{em.PATH}[0].count"]
    assert podgroup.validate(group, group, "") == []  # what is stored already stays writable
    good = {**group, "metadata": {"name": "g", "annotations": {em.EXPECTED_MEMBERS: json.dumps([entry()])}}}
    assert podgroup.validate(good, group, "") == []
