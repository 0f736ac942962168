"""Every rule of a Workload: its templates, and its tree as a whole."""

from copy import deepcopy
from typing import Any

import pytest

from muster.api import gates
from muster.api.errors import DUPLICATE, FORBIDDEN, INVALID, REQUIRED, TOO_MANY
from muster.api.validation import workload
from tests.build.manifests import Obj, a_composite_template, a_template, a_workload, changed


def errors_of(new: Obj, old: Obj | None = None, off: str = "") -> list[tuple[str, str, str]]:
    found = gates.parse(",".join(f"{gate}=false" for gate in off.split()))[0]
    return [(error.type, error.field, error.detail) for error in workload.validate(new, old, "", found)]


def a_chain(levels: int) -> Obj:
    """So many composites above one leaf."""
    body = a_template("leaf")
    for level in range(levels):
        body = a_composite_template(f"c{level}", body)
    return body


LEAF, TREE = "spec.podGroupTemplates", "spec.compositePodGroupTemplates"


@pytest.mark.parametrize(
    "obj",
    [
        a_workload(),
        a_workload(*[a_template(f"t{index}") for index in range(8)]),
        a_workload(a_template(schedulingPolicy={"basic": {}})),
        a_workload(controllerRef={"apiGroup": "batch", "kind": "Job", "name": "j"}),
        a_workload(controllerRef={"apiGroup": "", "kind": "Pod", "name": "p"}),
        a_workload(composites=[a_composite_template("root", a_template())]),
        a_workload(composites=[a_chain(3)]),
        a_workload(
            a_template("a", priorityClassName="gold", priority=1), a_template("b", priorityClassName="gold", priority=1)
        ),
        a_workload(
            composites=[
                a_composite_template("w", a_template(disruptionMode={"all": {}}), disruptionMode={"all": {}}),
                a_composite_template("s", a_template("x", disruptionMode={"all": {}}), a_template("y")),
            ]
        ),
    ],
)
def test_what_is_right_is_accepted(obj: Obj):
    assert errors_of(obj) == []
    assert errors_of(obj, obj) == []
    workload.default(obj)
    assert errors_of(obj) == []


UNION = "`podGroupTemplates`, `compositePodGroupTemplates`"


@pytest.mark.parametrize("spec", [{}, {"podGroupTemplates": []}, {"podGroupTemplates": None}])
def test_one_of_the_two_lists_must_be_set(spec: Obj):
    assert errors_of({"spec": spec}) == [(INVALID, "spec", f"must specify one of: {UNION}")]


def test_only_one_of_the_two_lists_may_be_set():
    obj = a_workload(a_template("a"), composites=[a_composite_template("b", a_template("c"))])
    assert errors_of(obj) == [(INVALID, "spec", f"must specify exactly one of: {UNION}")]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({"kind": "Job"}, (REQUIRED, "name")),
        ({"name": "j"}, (REQUIRED, "kind")),
        ({"kind": "a/b", "name": "j"}, (INVALID, "kind")),
        ({"kind": "a%b", "name": "j"}, (INVALID, "kind")),
        ({"kind": "Job", "name": ".."}, (INVALID, "name")),
        ({"kind": "Job", "name": "a%b"}, (INVALID, "name")),
        ({"apiGroup": "Bad_", "kind": "Job", "name": "j"}, (INVALID, "apiGroup")),
        ({"apiGroup": "a" * 254, "kind": "Job", "name": "j"}, (INVALID, "apiGroup")),
    ],
)
def test_the_controller_reference_names_an_object(reference: Obj, expected: tuple[str, str]):
    kind, field = expected
    assert [each[:2] for each in errors_of(a_workload(controllerRef=reference))] == [
        (kind, f"spec.controllerRef.{field}")
    ]


@pytest.mark.parametrize("later", [None, {"kind": "Job", "name": "other"}])
def test_the_controller_reference_is_fixed(later: Obj | None):
    old = a_workload(controllerRef={"kind": "Job", "name": "j"})
    new = changed(old, "spec.controllerRef", later)
    assert errors_of(new, old) == [(INVALID, "spec.controllerRef", "field is immutable")]
    assert errors_of(old, a_workload()) == [(INVALID, "spec.controllerRef", "field is immutable")]


