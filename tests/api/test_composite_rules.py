"""Every rule of a CompositePodGroup that differs from those of a PodGroup."""

from typing import Any

import pytest

from muster.api import gates
from muster.api.errors import INVALID, REQUIRED, TOO_MANY
from muster.api.validation import composite
from tests.build.manifests import Obj, a_composite, changed


def errors_of(new: Obj, old: Obj | None = None, subresource: str = "") -> list[tuple[str, str, str]]:
    return [(error.type, error.field, error.detail) for error in composite.validate(new, old, subresource)]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"schedulingPolicy": {"gang": {"minGroupCount": 2}}},
        {"parentCompositePodGroupName": "root"},
        {"schedulingConstraints": {"topology": [{"key": "zone"}]}},
        {"disruptionMode": {"all": {}}, "priority": 7, "preemptionPolicy": "Never"},
    ],
)
def test_what_is_right_is_accepted(spec: Obj):
    assert errors_of(a_composite(**spec)) == []


@pytest.mark.parametrize(
    ("field", "value", "kind", "path", "detail"),
    [
        ("workloadRef", None, REQUIRED, "spec.workloadRef", ""),
        ("workloadRef", {"templateName": "t"}, REQUIRED, "spec.workloadRef.workloadName", ""),
        ("schedulingPolicy", {}, INVALID, "spec.schedulingPolicy", "must specify one of: `basic`, `gang`"),
        ("schedulingPolicy", {"gang": {}}, REQUIRED, "spec.schedulingPolicy.gang.minGroupCount", ""),
        (
            "schedulingPolicy",
            {"gang": {"minGroupCount": -1}},
            INVALID,
            "spec.schedulingPolicy.gang.minGroupCount",
            "must be greater than or equal to 1",
        ),
        (
            "schedulingConstraints",
            {"topology": [{"key": "a"}, {"key": "b"}]},
            TOO_MANY,
            "spec.schedulingConstraints.topology",
            "must have at most 1 item",
        ),
        ("disruptionMode", {}, INVALID, "spec.disruptionMode", "must specify one of: `single`, `all`"),
    ],
)
def test_what_is_wrong_is_refused(field: str, value: Any, kind: str, path: str, detail: str):
    spec = {**a_composite()["spec"], field: value}
    assert errors_of({**a_composite(), "spec": spec}) == [(kind, path, detail)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workloadRef", {"workloadName": "w", "templateName": "other"}),
        ("parentCompositePodGroupName", "other"),
        ("schedulingConstraints", {"topology": [{"key": "zone"}]}),
        ("disruptionMode", {"all": {}}),
        ("priority", 4),
    ],
)
def test_nothing_but_the_minimum_may_change(field: str, value: Any):
    old = a_composite(schedulingPolicy={"gang": {"minGroupCount": 2}}, disruptionMode={"single": {}}, priority=1)
    new = {**old, "spec": {**old["spec"], field: value}}
    assert errors_of(new, old) == [(INVALID, f"spec.{field}", "field is immutable")]


@pytest.mark.parametrize("count", [1, 3, 9])
def test_the_minimum_may_change(count: int):
    old = a_composite(schedulingPolicy={"gang": {"minGroupCount": 2}})
    assert errors_of(changed(old, "spec.schedulingPolicy.gang.minGroupCount", count), old) == []


@pytest.mark.parametrize(
    ("policy", "kind", "path", "detail"),
    [
        ({"gang": {"minGroupCount": 0}}, REQUIRED, "spec.schedulingPolicy.gang.minGroupCount", ""),
        (
            {"gang": {"minGroupCount": -1}},
            INVALID,
            "spec.schedulingPolicy.gang.minGroupCount",
            "must be greater than or equal to 1",
        ),
        ({"basic": {}}, INVALID, "spec.schedulingPolicy.basic", "field is immutable"),
        ({}, INVALID, "spec.schedulingPolicy", "must specify one of: `basic`, `gang`"),
    ],
)
def test_the_policy_stays_a_gang_with_a_minimum(policy: Any, kind: str, path: str, detail: str):
    old = a_composite(schedulingPolicy={"gang": {"minGroupCount": 2}})
    assert (kind, path, detail) in errors_of(changed(old, "spec.schedulingPolicy", policy), old)


def test_clearing_the_workload_reference_breaks_two_rules():
    new = changed(a_composite(), "spec.workloadRef", None)
    assert errors_of(new, a_composite()) == [
        (INVALID, "spec.workloadRef", "field is immutable"),
        (REQUIRED, "spec.workloadRef", ""),
    ]


def test_labels_may_change():
    old = a_composite()
    assert errors_of(changed(old, "metadata.labels", {"a": "b"}), old) == []


def test_the_disruption_mode_is_single_by_default():
    obj = a_composite()
    composite.default(obj)
    assert obj["spec"]["disruptionMode"] == {"single": {}}


def test_the_constraint_has_no_gate_of_its_own_but_the_policy_has():
    off = gates.parse("TopologyAwareWorkloadScheduling=false,PodGroupPreemptionPolicy=false")[0]
    obj = a_composite(schedulingConstraints={"topology": [{"key": "zone"}]}, preemptionPolicy="Never")
    composite.prepare(obj, None, "", off)
    assert "schedulingConstraints" in obj["spec"]
    assert "preemptionPolicy" not in obj["spec"]
    assert composite.validate(obj, None, "", off) == []


def test_status_and_spec_are_written_apart():
    status = {"conditions": [{"type": "A"}]}
    new = {**a_composite(), "status": status}
    composite.prepare(new, None, "")
    assert new["status"] == {}
    written = {**a_composite(schedulingPolicy={"gang": {"minGroupCount": 9}}), "status": status}
    composite.prepare(written, a_composite(), "status")
    assert written["spec"] == a_composite()["spec"]
    fields = [field for _, field, _ in errors_of(written, a_composite(), "status")]
    assert fields == [f"status.conditions[0].{name}" for name in ("status", "lastTransitionTime", "reason")]
