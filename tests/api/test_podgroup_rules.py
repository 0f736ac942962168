"""Every rule of a PodGroup, with the error type, field and text that Kubernetes gives."""

from typing import Any

import pytest

from muster.api import gates
from muster.api.errors import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
)
from muster.api.validation import podgroup
from tests.build.manifests import Obj, a_pod_group, changed

REF = {"workloadName": "w", "templateName": "t"}
LABEL = "a lowercase RFC 1123 label must"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must"


def errors_of(new: Obj, old: Obj | None = None, subresource: str = "", off: str = "") -> list[tuple[str, str, str]]:
    found = gates.parse(",".join(f"{gate}=false" for gate in off.split()))[0]
    return [(error.type, error.field, error.detail) for error in podgroup.validate(new, old, subresource, found)]


def create(field: str, value: Any, **spec: Any) -> Obj:
    return changed(a_pod_group(**spec), f"spec.{field}", value)


def claims(count: int) -> list[Obj]:
    return [{"name": f"c{index}", "resourceClaimName": "x"} for index in range(count)]


GOOD = [
    {},
    {"schedulingPolicy": {"basic": {}}},
    {"schedulingPolicy": {"gang": {"minCount": 1}}},
    {"workloadRef": REF},
    {"workloadRef": REF, "parentCompositePodGroupName": "root"},
    {"schedulingConstraints": {}},
    {"schedulingConstraints": {"topology": []}},
    {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
    {"schedulingConstraints": {"topology": [{"key": "example.com/Rack_1.x"}]}},
    {"schedulingConstraints": {"topology": [{"key": f"{'.'.join(['a' * 63] * 3)}.{'a' * 61}/{'n' * 63}"}]}},
    {"disruptionMode": {"single": {}}},
    {"disruptionMode": {"all": {}}},
    {"priorityClassName": "gold", "priority": 10**9},
    {"priority": -5},
    {"preemptionPolicy": "Never"},
    {"preemptionPolicy": "PreemptLowerPriority"},
    {"resourceClaims": claims(4)},
    {"resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t.x"}]},
]


@pytest.mark.parametrize("spec", GOOD)
def test_what_is_right_is_accepted(spec: Obj):
    obj = a_pod_group(**spec)
    assert errors_of(obj) == []
    assert errors_of(obj, obj) == []