LEAF_RULES: list[tuple[Obj, tuple[str, str]]] = [
    ({"name": ""}, (REQUIRED, ".name")),
    ({"name": "Bad"}, (INVALID, ".name")),
    ({"name": "a" * 64}, (INVALID, ".name")),
    ({"schedulingPolicy": {}}, (INVALID, ".schedulingPolicy")),
    ({"schedulingPolicy": {"gang": {"minCount": 0}}}, (REQUIRED, ".schedulingPolicy.gang.minCount")),
    ({"schedulingConstraints": {"topology": [{"key": ""}]}}, (REQUIRED, ".schedulingConstraints.topology[0].key")),
    ({"resourceClaims": [{"name": "c"}]}, (INVALID, ".resourceClaims[0]")),
    ({"disruptionMode": {}}, (INVALID, ".disruptionMode")),
    ({"priorityClassName": "Bad!"}, (INVALID, ".priorityClassName")),
    ({"priority": 10**9 + 1}, (INVALID, ".priority")),
]


@pytest.mark.parametrize(("fields", "expected"), LEAF_RULES)
def test_a_template_keeps_the_rules_of_a_group(fields: Obj, expected: tuple[str, str]):
    kind, path = expected
    assert [each[:2] for each in errors_of(a_workload(a_template(**fields)))] == [(kind, f"{LEAF}[0]{path}")]
    nested = a_workload(composites=[a_composite_template("root", a_template(**fields))])
    assert (kind, f"{TREE}[0].podGroupTemplates[0]{path}") in [each[:2] for each in errors_of(nested)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": ""}, (REQUIRED, ".name")),
        ({"schedulingPolicy": {}}, (INVALID, ".schedulingPolicy")),
        ({"schedulingPolicy": {"gang": {}}}, (REQUIRED, ".schedulingPolicy.gang.minGroupCount")),
        ({"schedulingPolicy": {"gang": {"minGroupCount": -1}}}, (INVALID, ".schedulingPolicy.gang.minGroupCount")),
        ({"disruptionMode": {"single": {}, "all": {}, "x": {}}}, (INVALID, ".disruptionMode")),
    ],
)
def test_a_composite_template_keeps_the_rules_of_a_composite(fields: Obj, expected: tuple[str, str]):
    kind, path = expected
    child = a_template(disruptionMode={"all": {}})
    obj = a_workload(composites=[a_composite_template("root", child) | fields])
    assert [each[:2] for each in errors_of(obj)] == [(kind, f"{TREE}[0]{path}")]


def test_a_list_has_at_most_eight_templates():
    many = [a_template(f"t{index}") for index in range(9)]
    assert errors_of(a_workload(*many)) == [(TOO_MANY, LEAF, "must have at most 8 items")]
    wide = a_workload(composites=[a_composite_template("root", *many)])
    assert errors_of(wide) == [(TOO_MANY, f"{TREE}[0].podGroupTemplates", "must have at most 8 items")]
    roots = [a_composite_template(f"c{index}", a_template(f"t{index}")) for index in range(9)]
    assert errors_of(a_workload(composites=roots)) == [(TOO_MANY, TREE, "must have at most 8 items")]


def test_a_name_appears_once_in_its_list():
    assert errors_of(a_workload(a_template("a"), a_template("a"))) == [(DUPLICATE, f"{LEAF}[1]", "")]


def test_a_name_appears_once_in_the_tree():
    inner = a_composite_template("inner", a_template("stage"))
    obj = a_workload(composites=[a_composite_template("stage", a_template("driver"), inner)])
    where = f"{TREE}[0].compositePodGroupTemplates[0].podGroupTemplates[0].name"
    assert errors_of(obj) == [(DUPLICATE, where, "")]


def test_a_name_clash_is_found_at_the_deeper_template():
    early = a_composite_template("early", a_template("late"))
    obj = a_workload(composites=[early, a_composite_template("late", a_template("leaf"))])
    assert errors_of(obj) == [(DUPLICATE, f"{TREE}[0].podGroupTemplates[0].name", "")]


@pytest.mark.parametrize("levels", [4, 5, 50, 400])
def test_a_tree_has_at_most_four_levels(levels: int):
    obj = a_workload(composites=[a_chain(levels)])
    assert errors_of(obj) == [(INVALID, f"{TREE}[0]", "maximum template hierarchy depth is 4")]


