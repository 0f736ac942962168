"""Errors become Statuses in one place, with the headers that clients act on and without our insides."""

import msgspec
import pytest

from muster.api.errors import ApiError, not_found, too_many_requests, unauthorized
from muster.server.error_status import error_event, error_response
from muster.server.store.records import StoreFailedError


@pytest.mark.parametrize(
    ("error", "headers"),
    [
        (not_found("", "pods", "p"), {}),
        (too_many_requests("busy", 7), {"Retry-After": "7"}),
        (unauthorized(), {"WWW-Authenticate": 'Bearer realm="kubernetes"'}),
    ],
)
def test_an_api_error_is_answered_with_its_status_and_headers(error: ApiError, headers: dict[str, str]) -> None:
    response = error_response(error)

    assert (response.status, response.headers) == (error.code, headers)
    assert msgspec.json.decode(response.body) == error.status()


def test_a_failed_store_says_why_it_takes_no_writes() -> None:
    body = msgspec.json.decode(error_response(StoreFailedError("disk full")).body)

    assert (body["code"], body["reason"]) == (500, "InternalError")
    assert body["message"] == "the store takes no more writes: disk full"


def test_an_unforeseen_error_is_a_500_without_details() -> None:
    response = error_response(ZeroDivisionError("secret insides"))

    assert response.status == 500
    assert b"secret" not in response.body


def test_a_watch_ends_with_the_same_status() -> None:
    error = ApiError(410, "Expired", "too old resource version")

    frame = error_event(error)

    assert frame.endswith(b"\n")
    assert msgspec.json.decode(frame) == {"type": "ERROR", "object": error.status()}