BAD: list[tuple[str, Any, list[tuple[str, str, str]]]] = [
    ("schedulingPolicy", {}, [(INVALID, "", "must specify one of: `basic`, `gang`")]),
    (
        "schedulingPolicy",
        {"basic": {}, "gang": {"minCount": 1}},
        [(INVALID, "", "must specify exactly one of: `basic`, `gang`")],
    ),
    ("schedulingPolicy", {"gang": {}}, [(REQUIRED, ".gang.minCount", "")]),
    ("schedulingPolicy", {"gang": {"minCount": 0}}, [(REQUIRED, ".gang.minCount", "")]),
    (
        "schedulingPolicy",
        {"gang": {"minCount": -2}},
        [(INVALID, ".gang.minCount", "must be greater than or equal to 1")],
    ),
    ("workloadRef", {}, [(REQUIRED, ".workloadName", ""), (REQUIRED, ".templateName", "")]),
    ("workloadRef", {**REF, "workloadName": "W_"}, [(INVALID, ".workloadName", SUBDOMAIN)]),
    ("workloadRef", {**REF, "templateName": "a.b"}, [(INVALID, ".templateName", "must not contain dots")]),
    ("workloadRef", {**REF, "workloadName": "a" * 254}, [(INVALID, ".workloadName", "must be no more than 253 bytes")]),
    ("workloadRef", {**REF, "templateName": "a" * 64}, [(INVALID, ".templateName", "must be no more than 63 bytes")]),
    (
        "schedulingConstraints",
        {"topology": [{"key": "a"}, {"key": "b"}]},
        [(TOO_MANY, ".topology", "must have at most 1 item")],
    ),
    ("schedulingConstraints", {"topology": [{}]}, [(REQUIRED, ".topology[0].key", "")]),
    (
        "schedulingConstraints",
        {"topology": [{"key": "a b"}]},
        [(INVALID, ".topology[0].key", "name part must consist")],
    ),
    (
        "schedulingConstraints",
        {"topology": [{"key": "n" * 64}]},
        [(INVALID, ".topology[0].key", "name part must be no")],
    ),
    (
        "schedulingConstraints",
        {"topology": [{"key": f"{'a.' * 127}a/x"}]},
        [(INVALID, ".topology[0].key", "prefix part must be no more than 253 bytes")],
    ),
    (
        "schedulingConstraints",
        {"topology": [{"key": "/x"}]},
        [(INVALID, ".topology[0].key", "prefix part must be non")],
    ),
    (
        "schedulingConstraints",
        {"topology": [{"key": "a/b/c"}]},
        [(INVALID, ".topology[0].key", "a valid label key must")],
    ),
    ("disruptionMode", {}, [(INVALID, "", "must specify one of: `single`, `all`")]),
    ("disruptionMode", {"single": {}, "all": {}}, [(INVALID, "", "must specify exactly one of: `single`, `all`")]),
    ("priorityClassName", "Bad!", [(INVALID, "", SUBDOMAIN)]),
    ("priority", 10**9 + 1, [(INVALID, "", "must be less than or equal to 1000000000")]),
    ("preemptionPolicy", "Maybe", [(NOT_SUPPORTED, "", 'supported values: "Never", "PreemptLowerPriority"')]),
    ("parentCompositePodGroupName", "Bad!", [(INVALID, "", SUBDOMAIN)]),
    ("resourceClaims", claims(5), [(TOO_MANY, "", "must have at most 4 items")]),
    ("resourceClaims", [*claims(1), *claims(1)], [(DUPLICATE, "[1]", "")]),
    (
        "resourceClaims",
        [{"name": "c"}],
        [(INVALID, "[0]", "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")],
    ),
    (
        "resourceClaims",
        [{"name": "c", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}],
        [(INVALID, "[0]", "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`")],
    ),
    ("resourceClaims", [{"name": "", "resourceClaimName": "a"}], [(REQUIRED, "[0].name", "")]),
    ("resourceClaims", [{"name": "A", "resourceClaimName": "a"}], [(INVALID, "[0].name", LABEL)]),
    ("resourceClaims", [{"name": "c", "resourceClaimName": "A"}], [(INVALID, "[0].resourceClaimName", SUBDOMAIN)]),
]


@pytest.mark.parametrize(("field", "value", "expected"), BAD)
def test_what_is_wrong_is_refused_with_its_place_and_text(field: str, value: Any, expected: list[tuple[str, str, str]]):
    extra = {"workloadRef": REF} if field == "parentCompositePodGroupName" else {}
    found = errors_of(create(field, value, **extra))
    assert [(kind, path) for kind, path, _ in found] == [(kind, f"spec.{field}{rest}") for kind, rest, _ in expected]
    for (_, _, detail), (_, _, wanted) in zip(found, expected, strict=True):
        assert detail.startswith(wanted)
        assert bool(detail) == bool(wanted)


def test_a_child_needs_a_workload_reference():
    found = errors_of(a_pod_group(parentCompositePodGroupName="root"))
    assert found == [(REQUIRED, "spec.workloadRef", "must be set when parentCompositePodGroupName is set")]


def test_a_group_without_a_spec_lacks_its_policy():
    for broken in ({"kind": "PodGroup"}, {"spec": None}, {"spec": 3}):
        assert errors_of(broken) == [(INVALID, "spec.schedulingPolicy", "must specify one of: `basic`, `gang`")]


def test_all_errors_are_told_at_once():
    obj = a_pod_group(schedulingPolicy={}, priority=10**10, disruptionMode={}, workloadRef={})
    assert len(errors_of(obj)) == 5


def test_the_texts_read_as_kubernetes_writes_them():
    obj = a_pod_group(schedulingPolicy={"basic": {}, "gang": {"minCount": -1}}, resourceClaims=claims(5))
    texts = [str(error) for error in podgroup.validate(obj, None, "")]
    assert texts == [
        'spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`',
        "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
        "spec.resourceClaims: Too many: 5: must have at most 4 items",
    ]