def test_a_composite_needs_a_child():
    why = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
    assert errors_of(a_workload(composites=[a_composite_template("alone")])) == [(INVALID, f"{TREE}[0]", why)]
    nested = {**a_composite_template("barren"), "compositePodGroupTemplates": []}
    obj = a_workload(composites=[{**a_composite_template("root"), "compositePodGroupTemplates": [nested]}])
    assert errors_of(obj) == [(INVALID, f"{TREE}[0].compositePodGroupTemplates[0]", why)]


@pytest.mark.parametrize("other", [{"priorityClassName": "silver"}, {"priorityClassName": "gold", "priority": 5}, {}])
def test_all_templates_have_one_priority(other: Obj):
    gold = {"priorityClassName": "gold"}
    flat = a_workload(a_template("a", **gold), a_template("b", **other))
    assert errors_of(flat) == [(INVALID, "spec", "detected multiple priority configurations")]
    tree = a_workload(composites=[a_composite_template("root", a_template("b", **other), **gold)])
    why = "all priority and priorityClassName values must be identical, detected multiple values"
    assert errors_of(tree) == [(INVALID, "spec", why)]


WHOLE, SINGLE = {"disruptionMode": {"all": {}}}, {"disruptionMode": {"single": {}}}


@pytest.mark.parametrize("child", [SINGLE, {}])
def test_a_part_of_something_whole_cannot_be_disrupted_alone(child: Obj):
    obj = a_workload(composites=[a_composite_template("whole", a_template("part", **child), **WHOLE)])
    ((kind, field, detail),) = errors_of(obj)
    assert (kind, field) == (INVALID, f"{TREE}[0].podGroupTemplates[0].disruptionMode")
    assert "'whole'" in detail
    inner = a_composite_template("inner", a_template("leaf", **WHOLE), **child)
    nested = a_workload(composites=[a_composite_template("whole", inner, **WHOLE)])
    assert [each[1] for each in errors_of(nested)] == [f"{TREE}[0].compositePodGroupTemplates[0].disruptionMode"]


def test_a_stored_workload_that_breaks_that_rule_can_still_be_updated():
    old = a_workload(composites=[a_composite_template("whole", a_template("part"), **WHOLE)])
    assert errors_of(changed(old, "metadata.labels", {"a": "b"}), old) == []


# --- updates ---------------------------------------------------------------------------------------


def test_the_minimum_of_a_template_may_change():
    old = a_workload(composites=[a_composite_template("root", a_template())])
    new = deepcopy(old)
    root = new["spec"]["compositePodGroupTemplates"][0]
    root["schedulingPolicy"]["gang"]["minGroupCount"] = 5
    root["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"] = 7
    assert errors_of(new, old) == []
    root["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"] = -7
    assert [each[:2] for each in errors_of(new, old)] == [
        (INVALID, f"{TREE}[0].podGroupTemplates[0].schedulingPolicy.gang.minCount")
    ]


ADDED, REMOVED = "item may not be added", "item may not be removed"


def test_templates_cannot_be_added_removed_or_renamed():
    one, two = a_workload(a_template("a")), a_workload(a_template("a"), a_template("b"))
    assert errors_of(two, one) == [(FORBIDDEN, f"{LEAF}[1]", ADDED)]
    assert errors_of(one, two) == [(FORBIDDEN, LEAF, REMOVED)]
    assert errors_of(a_workload(a_template("b")), two) == [(FORBIDDEN, LEAF, REMOVED)]
    assert errors_of(a_workload(a_template("c")), two) == [
        (FORBIDDEN, f"{LEAF}[0]", ADDED),
        (FORBIDDEN, LEAF, REMOVED),
        (FORBIDDEN, LEAF, REMOVED),
    ]
    renamed = a_workload(a_template("z"))
    assert errors_of(renamed, one) == [(FORBIDDEN, f"{LEAF}[0]", ADDED), (FORBIDDEN, LEAF, REMOVED)]


def test_templates_may_change_places():
    old = a_workload(a_template("a"), a_template("b"))
    assert errors_of(a_workload(a_template("b"), a_template("a")), old) == []


def test_the_variant_of_a_template_is_fixed():
    old = a_workload()
    new = a_workload(a_template(schedulingPolicy={"basic": {}}))
    path = f"{LEAF}[0].schedulingPolicy"
    assert errors_of(new, old) == [
        (INVALID, f"{path}.basic", "field is immutable"),
        (INVALID, f"{path}.gang", "field cannot be cleared once set"),
    ]


