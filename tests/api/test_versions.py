"""A group object survives the way through any version."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import groups, versions
from tests.build.manifests import Obj, a_composite_template, a_pod_group, a_template, a_workload
from tests.build.random_manifests import any_group

V1ALPHA2 = "scheduling.k8s.io/v1alpha2"
EVERY = st.sampled_from(versions.VERSIONS)


@given(any_group, EVERY, EVERY)
def test_there_and_back_is_the_same_object(obj: Obj, start: str, way: str):
    started = versions.convert(obj, start)
    there = versions.convert(started, way)

    assert there["apiVersion"] == f"scheduling.k8s.io/{way}"
    assert versions.convert(there, start) == started
    assert versions.convert(there, "v1alpha3") == obj


@given(any_group, EVERY)
def test_conversion_does_not_change_its_argument(obj: Obj, way: str):
    before = json.dumps(obj)
    versions.convert(obj, way)
    assert json.dumps(obj) == before


def test_v1alpha2_names_the_template_under_workload():
    old = versions.convert(a_pod_group(workloadRef={"workloadName": "w", "templateName": "t"}), "v1alpha2")
    assert old["spec"]["podGroupTemplateRef"] == {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
    assert "workloadRef" not in old["spec"]


@pytest.mark.parametrize(("mode", "text"), [({"single": {}}, "Pod"), ({"all": {}}, "PodGroup")])
def test_v1alpha2_writes_the_disruption_mode_as_text(mode: Obj, text: str):
    old = versions.convert(a_pod_group(disruptionMode=mode), "v1alpha2")
    assert old["spec"]["disruptionMode"] == text
    assert versions.convert(old, "v1beta1")["spec"]["disruptionMode"] == mode
    template = versions.convert(a_workload(a_template(disruptionMode=mode)), "v1alpha2")
    assert template["spec"]["podGroupTemplates"][0]["disruptionMode"] == text


def test_v1alpha2_calls_the_condition_pod_group_scheduled():
    obj = {**a_pod_group(), "status": {"conditions": [{"type": "PodGroupInitiallyScheduled"}, {"type": "Other"}]}}
    old = versions.convert(obj, "v1alpha2")
    assert [each["type"] for each in old["status"]["conditions"]] == ["PodGroupScheduled", "Other"]


def test_what_v1alpha2_cannot_express_is_kept_in_an_annotation():
    obj = a_pod_group(parentCompositePodGroupName="root", preemptionPolicy="Never")
    old = versions.convert(obj, "v1alpha2")
    assert "parentCompositePodGroupName" not in old["spec"]
    assert "preemptionPolicy" not in old["spec"]
    assert versions.KEPT in old["metadata"]["annotations"]
    assert versions.convert(old, "v1alpha3") == obj


def test_composite_templates_are_kept_through_v1alpha2():
    obj = a_workload(composites=[a_composite_template("root", a_template(preemptionPolicy="Never"))])
    old = versions.convert(obj, "v1alpha2")
    assert "compositePodGroupTemplates" not in old["spec"]
    assert versions.convert(old, "v1beta1")["spec"] == obj["spec"]


def test_a_value_set_by_a_v1alpha2_client_wins_over_the_remembered_one():
    old = versions.convert(a_pod_group(disruptionMode={"single": {}, "all": {}}), "v1alpha2")
    old["spec"]["disruptionMode"] = "PodGroup"
    assert versions.convert(old, "v1alpha3")["spec"]["disruptionMode"] == {"all": {}}


def test_an_annotation_of_that_name_on_a_hub_object_is_not_taken_for_ours():
    obj = a_pod_group()
    obj["metadata"]["annotations"] = {versions.KEPT: '{"parentCompositePodGroupName":"forged"}'}
    old = versions.convert(obj, "v1alpha2")
    assert versions.convert(old, "v1alpha3") == obj


@pytest.mark.parametrize("note", ["not json", "[1]", "[" * 5000, 7])
def test_a_note_that_is_not_ours_is_left_alone(note: object):
    old = {**a_pod_group(), "apiVersion": V1ALPHA2}
    old["metadata"]["annotations"] = {versions.KEPT: note}
    assert versions.convert(old, "v1alpha3")["metadata"]["annotations"] == {versions.KEPT: note}


def test_null_annotations_stay_null():
    obj = a_pod_group(preemptionPolicy="Never")
    obj["metadata"]["annotations"] = None
    assert versions.convert(versions.convert(obj, "v1alpha2"), "v1alpha3") == obj


@pytest.mark.parametrize(
    "spec",
    [
        {"workloadRef": "text"},
        {"podGroupTemplateRef": {"x": 1}, "workloadRef": {"workloadName": "w"}},
        {"disruptionMode": 3},
        {"disruptionMode": None, "workloadRef": None},
    ],
)
def test_malformed_fields_survive_the_way_through_v1alpha2(spec: Obj):
    obj = a_pod_group(**spec)
    assert versions.convert(versions.convert(obj, "v1alpha2"), "v1alpha3") == obj


@pytest.mark.parametrize(
    "templates", ["text", [1, {"name": "a", "disruptionMode": {"x": 1}}], [{"disruptionMode": None}], None]
)
def test_malformed_templates_survive_the_way_through_v1alpha2(templates: object):
    obj = {**a_workload(), "spec": {"podGroupTemplates": templates}}
    assert versions.convert(versions.convert(obj, "v1alpha2"), "v1alpha3") == obj


def test_objects_that_are_hardly_objects_are_converted_without_a_crash():
    for broken in ({"spec": 1}, {"metadata": 1}, {"status": 1}, {"status": {"conditions": [1, {"type": 2}]}}):
        obj = {**a_pod_group(preemptionPolicy="Never"), **broken}
        assert versions.convert(obj, "v1alpha2")["kind"] == "PodGroup"
        assert versions.convert({**obj, "apiVersion": V1ALPHA2}, "v1beta1")["kind"] == "PodGroup"


def test_kinds_and_versions_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="not served"):
        versions.convert(a_pod_group(), "v1")
    with pytest.raises(ValueError, match="not served"):
        versions.convert({**a_pod_group(), "apiVersion": "scheduling.k8s.io/v1alpha1"}, "v1beta1")
    with pytest.raises(ValueError, match="not a kind"):
        versions.convert({"apiVersion": "v1", "kind": "Pod"}, "v1beta1")


TESTDATA = Path(__file__).resolve().parents[3] / "shared" / "testdata" / "api"


@pytest.mark.skipif(not TESTDATA.is_dir(), reason="the objects of shared/testdata/api are not here")
@pytest.mark.parametrize("kind", ["Workload", "PodGroup", "CompositePodGroup"])
@pytest.mark.parametrize("version", ["v1alpha3", "v1beta1"])
def test_every_field_of_a_served_version_survives(kind: str, version: str):
    path = TESTDATA / f"scheduling.k8s.io.{version}.{kind}.json"
    if not path.exists():
        pytest.skip(f"{kind} is not served in {version}")
    data = path.read_bytes()
    obj = msgspec.json.decode(data)
    for way in versions.VERSIONS:
        assert versions.convert(versions.convert(obj, way), version) == obj
    typed = groups.decode(data, getattr(groups, kind))
    again = msgspec.json.decode(msgspec.json.encode(typed))
    assert again["spec"] == obj["spec"]
    assert again.get("status") == obj.get("status")