# --- updates ---------------------------------------------------------------------------------------

FULL = a_pod_group(
    workloadRef=REF,
    parentCompositePodGroupName="root",
    schedulingConstraints={"topology": [{"key": "rack"}]},
    resourceClaims=claims(1),
    disruptionMode={"all": {}},
    priorityClassName="gold",
    priority=5,
    preemptionPolicy="Never",
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("workloadRef", None),
        ("workloadRef", {"workloadName": "w", "templateName": "other"}),
        ("parentCompositePodGroupName", "elsewhere"),
        ("parentCompositePodGroupName", None),
        ("schedulingConstraints", {"topology": [{"key": "zone"}]}),
        ("schedulingConstraints", None),
        ("resourceClaims", claims(2)),
        ("resourceClaims", None),
        ("disruptionMode", {"single": {}}),
        ("priorityClassName", "silver"),
        ("priorityClassName", None),
        ("priority", 6),
        ("priority", None),
        ("preemptionPolicy", "PreemptLowerPriority"),
    ],
)
def test_a_fixed_field_cannot_change(field: str, value: Any):
    assert errors_of(changed(FULL, f"spec.{field}", value), FULL) == [(INVALID, f"spec.{field}", "field is immutable")]


def test_a_fixed_field_cannot_be_set_later():
    old = a_pod_group()
    for field in ("workloadRef", "schedulingConstraints", "disruptionMode", "priority", "parentCompositePodGroupName"):
        new = a_pod_group(**{field: FULL["spec"][field]})
        assert errors_of(new, old) == [(INVALID, f"spec.{field}", "field is immutable")]


def test_an_empty_value_and_an_absent_one_are_the_same():
    assert errors_of(a_pod_group(resourceClaims=[], priorityClassName=""), a_pod_group()) == []


def test_the_quorum_may_change_but_not_to_nonsense():
    old = a_pod_group()
    assert errors_of(a_pod_group(schedulingPolicy={"gang": {"minCount": 9}}), old) == []
    bad = a_pod_group(schedulingPolicy={"gang": {"minCount": 0}})
    assert errors_of(bad, old) == [(REQUIRED, "spec.schedulingPolicy.gang.minCount", "")]


BASIC, GANG = {"basic": {}}, {"gang": {"minCount": 2}}
IMMUTABLE_BASIC = (INVALID, "spec.schedulingPolicy.basic", "field is immutable")
SET_GANG = (INVALID, "spec.schedulingPolicy.gang", "field cannot be set once created")
CLEARED_GANG = (INVALID, "spec.schedulingPolicy.gang", "field cannot be cleared once set")
NONE_LEFT = (INVALID, "spec.schedulingPolicy", "must specify one of: `basic`, `gang`")
BOTH = (INVALID, "spec.schedulingPolicy", "must specify exactly one of: `basic`, `gang`")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (GANG, BASIC, [IMMUTABLE_BASIC, CLEARED_GANG]),
        (BASIC, GANG, [IMMUTABLE_BASIC, SET_GANG]),
        (BASIC, {}, [NONE_LEFT, IMMUTABLE_BASIC]),
        (GANG, {}, [NONE_LEFT, CLEARED_GANG]),
        (GANG, {**GANG, **BASIC}, [BOTH, IMMUTABLE_BASIC]),
        (BASIC, {**GANG, **BASIC}, [BOTH, SET_GANG]),
    ],
)
def test_the_policy_variant_is_fixed(before: Obj, after: Obj, expected: list[tuple[str, str, str]]):
    assert errors_of(a_pod_group(schedulingPolicy=after), a_pod_group(schedulingPolicy=before)) == expected


def test_what_is_stored_and_unchanged_is_not_judged_again():
    old = a_pod_group(schedulingPolicy={}, priority=10**10, preemptionPolicy="Odd", workloadRef={"workloadName": "W!"})
    new = changed(old, "metadata.labels", {"a": "b"})
    assert errors_of(new, old) == []


# --- gates -----------------------------------------------------------------------------------------

