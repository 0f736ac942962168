"""Field validation and canonical form of written objects."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.errors import ApiError
from muster.server import fields, schema
from muster.server.json_bodies import decode_json

POD = schema.kind("", "v1", "Pod")
ROLE = schema.kind("rbac.authorization.k8s.io", "v1", "Role")
assert POD is not None
assert ROLE is not None

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def attempt(run: Callable[[], Any]) -> Any:
    """What the call gives, or the ApiError it raises."""
    try:
        return run()
    except ApiError as error:
        return error


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c"}], **spec},
    }


def canonical_spec(**spec: Any) -> dict[str, Any]:
    return fields.canonicalise(pod(**spec), POD)["spec"]


def refusal(obj: dict[str, Any], mode: str = fields.STRICT, **more: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        fields.decode(obj, POD, mode, **more)
    return caught.value


def test_a_value_of_the_wrong_type_behind_a_null_in_a_list_of_strings_is_refused():
    container = {"name": "c", "args": ["a", None, True]}
    assert "cannot unmarshal bool" in refusal(pod(containers=[container]), fields.IGNORE).message
    assert canonical_spec(containers=[{"name": "c", "args": ["a", None]}])["containers"][0]["args"] == ["a", ""]


def test_an_unknown_field_is_refused_with_its_path_in_strict_mode():
    error = refusal(pod(x=1, containers=[{"name": "c", "y": 2}]))

    assert error.code == 400
    assert error.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "spec.containers[0].y", unknown field "spec.x"'
    )


def test_an_unknown_field_becomes_a_warning_and_is_pruned_in_warn_mode():
    result, warnings = fields.decode(pod(x=1), POD, fields.WARN)

    assert warnings == ['unknown field "spec.x"']
    assert "x" not in result["spec"]


def test_an_unknown_field_is_dropped_in_silence_in_ignore_mode():
    result, warnings = fields.decode(pod(x=1), POD, fields.IGNORE)

    assert warnings == []
    assert "x" not in result["spec"]


def test_a_repeated_field_is_refused_in_strict_mode():
    obj, repeated = decode_json(b'{"kind":"Pod","metadata":{"name":"a","name":"b"}}')

    assert refusal(obj, duplicates=repeated).message.endswith('strict decoding error: duplicate field "metadata.name"')


def test_unknown_and_repeated_fields_are_named_in_the_order_of_the_body():
    obj, repeated = decode_json(b'{"metadata":{"x":1},"kind":"Pod","spec":{"priority":1,"priority":2,"y":3}}')

    assert refusal(obj, duplicates=repeated).message.endswith(
        'unknown field "metadata.x", duplicate field "spec.priority", unknown field "spec.y"'
    )


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priority": "x"}, "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"),
        (
            {"containers": {}},
            "cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"nodeSelector": {"a": 1}},
            "cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector of type string",
        ),
        ({"hostNetwork": "yes"}, "cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool"),
        ({"priority": 2**31}, "cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority"),
        ({"overhead": {"cpu": "four"}}, "quantities must match the regular expression"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_in_every_mode(spec: dict[str, Any], words: str):
    for mode in (fields.STRICT, fields.WARN, fields.IGNORE):
        error = refusal(pod(**spec), mode)
        assert error.code == 400
        assert words in error.message


def test_a_patched_object_fails_with_422():
    error = refusal(pod(x=1), patched=True)

    assert (error.code, error.reason) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == "patch"


def test_quantities_take_their_canonical_form():
    container = {"name": "c", "resources": {"requests": {"cpu": "1000m", "memory": 1024}}}

    assert canonical_spec(containers=[container])["containers"][0]["resources"]["requests"] == {
        "cpu": "1",
        "memory": "1024",
    }


def test_times_are_written_in_utc_without_fractions():
    obj = pod() | {"metadata": {"creationTimestamp": "2026-11-15T12:00:00.75+02:00"}}

    assert fields.canonicalise(obj, POD)["metadata"] == {"creationTimestamp": "2026-11-15T10:00:00Z"}


def test_a_null_creation_timestamp_is_dropped():
    assert fields.canonicalise(pod() | {"metadata": {"creationTimestamp": None}}, POD)["metadata"] == {}


def test_empty_optional_fields_are_dropped_and_pointers_to_zero_are_kept():
    spec = canonical_spec(
        hostNetwork=False, nodeName="", tolerations=[], priority=0, automountServiceAccountToken=False
    )

    assert spec.keys() & {"hostNetwork", "nodeName", "tolerations"} == set()
    assert (spec["priority"], spec["automountServiceAccountToken"]) == (0, False)


def test_structs_that_go_always_writes_are_present():
    result = fields.canonicalise(pod(), POD)

    assert result["status"] == {}
    assert result["spec"]["containers"][0]["resources"] == {}


def test_a_list_nobody_set_is_left_out():
    assert "rules" not in fields.canonicalise({"metadata": {}}, ROLE)


def test_null_elements_become_empty_ones():
    spec = canonical_spec(containers=[None], nodeSelector={"a": None})

    assert spec["containers"] == [{"name": "", "resources": {}}]
    assert spec["nodeSelector"] == {"a": ""}


def test_the_input_is_not_changed_or_shared():
    obj = pod(tolerations=[{"key": "k"}])
    before = json.dumps(obj)

    result = fields.canonicalise(obj, POD)
    result["spec"]["tolerations"][0]["key"] = "other"
    result["spec"]["containers"].clear()

    assert json.dumps(obj) == before


@given(JSON_VALUES, st.sampled_from([fields.STRICT, fields.WARN, fields.IGNORE]))
def test_no_value_makes_the_walk_fail_with_anything_but_an_api_error(value: Any, mode: str):
    for key in ("metadata", "spec", "status"):
        obj = {key: value}
        result = attempt(lambda obj=obj: fields.decode(obj, POD, mode)[0])
        if isinstance(result, ApiError):
            assert result.code == 400
        else:
            assert fields.canonicalise(result, POD) == result


@given(st.dictionaries(st.sampled_from(["containers", "priority", "volumes", "overhead", "hostname"]), JSON_VALUES))
def test_known_fields_with_wild_values_are_decoded_or_refused(spec: dict[str, Any]):
    result = attempt(lambda: fields.canonicalise({"spec": spec}, POD))

    if isinstance(result, ApiError):
        assert result.code == 400
    else:
        assert fields.canonicalise(result, POD) == result


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        (b'{"a":1,"b":2}', []),
        (b'{"a":1,"a":2}', ["a"]),
        (b'{"a" :1,"a":2}', ["a"]),
        (b'{"a":{"b":1,"b":2},"c":[{"d":1},{"d":1,"d":2}]}', ["a.b", "c[1].d"]),
        (b'{"a":"\\":","b":"x\\": 1"}', []),
        (b'{"a":1,"a":2,"a":3}', ["a"]),
    ],
)
def test_repeated_fields_are_found_wherever_they_are(body: bytes, paths: list[str]):
    assert decode_json(body)[1] == paths


@given(JSON_VALUES, st.sampled_from([(",", ":"), (", ", " : "), (",\n", ":\t")]))
def test_json_without_repetitions_decodes_as_the_standard_library_does(value: Any, separators: tuple[str, str]):
    body = json.dumps(value, separators=separators).encode()

    assert decode_json(body) == (value, [])


@given(st.binary(max_size=60))
def test_bytes_that_are_not_json_are_a_bad_request(body: bytes):
    result = attempt(lambda: decode_json(body))

    assert not isinstance(result, ApiError) or result.code == 400


def test_nesting_without_end_is_refused():
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    for body in (deep, b"[" * 100_000, b'{"spec":' + b"[" * 300 + b"]" * 300 + b"}"):
        with pytest.raises(ApiError) as caught:
            decode_json(body)
        assert caught.value.code == 400


def test_a_recursive_kind_cannot_be_nested_without_end():
    workload = schema.kind("scheduling.k8s.io", "v1alpha3", "Workload")
    assert workload is not None
    spec: dict[str, Any] = {}
    for _ in range(2000):
        spec = {"compositePodGroupTemplates": [spec]}

    with pytest.raises(ApiError, match="exceeded max depth"):
        fields.canonicalise({"spec": spec}, workload)


SPECS = st.fixed_dictionaries(
    {},
    optional={
        "nodeName": JSON_VALUES | st.text(max_size=3),
        "containers": st.lists(
            st.fixed_dictionaries({"name": st.text(max_size=3)}, optional={"resources": JSON_VALUES}), max_size=2
        ),
        "activeDeadlineSeconds": JSON_VALUES,
        "nodeSelector": JSON_VALUES,
        "unknown": JSON_VALUES,
    },
)


@given(SPECS)
def test_a_spec_that_comes_again_is_decoded_as_the_first_time(spec: Any):
    def once() -> Any:
        result = attempt(lambda: fields.decode({"metadata": {"name": "a"}, "spec": spec}, POD))
        return (result.code, result.message) if isinstance(result, ApiError) else result

    assert once() == once()
    remembered = fields._plan(schema.message("core.v1.PodSpec")).remembered
    assert remembered is not None
    again = once()
    remembered.clear()
    assert once() == again


def test_decoded_specs_share_nothing_with_each_other():
    first, second = (fields.canonicalise(pod(nodeSelector={"a": "b"}), POD) for _ in range(2))
    first["spec"]["nodeSelector"]["a"] = "changed"
    first["spec"]["containers"][0]["name"] = "changed"

    assert second["spec"]["nodeSelector"] == {"a": "b"}
    assert fields.canonicalise(pod(nodeSelector={"a": "b"}), POD) == second


def test_only_so_many_specs_are_remembered():
    remembered = fields._plan(schema.message("core.v1.PodSpec")).remembered
    assert remembered is not None
    for number in range(2 * fields._MOST_REMEMBERED):
        fields.canonicalise(pod(nodeName=f"node-{number}"), POD)
    assert len(remembered) <= fields._MOST_REMEMBERED
    remembered.clear()
    fields.canonicalise(pod(nodeName="n" * fields._LARGEST_REMEMBERED), POD)
    assert not remembered