FULL = {
    "schedulingConstraints": {"topology": [{"key": "rack"}]},
    "resourceClaims": [{"name": "c", "resourceClaimName": "x"}],
    "disruptionMode": {"single": {}},
    "preemptionPolicy": "Never",
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schedulingConstraints", None),
        ("resourceClaims", None),
        ("disruptionMode", {"all": {}}),
        ("preemptionPolicy", "PreemptLowerPriority"),
    ],
)
def test_the_rest_of_a_template_is_fixed(field: str, value: Any):
    old = a_workload(a_template(**FULL))
    new = a_workload(a_template(**{**FULL, field: value}))
    assert errors_of(new, old) == [(INVALID, f"{LEAF}[0].{field}", "field is immutable")]


# --- gates -----------------------------------------------------------------------------------------

GATED = [
    ("schedulingConstraints", "TopologyAwareWorkloadScheduling"),
    ("resourceClaims", "DRAWorkloadResourceClaims"),
    ("preemptionPolicy", "PodGroupPreemptionPolicy"),
]


@pytest.mark.parametrize(("field", "gate"), GATED)
def test_a_gated_field_is_dropped_unless_it_is_in_use(field: str, gate: str):
    off = gates.parse(f"{gate}=false")[0]
    new = a_workload(a_template(**FULL))
    workload.prepare(new, None, "", off)
    assert field not in new["spec"]["podGroupTemplates"][0]
    again = a_workload(a_template(**FULL))
    workload.prepare(again, a_workload(a_template(**FULL)), "", off)
    assert field in again["spec"]["podGroupTemplates"][0]
    assert workload.validate(again, a_workload(a_template(**FULL)), "", off) == []


def test_a_gated_field_in_use_by_one_template_is_still_dropped_from_another():
    off = gates.parse("PodGroupPreemptionPolicy=false")[0]
    new = a_workload(a_template("a", preemptionPolicy="Never"), a_template("b", preemptionPolicy="Never"))
    workload.prepare(new, a_workload(a_template("a", preemptionPolicy="Never"), a_template("b")), "", off)
    assert ["preemptionPolicy" in each for each in new["spec"]["podGroupTemplates"]] == [True, False]


def test_a_gated_field_in_use_cannot_change():
    old = a_workload(a_template(**FULL))
    new = a_workload(a_template(**{**FULL, "schedulingConstraints": {"topology": [{"key": "zone"}]}}))
    found = errors_of(new, old, off="TopologyAwareWorkloadScheduling")
    path = f"{LEAF}[0].schedulingConstraints"
    assert found == [(FORBIDDEN, path, ""), (INVALID, path, "field is immutable")]


def test_composite_templates_are_dropped_with_their_gate():
    off = gates.parse("CompositePodGroup=false")[0]
    obj = a_workload(composites=[a_composite_template("root", a_template())])
    stored = deepcopy(obj)
    workload.prepare(obj, None, "", off)
    assert obj["spec"] == {}
    kept = deepcopy(stored)
    workload.prepare(kept, stored, "", off)
    assert kept == stored
    grown = deepcopy(stored)
    grown["spec"]["compositePodGroupTemplates"][0]["schedulingPolicy"]["gang"]["minGroupCount"] = 2
    assert errors_of(grown, stored, off="CompositePodGroup") == [(FORBIDDEN, TREE, "")]


def test_a_composite_constraint_has_no_gate_of_its_own():
    off = gates.parse("TopologyAwareWorkloadScheduling=false")[0]
    constraint = {"topology": [{"key": "zone"}]}
    stored = a_workload(composites=[a_composite_template("root", a_template(), schedulingConstraints=constraint)])
    new = deepcopy(stored)
    workload.prepare(new, stored, "", off)
    assert new == stored


def test_keys_that_kubernetes_always_prints_are_there():
    obj = a_workload(composites=[a_composite_template("root", a_template())])
    workload.default(obj)
    assert obj["spec"]["podGroupTemplates"] is None
    assert obj["spec"]["compositePodGroupTemplates"][0]["podGroupTemplates"][0]["schedulingConstraints"] is None
    for broken in ({}, {"spec": 3}, {"spec": {"podGroupTemplates": [1, None]}}):
        workload.default(broken)
        workload.prepare(broken, None, "")
        workload.validate(broken, None, "")