GATED = [
    ("parentCompositePodGroupName", "CompositePodGroup", "elsewhere"),
    ("schedulingConstraints", "TopologyAwareWorkloadScheduling", {"topology": [{"key": "zone"}]}),
    ("resourceClaims", "DRAWorkloadResourceClaims", claims(2)),
    ("preemptionPolicy", "PodGroupPreemptionPolicy", "PreemptLowerPriority"),
]

FIXED = (INVALID, "field is immutable")
REFUSALS = {
    "parentCompositePodGroupName": [(FORBIDDEN, ""), FIXED],
    "schedulingConstraints": [(FORBIDDEN, "")],
    "resourceClaims": [FIXED],
    "preemptionPolicy": [(FORBIDDEN, ""), FIXED],
}


@pytest.mark.parametrize(("field", "gate", "other"), GATED)
def test_a_gated_field_is_dropped_on_create(field: str, gate: str, other: Any):
    off = gates.parse(f"{gate}=false")[0]
    new = changed(FULL, "metadata.name", "y")
    podgroup.prepare(new, None, "", off)
    assert field not in new["spec"]
    assert podgroup.validate(new, None, "", off) == []


@pytest.mark.parametrize(("field", "gate", "other"), GATED)
def test_a_gated_field_in_use_stays_but_cannot_change(field: str, gate: str, other: Any):
    off = gates.parse(f"{gate}=false")[0]
    same = changed(FULL, "metadata.labels", {"a": "b"})
    podgroup.prepare(same, FULL, "", off)
    assert same["spec"] == FULL["spec"]
    assert podgroup.validate(same, FULL, "", off) == []
    found = errors_of(changed(FULL, f"spec.{field}", other), FULL, off=gate)
    assert found == [(kind, f"spec.{field}", detail) for kind, detail in REFUSALS[field]]


def test_a_constraint_may_be_taken_away_while_its_gate_is_off():
    bare = changed(FULL, "spec.schedulingConstraints", None)
    assert errors_of(bare, FULL, off="TopologyAwareWorkloadScheduling") == []
    assert errors_of(bare, FULL) == [(INVALID, "spec.schedulingConstraints", "field is immutable")]


def test_claim_statuses_are_dropped_while_claims_are_off():
    off = gates.parse("DRAWorkloadResourceClaims=false")[0]
    new = {**a_pod_group(), "status": {"resourceClaimStatuses": [{"name": "c"}]}}
    podgroup.prepare(new, a_pod_group(), "status", off)
    assert new["status"] == {}
    kept = {**FULL, "status": {"resourceClaimStatuses": [{"name": "c0"}]}}
    podgroup.prepare(kept, FULL, "status", off)
    assert kept["status"]["resourceClaimStatuses"]


# --- defaults and preparation ------------------------------------------------------------------------


def test_the_disruption_mode_is_single_by_default():
    obj = a_pod_group()
    podgroup.default(obj)
    assert obj["spec"]["disruptionMode"] == {"single": {}}
    whole = a_pod_group(disruptionMode={"all": {}})
    podgroup.default(whole)
    assert whole["spec"]["disruptionMode"] == {"all": {}}


def test_defaults_do_not_mind_an_odd_object():
    for broken in ({}, {"spec": None}, {"spec": 3}):
        podgroup.default(broken)
        podgroup.prepare(broken, None, "")


def test_the_preemption_policy_is_left_for_admission_to_fill():
    obj = a_pod_group()
    podgroup.default(obj)
    podgroup.prepare(obj, None, "")
    assert "preemptionPolicy" not in obj["spec"]


def test_an_update_without_a_preemption_policy_keeps_the_stored_one():
    new = changed(FULL, "spec.preemptionPolicy", None)
    podgroup.prepare(new, FULL, "")
    assert new["spec"]["preemptionPolicy"] == "Never"
    assert podgroup.validate(new, FULL, "") == []


def test_a_write_to_the_object_does_not_write_its_status():
    status = {"conditions": [{"type": "A"}]}
    new = {**a_pod_group(), "status": status}
    podgroup.prepare(new, None, "")
    assert new["status"] == {}
    again = {**a_pod_group(), "status": {}}
    podgroup.prepare(again, {**a_pod_group(), "status": status}, "")
    assert again["status"] == status


