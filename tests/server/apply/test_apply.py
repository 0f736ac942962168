"""Server-side apply: merging, ownership, conflicts, removal, and the way over from client-side apply."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.errors import ApiError
from muster.server import fields, schema
from muster.server.apply import check_options, managed, merge
from muster.server.apply.object_schema import MessageSchema

DEPLOYMENT = schema.kind("apps", "v1", "Deployment")
POD = schema.kind("", "v1", "Pod")
assert DEPLOYMENT is not None
assert POD is not None
OF_DEPLOYMENTS, OF_PODS = MessageSchema(DEPLOYMENT), MessageSchema(POD)

T0, T1 = "2026-11-15T12:00:00Z", "2026-11-15T12:00:01Z"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def deployment(**spec: Any) -> dict[str, Any]:
    top = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    return top | {"spec": spec} if spec else top


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    return {"template": {"spec": {"containers": list(items)}}}


def applied(live: Any, config: Any, manager: str = "alice", **more: Any) -> dict[str, Any]:
    result = merge(
        live, config, OF_DEPLOYMENTS, manager=manager, api_version="apps/v1", now=more.pop("now", T0), **more
    )
    return fields.canonicalise(result, DEPLOYMENT)


def written(old: Any, new: Any, manager: str = "bob", **more: Any) -> dict[str, Any]:
    new = fields.canonicalise(new, DEPLOYMENT)
    entries = managed.update(
        old, new, OF_DEPLOYMENTS, manager=manager, api_version="apps/v1", now=more.pop("now", T0), **more
    )
    return new | {"metadata": new["metadata"] | ({"managedFields": entries} if entries else {})}


def owners(obj: dict[str, Any]) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def conflict(run: Callable[[], Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        run()
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    return caught.value


def names(obj: dict[str, Any]) -> list[str]:
    return [item["name"] for item in obj["spec"]["template"]["spec"]["containers"]]


def test_the_first_apply_creates_the_object_and_owns_what_it_said():
    obj = applied(None, deployment(replicas=2, **containers({"name": "a", "image": "x"})))

    assert obj["spec"]["replicas"] == 2
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "alice",
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": T0,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    "f:replicas": {},
                    "f:template": {
                        "f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:image": {}}}}
                    },
                }
            },
        }
    ]


def test_another_manager_may_not_change_an_owned_field():
    obj = applied(None, deployment(replicas=2))

    error = conflict(lambda: applied(obj, deployment(replicas=3), "bob"))

    assert error.message == 'Apply failed with 1 conflict: conflict with "alice": .spec.replicas'
    assert error.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "alice"', "field": ".spec.replicas"}
    ]


def test_a_conflict_with_an_updater_names_its_version():
    obj = written(None, deployment(replicas=2), "kubectl-create")

    error = conflict(lambda: applied(obj, deployment(replicas=3)))

    assert error.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-create" using apps/v1: .spec.replicas'
    )


def test_several_conflicts_are_listed_by_manager():
    obj = applied(None, deployment(replicas=2, paused=True))
    obj = applied(obj, deployment(minReadySeconds=1), "bob")

    error = conflict(lambda: applied(obj, deployment(replicas=3, paused=False, minReadySeconds=2), "carol"))

    assert error.message == (
        'Apply failed with 3 conflicts: conflicts with "alice":\n- .spec.paused\n- .spec.replicas\n'
        'conflicts with "bob":\n- .spec.minReadySeconds'
    )
    assert len(error.details["causes"]) == 3


def test_the_same_value_is_shared_by_its_owners():
    obj = applied(None, deployment(replicas=2))
    obj = applied(obj, deployment(replicas=2), "bob")

    assert owners(obj) == {"alice": {"f:spec": {"f:replicas": {}}}, "bob": {"f:spec": {"f:replicas": {}}}}


def test_an_equal_quantity_in_other_words_is_no_conflict():
    obj = applied(None, deployment(**containers({"name": "a", "resources": {"limits": {"cpu": "1"}}})))

    obj = applied(obj, deployment(**containers({"name": "a", "resources": {"limits": {"cpu": "1000m"}}})), "bob")

    assert set(owners(obj)) == {"alice", "bob"}


def test_force_takes_the_field_over():
    obj = applied(None, deployment(replicas=2, paused=True))

    obj = applied(obj, deployment(replicas=3), "bob", force=True)

    assert obj["spec"]["replicas"] == 3
    assert owners(obj) == {"alice": {"f:spec": {"f:paused": {}}}, "bob": {"f:spec": {"f:replicas": {}}}}


def test_a_field_no_longer_applied_is_removed():
    obj = applied(None, deployment(replicas=2, paused=True))

    obj = applied(obj, deployment(replicas=2))

    assert "paused" not in obj["spec"]


def test_a_field_no_longer_applied_stays_when_another_manager_owns_it():
    obj = applied(None, deployment(replicas=2))
    obj = applied(obj, deployment(replicas=2), "bob")

    obj = applied(obj, deployment())

    assert obj["spec"]["replicas"] == 2
    assert set(owners(obj)) == {"bob"}


def test_giving_a_field_to_an_updater_before_dropping_it_keeps_its_value():
    obj = applied(None, deployment(replicas=2))
    obj = written(obj, obj | {"spec": obj["spec"] | {"replicas": 5}}, "autoscaler", subresource="scale")

    obj = applied(obj, deployment(), "alice")

    assert obj["spec"]["replicas"] == 5
    assert set(owners(obj)) == {"autoscaler"}


def test_elements_of_keyed_lists_have_their_own_owners():
    obj = applied(None, deployment(**containers({"name": "a", "image": "1"})))
    obj = applied(obj, deployment(**containers({"name": "b", "image": "2"})), "bob")
    assert names(obj) == ["a", "b"]

    obj = applied(obj, deployment(**containers()))

    assert names(obj) == ["b"]


def test_an_element_goes_with_the_fields_that_defaulting_gave_it():
    obj = applied(None, deployment(**containers({"name": "a"}, {"name": "b"})))
    obj["spec"]["template"]["spec"]["containers"][1]["imagePullPolicy"] = "Always"

    obj = applied(obj, deployment(**containers({"name": "a"})))

    assert names(obj) == ["a"]


def test_ports_without_a_protocol_are_keyed_with_its_default():
    port = {"containerPort": 80}
    obj = applied(None, deployment(**containers({"name": "a", "ports": [port]})))
    obj["spec"]["template"]["spec"]["containers"][0]["ports"][0]["protocol"] = "TCP"

    again = applied(obj, deployment(**containers({"name": "a", "ports": [port]})))

    assert again["spec"]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_atomic_lists_are_replaced_and_owned_as_one():
    obj = applied(None, deployment(**containers({"name": "a", "command": ["x", "y"]})))

    error = conflict(lambda: applied(obj, deployment(**containers({"name": "a", "command": ["x"]})), "bob"))

    assert error.details["causes"][0]["field"] == '.spec.template.spec.containers[name="a"].command'


def test_values_of_a_set_have_their_own_owners():
    def config(*finalizers: str) -> dict[str, Any]:
        return deployment() | {"metadata": {"name": "d", "finalizers": list(finalizers)}}

    obj = applied(None, config("a"))
    obj = applied(obj, config("b"), "bob")
    assert sorted(obj["metadata"]["finalizers"]) == ["a", "b"]

    obj = applied(obj, config())

    assert obj["metadata"]["finalizers"] == ["b"]


def test_the_applied_order_of_elements_is_kept():
    obj = applied(None, deployment(**containers({"name": "a"}, {"name": "b"})))
    obj = applied(obj, deployment(**containers({"name": "x"})), "bob")

    obj = applied(obj, deployment(**containers({"name": "b"}, {"name": "new"}, {"name": "a"})))

    assert [name for name in names(obj) if name != "x"] == ["b", "new", "a"]
    assert "x" in names(obj)


def test_an_untracked_object_belongs_to_its_earlier_writers():
    live = fields.canonicalise(deployment(replicas=2, paused=True), DEPLOYMENT)

    error = conflict(lambda: applied(live, deployment(replicas=3)))
    obj = applied(live, deployment(replicas=2))

    assert 'conflict with "before-first-apply" using apps/v1: .spec.replicas' in error.message
    assert set(owners(obj)) == {"alice", "before-first-apply"}
    assert obj["spec"]["paused"] is True


def test_kubectl_takes_over_what_it_applied_on_the_client_side():
    before = deployment(replicas=2, paused=True)
    annotated = before | {"metadata": {"name": "d", "annotations": {LAST_APPLIED: json.dumps(before)}}}
    live = written(None, annotated, "kubectl-client-side-apply")

    obj = applied(live, deployment(replicas=3), "kubectl")

    assert obj["spec"]["replicas"] == 3
    assert json.loads(obj["metadata"]["annotations"][LAST_APPLIED])["spec"] == {"replicas": 3}


def test_kubectl_does_not_take_over_what_somebody_changed_since():
    before = deployment(replicas=2)
    annotated = before | {"metadata": {"name": "d", "annotations": {LAST_APPLIED: json.dumps(before)}}}
    live = written(None, annotated, "kubectl-client-side-apply")
    live = written(live, live | {"spec": live["spec"] | {"replicas": 7}}, "autoscaler")

    error = conflict(lambda: applied(live, deployment(replicas=3), "kubectl"))

    assert 'conflict with "autoscaler" using apps/v1: .spec.replicas' in error.message


def test_kubectls_second_apply_owns_the_annotation_alone():
    obj = applied(None, deployment(replicas=2), "kubectl")
    config = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "annotations": {LAST_APPLIED: "{}"}},
    }

    obj = applied(obj, config, "kubectl-last-applied", force=True)

    assert owners(obj)["kubectl-last-applied"] == {"f:metadata": {"f:annotations": {f"f:{LAST_APPLIED}": {}}}}
    assert owners(obj)["kubectl"] == {"f:spec": {"f:replicas": {}}}


def test_a_configuration_with_managed_fields_is_refused():
    config = deployment() | {"metadata": {"name": "d", "managedFields": []}}

    with pytest.raises(ApiError, match=r"metadata.managedFields must be nil"):
        applied(None, config)


def test_a_configuration_that_names_an_element_twice_is_refused():
    with pytest.raises(ApiError, match=r'duplicate entries for key \[name="a"\]') as caught:
        applied(None, deployment(**containers({"name": "a"}, {"name": "a"})))
    assert caught.value.code == 400


def test_a_field_the_schema_does_not_declare_is_refused():
    with pytest.raises(ApiError, match=r"\.spec\.nonsense: field not declared in schema") as caught:
        applied(None, deployment(nonsense=1))
    assert caught.value.code == 400


def test_a_kind_without_a_schema_can_be_applied():
    config = {
        "apiVersion": "x/v1",
        "kind": "X",
        "metadata": {"name": "x", "labels": {"a": "1"}},
        "spec": {"n": [1], "o": {"p": 1}},
    }
    obj = merge(None, config, MessageSchema(None), manager="alice", api_version="x/v1", now=T0)

    less = config | {"spec": {"n": [1]}, "metadata": {"name": "x"}}
    obj = merge(obj, less, MessageSchema(None), manager="alice", api_version="x/v1", now=T1)

    assert obj["spec"] == {"n": [1]}
    assert "labels" not in obj["metadata"]


def test_apply_needs_a_manager_and_only_apply_may_force():
    with pytest.raises(ApiError, match="fieldManager: Required value: is required for apply patch"):
        check_options("", False, is_apply=True)
    with pytest.raises(ApiError, match="force: Forbidden: may not be specified for non-apply patch"):
        check_options("x", True, is_apply=False)
    check_options("x", True, is_apply=True)


# --- other writes --------------------------------------------------------------------------------------


def test_a_create_owns_every_field_and_container_it_brought():
    obj = written(None, deployment(replicas=2, **containers({"name": "a"})) | {"metadata": {"labels": {"x": "y"}}})

    fields_of_bob = owners(obj)["bob"]

    assert fields_of_bob["f:metadata"] == {"f:labels": {".": {}, "f:x": {}}}
    assert fields_of_bob["f:spec"]["f:replicas"] == {}
    assert fields_of_bob["f:spec"]["f:template"]["f:spec"]["f:containers"] == {
        'k:{"name":"a"}': {".": {}, "f:name": {}, "f:resources": {}}
    }


def test_an_update_takes_only_what_it_changed():
    obj = written(None, deployment(replicas=2, paused=True), "bob")

    obj = written(obj, deployment(replicas=3, paused=True), "carol", now=T1)

    assert owners(obj)["carol"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owners(obj)["bob"]["f:spec"]


def test_an_update_that_changes_nothing_changes_no_entry():
    obj = written(None, deployment(replicas=2), "bob")

    again = managed.update(obj, obj, OF_DEPLOYMENTS, manager="carol", api_version="apps/v1", now=T1)

    assert again == obj["metadata"]["managedFields"]


def test_removing_a_field_takes_it_from_every_owner():
    obj = applied(None, deployment(replicas=2, paused=True))
    obj = applied(obj, deployment(paused=True), "bob")

    obj = written(obj, deployment(replicas=2) | {"metadata": obj["metadata"]}, "carol")

    assert owners(obj) == {"alice": {"f:spec": {"f:replicas": {}}}}


def test_what_is_not_tracked_stays_so_until_the_first_apply():
    obj = written(None, deployment(replicas=2), track=False)
    assert "managedFields" not in obj["metadata"]

    assert "managedFields" not in written(obj, deployment(replicas=3))["metadata"]


def test_a_status_write_owns_status_fields_under_its_subresource():
    pod = fields.canonicalise({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}, POD)
    pod["metadata"]["managedFields"] = managed.update(None, pod, OF_PODS, manager="bob", api_version="v1", now=T0)
    running = pod | {"status": {"phase": "Running"}}

    entries = managed.update(pod, running, OF_PODS, manager="kubelet", api_version="v1", now=T1, subresource="status")

    kubelet = entries[-1]
    assert (kubelet["manager"], kubelet["subresource"]) == ("kubelet", "status")
    assert kubelet["fieldsV1"] == {"f:status": {"f:phase": {}}}


def test_a_client_may_rewrite_the_entries_themselves():
    obj = written(None, deployment(replicas=2), "kubectl-client-side-apply")
    renamed = [entry | {"manager": "kubectl"} for entry in obj["metadata"]["managedFields"]]

    obj = written(obj, obj | {"metadata": obj["metadata"] | {"managedFields": renamed}}, "kubectl")

    assert list(owners(obj)) == ["kubectl"]


def test_a_client_may_reset_the_entries():
    obj = written(None, deployment(replicas=2))

    assert (
        managed.update(
            obj,
            obj | {"metadata": obj["metadata"] | {"managedFields": [{}]}},
            OF_DEPLOYMENTS,
            manager="bob",
            api_version="apps/v1",
            now=T1,
        )
        == []
    )


def test_entries_that_cannot_be_read_are_ignored():
    obj = written(None, deployment(replicas=2))
    broken = [
        {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": 1}}
    ]

    again = written(obj, deployment(replicas=2) | {"metadata": {"name": "d", "managedFields": broken}})

    assert owners(again) == owners(obj)


def test_old_updaters_are_joined_when_there_are_too_many():
    obj = written(None, deployment(replicas=1))
    for number in range(15):
        labels = {f"l{other}": "x" for other in range(number + 1)}
        now = f"2026-11-15T12:00:{number + 1:02d}Z"
        obj = written(obj, obj | {"metadata": obj["metadata"] | {"labels": labels}}, f"m{number}", now=now)

    entries = obj["metadata"]["managedFields"]
    labels = [entry["fieldsV1"].get("f:metadata", {}).get("f:labels", {}) for entry in entries]
    everything = [path for owned in labels for path in owned if path != "."]

    assert len(entries) <= managed.MAX_UPDATERS
    assert "ancient-changes" in owners(obj)
    assert sorted(everything) == sorted(f"f:l{number}" for number in range(15))


@pytest.mark.parametrize(
    ("given", "agent", "name"),
    [("kubectl-edit", "x/1", "kubectl-edit"), ("", "kubectl/v1.37 (linux)", "kubectl"), ("", "", "unknown")],
)
def test_a_manager_without_a_name_goes_by_its_program(given: str, agent: str, name: str):
    assert managed.manager_of(given, agent) == name


# --- laws ----------------------------------------------------------------------------------------------

ITEMS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"image": st.sampled_from("12")}),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item["name"],
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(1, 3),
        "paused": st.booleans(),
        "template": ITEMS.map(lambda items: {"spec": {"containers": items}}),
    },
)


@given(SPECS, SPECS, SPECS)
def test_applying_again_changes_nothing_and_inputs_are_left_alone(first: Any, other: Any, again: Any):
    obj = applied(None, deployment(**first))
    obj = applied(obj, deployment(**other), "bob", force=True)
    before = json.dumps([obj, again])

    once = applied(obj, deployment(**again), force=True)
    twice = applied(once, deployment(**again), now=T1)

    assert twice == once
    assert json.dumps([obj, again]) == before


@given(SPECS, SPECS)
def test_a_lone_applier_gets_exactly_the_object_it_describes(first: Any, second: Any):
    obj = applied(applied(None, deployment(**first)), deployment(**second))

    fresh = applied(None, deployment(**second))

    def essence(spec: dict[str, Any]) -> dict[str, Any]:
        items = spec.get("template", {}).get("spec", {}).get("containers", [])
        return {
            "replicas": spec.get("replicas"),
            "paused": spec.get("paused"),
            "containers": {item["name"]: item.get("image") for item in items},
        }

    assert essence(obj["spec"]) == essence(fresh["spec"])
    assert owners(obj) == owners(fresh)


@given(SPECS, SPECS, SPECS)
def test_every_applied_value_is_in_the_object_until_somebody_forces_it(first: Any, second: Any, third: Any):
    obj = applied(None, deployment(**first))
    for manager, config in (("bob", second), ("carol", third)):
        obj = applied(obj, deployment(**config), manager, force=True)
        for key in config.keys() & {"replicas"}:
            assert obj["spec"][key] == config[key]
        assert {item["name"] for item in config.get("template", {}).get("spec", {}).get("containers", [])} <= {
            item["name"] for item in obj["spec"]["template"]["spec"].get("containers", [])
        }


WILD = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "spec", "replicas", "template", "containers", "name", "labels", "finalizers"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(WILD, st.none() | SPECS)
def test_a_wild_configuration_is_applied_or_refused_with_an_api_error(config: Any, live: Any):
    obj = applied(None, deployment(**live)) if live is not None else None
    for wild in (config, {"spec": config}, {"metadata": config}):
        try:
            result: Any = applied(obj, wild, "bob")
        except ApiError as error:
            result = error
        assert isinstance(result, dict) or result.code in (400, 409)


LABELS = st.dictionaries(st.text(max_size=3), st.text(max_size=2), max_size=3)


@given(labels=LABELS, annotations=LABELS, finalizers=st.lists(st.sampled_from(("a/b", "c/d")), max_size=1))
def test_a_create_owns_each_label_and_annotation_whatever_their_values(
    labels: dict[str, str], annotations: dict[str, str], finalizers: list[str]
):
    meta = {"name": "p", "labels": labels, "annotations": annotations, "finalizers": finalizers}
    new = fields.canonicalise({"metadata": meta, "spec": {"containers": [{"name": "a"}]}}, POD)
    (entry,) = managed.update(None, new, OF_PODS, manager="bob", api_version="v1", now=T0)
    owned = entry["fieldsV1"]["f:metadata"] if labels or annotations or finalizers else {}
    expected: dict[str, Any] = {}
    for name, values in (("labels", labels), ("annotations", annotations)):
        if values:
            expected[f"f:{name}"] = {".": {}, **{f"f:{key}": {} for key in values}}
    if finalizers:
        expected["f:finalizers"] = {".": {}, **{f'v:"{name}"': {} for name in finalizers}}
    assert owned == expected
    assert "f:containers" in entry["fieldsV1"]["f:spec"]
