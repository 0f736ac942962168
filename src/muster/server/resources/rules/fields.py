"""Short constructors for field errors, in the order Kubernetes' own validation names them.

A rule reads as one line: `required("spec.containers")`, `invalid(path, value, "must be positive")`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muster.api import errors
from muster.api.errors import FieldError


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(errors.REQUIRED, path, "", detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(errors.INVALID, path, value, detail)


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(errors.FORBIDDEN, path, "", detail)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(errors.DUPLICATE, path, value)


def too_long(path: str, limit: int) -> FieldError:
    return FieldError(errors.TOO_LONG, path, "", f"may not be more than {limit} bytes")


def too_many(path: str, count: int, limit: int) -> FieldError:
    return FieldError(errors.TOO_MANY, path, count, f"must have at most {limit} items")


def not_supported(path: str, value: Any, allowed: Iterable[str]) -> FieldError:
    listed = ", ".join(f'"{each}"' for each in sorted(allowed))
    return FieldError(errors.NOT_SUPPORTED, path, value, f"supported values: {listed}")


def one_of(path: str, value: Any, allowed: Iterable[str]) -> list[FieldError]:
    """Nothing, or the error that the value is not one of the allowed ones."""
    choices = tuple(allowed)
    return [] if value in choices else [not_supported(path, value, choices)]


def not_negative(path: str, value: Any) -> list[FieldError]:
    if isinstance(value, int) and value < 0:
        return [invalid(path, value, "must be greater than or equal to 0")]
    return []


def unchanged(path: str, new: Any, old: Any) -> list[FieldError]:
    """Nothing, or the error of a field that may never change."""
    return [] if new == old else [invalid(path, new, "field is immutable")]
