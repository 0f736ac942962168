"""Failed requests as one line of text."""

from __future__ import annotations

import pytest

from muster.api.errors import ApiError
from muster.client.error_text import error_text


@pytest.mark.parametrize("code", [401, 403])
def test_a_missing_permission_is_named_by_verb_resource_and_group(code: int):
    error = ApiError(code, "Forbidden", "no")

    assert error_text(error, "patch", "pods/status") == "missing permission: patch on pods/status (no)"
    assert error_text(error, "list", "leases", "coordination.k8s.io") == (
        "missing permission: list on leases in API group coordination.k8s.io (no)"
    )


def test_other_errors_are_their_own_text_or_their_name():
    assert error_text(ApiError(500, "InternalError", "boom"), "get", "pods") == "boom"
    assert error_text(TimeoutError(), "get", "pods") == "TimeoutError"
