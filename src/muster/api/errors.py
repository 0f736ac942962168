"""API failures in Kubernetes' own form: one exception that carries a `Status`, one value a bad field.

Server, client and command line all speak in these. A field error names the field, the type that
Kubernetes gives such an error, and what to write instead; all of an object's field errors travel
together in the causes of one 422.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
NOT_SUPPORTED = "FieldValueNotSupported"
DUPLICATE = "FieldValueDuplicate"
FORBIDDEN = "FieldValueForbidden"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
TYPE_INVALID = "FieldValueTypeInvalid"
NOT_FOUND = "FieldValueNotFound"

OMITTED = object()
"""The value of a field error about something too large to show."""

_WORDS = {
    REQUIRED: "Required value",
    INVALID: "Invalid value",
    NOT_SUPPORTED: "Unsupported value",
    DUPLICATE: "Duplicate value",
    FORBIDDEN: "Forbidden",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
    TYPE_INVALID: "Invalid value",
    NOT_FOUND: "Not found",
}


class FieldError(NamedTuple):
    """One thing wrong with one field."""

    type: str
    field: str
    value: Any = None
    detail: str = ""

    def body(self) -> str:
        """The error without the field's path, as Kubernetes puts it into a cause's message."""
        words = _WORDS[self.type]
        if self.type in (REQUIRED, FORBIDDEN, TOO_LONG) or self.value is OMITTED:
            text = words
        else:
            text = f"{words}: {_quote(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body()}"

    def cause(self) -> dict[str, str]:
        return {"reason": self.type, "message": self.body(), "field": self.field}


def _quote(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return msgspec.json.encode(value).decode()


class ApiError(Exception):
    """A request that failed, with everything a `Status` says about it."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})
        if retry_after is not None:
            self.details["retryAfterSeconds"] = retry_after
        self.retry_after = retry_after

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details or self.code == 404:  # kubectl reads the details of a 404 without looking whether there are any
            body["details"] = self.details
        body["code"] = self.code
        return body

    @classmethod
    def from_status(cls, code: int, body: dict[str, Any]) -> ApiError:
        """The error that a server's `Status` describes."""
        details: dict[str, Any] = body.get("details") or {}
        return cls(
            int(body.get("code") or code),
            str(body.get("reason") or ""),
            str(body.get("message") or f"the server answered {code}"),
            details,
            retry_after=details.get("retryAfterSeconds"),
        )


def _kind(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def _about(group: str, plural: str, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name}
    if group:
        details["group"] = group
    details["kind"] = plural
    return details


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized(message: str = "Unauthorized") -> ApiError:
    return ApiError(401, "Unauthorized", message)


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    quoted = f' "{name}"' if name else ""
    return ApiError(
        403, "Forbidden", f"{_kind(group, plural)}{quoted} is forbidden: {why}", _about(group, plural, name)
    )


def not_found(group: str, plural: str, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{_kind(group, plural)} "{name}" not found', _about(group, plural, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed(group: str, plural: str, verb: str) -> ApiError:
    return ApiError(
        405,
        "MethodNotAllowed",
        f"{verb} is not supported on resources of kind {_kind(group, plural)!r}".replace("'", '"'),
        {"group": group, "kind": plural} if group else {"kind": plural},
    )


def not_acceptable(message: str) -> ApiError:
    return ApiError(406, "NotAcceptable", message)


def already_exists(group: str, plural: str, name: str) -> ApiError:
    return ApiError(
        409, "AlreadyExists", f'{_kind(group, plural)} "{name}" already exists', _about(group, plural, name)
    )


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {_kind(group, plural)} "{name}": {why}',
        _about(group, plural, name),
    )


def gone(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def too_large(message: str) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", message)


def unsupported_media_type(message: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message)


def invalid(group: str, kind: str, name: str, errors: Iterable[FieldError]) -> ApiError:
    """422 with every field error of one object; the message lists them as kubectl shows them."""
    found = list(errors)
    texts = [str(error) for error in found]
    listed = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details: dict[str, Any] = {"name": name}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [error.cause() for error in found]
    return ApiError(422, "Invalid", f'{_kind(group, kind)} "{name}" is invalid: {listed}', details)


def too_many_requests(message: str, retry_after: int = 1) -> ApiError:
    return ApiError(429, "TooManyRequests", message, retry_after=retry_after)


def internal(message: str) -> ApiError:
    return ApiError(500, "InternalError", message)


def timeout(message: str, retry_after: int = 1) -> ApiError:
    return ApiError(504, "Timeout", message, retry_after=retry_after)
