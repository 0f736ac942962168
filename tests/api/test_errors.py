"""Failures read as Kubernetes writes them, and resources know their paths."""

import pytest

from muster.api import errors, resources
from muster.api.errors import ApiError, FieldError

GROUP = "scheduling.k8s.io"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FieldError(errors.REQUIRED, "spec.x"), "spec.x: Required value"),
        (FieldError(errors.REQUIRED, "spec.x", None, "say it"), "spec.x: Required value: say it"),
        (FieldError(errors.INVALID, "a", 'q"\\', "no"), 'a: Invalid value: "q\\"\\\\": no'),
        (FieldError(errors.INVALID, "a", None, "no"), "a: Invalid value: null: no"),
        (FieldError(errors.INVALID, "a", True), "a: Invalid value: true"),
        (FieldError(errors.INVALID, "a", 1.5), "a: Invalid value: 1.5"),
        (FieldError(errors.INVALID, "a", {"b": [1]}), 'a: Invalid value: {"b":[1]}'),
        (FieldError(errors.DUPLICATE, "a[1]", "x"), 'a[1]: Duplicate value: "x"'),
        (FieldError(errors.FORBIDDEN, "a", "x", "no"), "a: Forbidden: no"),
        (FieldError(errors.TOO_MANY, "a", 9, "must have at most 8 items"), "a: Too many: 9: must have at most 8 items"),
        (
            FieldError(errors.TOO_LONG, "a", "x", "may not be more than 3 bytes"),
            "a: Too long: may not be more than 3 bytes",
        ),
        (
            FieldError(errors.NOT_SUPPORTED, "a", "x", 'supported values: "y"'),
            'a: Unsupported value: "x": supported values: "y"',
        ),
        (FieldError(errors.NOT_FOUND, "a", "x"), 'a: Not found: "x"'),
    ],
)
def test_a_field_error_reads_as_kubernetes_writes_it(error: FieldError, text: str):
    assert str(error) == text


def test_an_invalid_object_carries_every_cause():
    found = [FieldError(errors.REQUIRED, "spec.a"), FieldError(errors.INVALID, "spec.b", 1, "no")]
    error = errors.invalid(GROUP, "PodGroup", "x", found)
    assert error.code == 422
    assert error.message == (
        'PodGroup.scheduling.k8s.io "x" is invalid: [spec.a: Required value, spec.b: Invalid value: 1: no]'
    )
    assert error.status()["details"]["causes"] == [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.a"},
        {"reason": "FieldValueInvalid", "message": "Invalid value: 1: no", "field": "spec.b"},
    ]
    assert errors.invalid("", "Pod", "x", found[:1]).message == 'Pod "x" is invalid: spec.a: Required value'


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (errors.bad_request("m"), 400, "BadRequest"),
        (errors.unauthorized(), 401, "Unauthorized"),
        (errors.forbidden(GROUP, "podgroups", "x", "no"), 403, "Forbidden"),
        (errors.forbidden("", "pods", "", "no"), 403, "Forbidden"),
        (errors.not_found("", "pods", "x"), 404, "NotFound"),
        (errors.no_such_path(), 404, "NotFound"),
        (errors.method_not_allowed(GROUP, "podgroups", "PUT"), 405, "MethodNotAllowed"),
        (errors.method_not_allowed("", "pods", "PUT"), 405, "MethodNotAllowed"),
        (errors.not_acceptable("m"), 406, "NotAcceptable"),
        (errors.already_exists("", "pods", "x"), 409, "AlreadyExists"),
        (errors.conflict("", "pods", "x", "old"), 409, "Conflict"),
        (errors.gone("m"), 410, "Expired"),
        (errors.too_large("m"), 413, "RequestEntityTooLarge"),
        (errors.unsupported_media_type("m"), 415, "UnsupportedMediaType"),
        (errors.too_many_requests("m"), 429, "TooManyRequests"),
        (errors.internal("m"), 500, "InternalError"),
        (errors.timeout("m"), 504, "Timeout"),
    ],
)
def test_each_failure_has_its_code_and_reason_and_survives_the_wire(error: ApiError, code: int, reason: str):
    assert (error.code, error.reason) == (code, reason)
    again = ApiError.from_status(0, error.status())
    assert (again.code, again.reason, again.message, again.details) == (code, reason, error.message, error.details)
    assert again.retry_after == error.retry_after


def test_an_answer_that_is_no_status_still_makes_an_error():
    error = ApiError.from_status(502, {})
    assert (error.code, error.message) == (502, "the server answered 502")
    assert "reason" not in error.status()


def test_a_resource_knows_its_paths():
    assert resources.PODS.path("ns", "p", "binding") == "/api/v1/namespaces/ns/pods/p/binding"
    assert resources.POD_GROUPS.path() == "/apis/scheduling.k8s.io/v1alpha3/podgroups"
    assert resources.NODES.path("ignored", "n") == "/api/v1/nodes/n"
    assert resources.PODS.api_version == "v1"
    assert resources.POD_GROUPS.api_version == "scheduling.k8s.io/v1alpha3"