def test_a_write_to_the_status_changes_nothing_else():
    old = changed(FULL, "metadata.labels", {"a": "b"})
    new = {
        **a_pod_group(schedulingPolicy=BASIC),
        "metadata": {"name": "x", "annotations": {"c": "d"}, "labels": {}},
        "status": {"conditions": []},
    }
    podgroup.prepare(new, old, "status")
    assert new["spec"] == old["spec"]
    assert new["metadata"] == {"name": "x", "labels": {"a": "b"}}
    assert new["status"] == {"conditions": []}


# --- status ----------------------------------------------------------------------------------------


def with_status(**status: Any) -> Obj:
    return {**FULL, "status": status}


CONDITION = {
    "type": "PodGroupInitiallyScheduled",
    "status": "True",
    "reason": "Scheduled",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def test_a_good_condition_is_accepted():
    muster = {**CONDITION, "type": "scheduling.muster.dev/QuorumMet", "observedGeneration": 3}
    new = with_status(conditions=[CONDITION, muster], resourceClaimStatuses=[{"name": "c0"}])
    assert errors_of(new, FULL, "status") == []


@pytest.mark.parametrize(
    ("change", "kind", "field"),
    [
        ({"type": ""}, REQUIRED, "type"),
        ({"type": "a b"}, INVALID, "type"),
        ({"status": ""}, REQUIRED, "status"),
        ({"status": "Yes"}, NOT_SUPPORTED, "status"),
        ({"reason": ""}, REQUIRED, "reason"),
        ({"reason": "1x"}, INVALID, "reason"),
        ({"reason": "x" * 1025}, TOO_LONG, "reason"),
        ({"message": "x" * 32769}, TOO_LONG, "message"),
        ({"lastTransitionTime": None}, REQUIRED, "lastTransitionTime"),
        ({"lastTransitionTime": "yesterday"}, INVALID, "lastTransitionTime"),
        ({"lastTransitionTime": 5}, INVALID, "lastTransitionTime"),
        ({"observedGeneration": -1}, INVALID, "observedGeneration"),
    ],
)
def test_a_bad_condition_is_refused(change: Obj, kind: str, field: str):
    found = errors_of(with_status(conditions=[{**CONDITION, **change}]), FULL, "status")
    assert [each[:2] for each in found] == [(kind, f"status.conditions[0].{field}")]


def test_a_condition_type_appears_once():
    found = errors_of(with_status(conditions=[CONDITION, {**CONDITION, "status": "False"}]), FULL, "status")
    assert found == [(DUPLICATE, "status.conditions[1].type", "")]


def test_stored_conditions_are_not_judged_again():
    old = with_status(conditions=[{**CONDITION, "reason": ""}])
    assert errors_of(with_status(conditions=[{**CONDITION, "reason": ""}]), old, "status") == []
    both = with_status(conditions=[{**CONDITION, "reason": ""}, {**CONDITION, "type": "Other"}])
    assert errors_of(both, old, "status") == []


def test_a_claim_status_must_belong_to_a_claim():
    found = errors_of(with_status(resourceClaimStatuses=[{"name": "other"}]), FULL, "status")
    why = "must match the name of an entry in `spec.resourceClaims`"
    assert found == [(INVALID, "status.resourceClaimStatuses[0].name", why)]


@pytest.mark.parametrize(
    ("statuses", "kind", "path"),
    [
        ([{"name": ""}], INVALID, "[0].name"),
        ([{"name": "c0"}, {"name": "c0"}], DUPLICATE, "[1]"),
        ([{"name": "c0"} for _ in range(5)], TOO_MANY, ""),
        ([{"name": "c0", "resourceClaimName": "A"}], INVALID, "[0].resourceClaimName"),
    ],
)
def test_claim_statuses_have_their_own_rules(statuses: list[Obj], kind: str, path: str):
    found = errors_of(with_status(resourceClaimStatuses=statuses), FULL, "status")
    assert [each[:2] for each in found] == [(kind, f"status.resourceClaimStatuses{path}")]
