"""How Go reads and writes the scalars of the API: times, quantities, bytes, numbers.

Every function takes what JSON can hold and gives the canonical JSON value. ValueError carries the words that
Kubernetes' decoder uses; WrongType says that the JSON value is of another kind altogether.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from muster.api import quantity

INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class WrongType(ValueError):
    """The JSON value cannot stand for the Go type."""


def string(value: Any) -> str:
    if type(value) is not str:
        raise WrongType
    return value


def boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise WrongType
    return value


def _integer(bounds: tuple[int, int]) -> Callable[[Any], int]:
    low, high = bounds

    def convert(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise WrongType
        return value

    return convert


def double(value: Any) -> float:
    if type(value) not in (int, float):
        raise WrongType
    return value


def base64(value: Any) -> str:
    if type(value) is not str:
        raise WrongType
    try:
        binascii.a2b_base64(value.encode(), strict_mode=True) if value else None
    except (ValueError, UnicodeEncodeError):
        raise ValueError("illegal base64 data at input byte 0") from None
    return value


def time(value: Any) -> str:
    if type(value) is not str:
        raise WrongType
    return _seconds(value)


def microtime(value: Any) -> str:
    if type(value) is not str:
        raise WrongType
    return _micros(value)


@lru_cache(maxsize=4096)
def _seconds(text: str) -> str:
    return _instant(text, "2006-01-02T15:04:05Z07:00").strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


@lru_cache(maxsize=4096)
def _micros(text: str) -> str:
    return _instant(text, "2006-01-02T15:04:05.000000Z07:00").strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def _instant(text: str, layout: str) -> datetime:
    matched = _RFC3339.fullmatch(text)
    try:
        if matched is None:
            raise ValueError
        fraction = (matched[1] or ".0")[:7]
        return datetime.fromisoformat(text[:19] + fraction.ljust(7, "0") + matched[2]).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"') from None


def from_unix(seconds: int, nanos: int, *, micro: bool) -> str:
    """The JSON form of a protobuf timestamp. Raises ValueError where the year has no four digits."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError):
        raise ValueError("the time is out of range") from None
    if not micro:
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)
    if not 0 <= nanos < 1_000_000_000:
        raise ValueError("the time is out of range")
    return moment.strftime("%Y-%m-%dT%H:%M:%S").zfill(19) + f".{nanos // 1000:06d}Z"


@lru_cache(maxsize=16384, typed=True)
def _canonical_quantity(value: str | int | float) -> str:
    try:
        return quantity.canonical(value)
    except ValueError:
        raise ValueError(_QUANTITY_RULE) from None


def amount(value: Any) -> str:
    if type(value) not in (str, int, float):
        raise ValueError(_QUANTITY_RULE)
    return _canonical_quantity(value)


def int_or_string(value: Any) -> int | str:
    if type(value) is str or (type(value) is int and INT32[0] <= value <= INT32[1]):
        return value
    raise WrongType


def anything(value: Any) -> Any:
    return value


def json_object(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise WrongType
    return value


def strings(value: Any) -> list[str]:
    if type(value) is not list:
        raise WrongType
    return [string(item) for item in value]


CONVERT: dict[str, Callable[[Any], Any]] = {
    "string": string,
    "bool": boolean,
    "int32": _integer(INT32),
    "int64": _integer(INT64),
    "double": double,
    "bytes": base64,
    "time": time,
    "microtime": microtime,
    "quantity": amount,
    "intorstring": int_or_string,
    "raw": anything,
    "fields": json_object,
    "strings": strings,
}

# What Go writes for a value that nobody set. None where the answer is null.
ZERO: dict[str, Any] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "double": 0,
    "bytes": "",
    "time": None,
    "microtime": None,
    "quantity": "0",
    "intorstring": 0,
    "raw": None,
    "fields": None,
    "strings": None,
}

GO_TYPE = {
    "bytes": "[]uint8",
    "double": "float64",
    "time": "string",
    "microtime": "string",
    "quantity": "resource.Quantity",
    "intorstring": "int32",
    "strings": "[]string",
    "fields": "v1.FieldsV1",
}
