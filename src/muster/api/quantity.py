"""Kubernetes quantities ("500m", "1.5Gi", "2e3") in exact integer arithmetic.

A quantity is kept as a whole number of nano-units, the finest step that Kubernetes stores, so that
no float ever takes part. What Kubernetes would round is rounded the same way: away from zero to the
next nano-unit on input, up to the next milli or whole unit on output. Magnitudes saturate at 2**63 - 1
units, as they do there. All functions take what JSON can hold: a string, an int or a float.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

MAX_UNITS = 2**63 - 1
NANOS = 10**9

_LONGEST = 256
_PATTERN = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([a-zA-Z]*)([+-]?[0-9]*)", re.ASCII)
_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: "", **{exponent: suffix for suffix, exponent in _BINARY.items()}}


class Form(Enum):
    """How a quantity was written; its canonical text keeps to it."""

    DECIMAL = "DecimalSI"
    EXPONENT = "DecimalExponent"
    BINARY = "BinarySI"


class Quantity(NamedTuple):
    """An exact amount: `nanos` billionths of a unit, and the form it was written in."""

    nanos: int
    form: Form


@lru_cache(maxsize=65536, typed=True)
def parse(text: str | int | float) -> Quantity:
    """The exact amount that a quantity names. Raises ValueError for anything that is not one."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"{text!r} is not a quantity: {_RULE}")
    if isinstance(text, int) and not -(10**40) < text < 10**40:
        return Quantity(MAX_UNITS * NANOS * (1 if text > 0 else -1), Form.DECIMAL)
    written = text if isinstance(text, str) else repr(text)
    if len(written) > _LONGEST:
        raise ValueError(f"a quantity of {len(written)} characters is too long (at most {_LONGEST})")
    matched = _PATTERN.fullmatch(written)
    if matched is None:
        raise ValueError(f"{written!r} is not a quantity: {_RULE}")
    sign, whole, fraction, suffix, power = matched.groups(default="")
    if not whole and not fraction:
        raise ValueError(f"{written!r} is not a quantity: {_RULE}")
    base, exponent, form = _scale(written, suffix, power)
    size = _nanos(int(whole + fraction), -len(fraction), base, exponent)
    return Quantity(-size if sign == "-" else size, form)


def _scale(written: str, suffix: str, power: str) -> tuple[int, int, Form]:
    if suffix in ("e", "E") and power.lstrip("+-"):
        return 10, int(power), Form.EXPONENT
    if not power:
        if suffix in _DECIMAL:
            return 10, _DECIMAL[suffix], Form.DECIMAL
        if suffix in _BINARY:
            return 2, _BINARY[suffix], Form.BINARY
    raise ValueError(
        f"{written!r} is not a quantity: unable to parse quantity's suffix {suffix + power!r};"
        " known are n u m k M G T P E, Ki Mi Gi Ti Pi Ei, and an exponent like e3"
    )


def _nanos(digits: int, decimals: int, base: int, exponent: int) -> int:
    """digits * 10**decimals * base**exponent units as nano-units, rounded away from zero and capped."""
    if digits == 0:
        return 0
    tens = decimals + 9
    if base == 10:
        # Past these bounds the answer is the cap or one nano; the power itself need not be built.
        tens = max(-_LONGEST * 2, min(tens + exponent, _LONGEST * 2))
    else:
        digits <<= exponent
    size = digits * 10**tens if tens >= 0 else -(-digits // 10**-tens)
    return min(size, MAX_UNITS * NANOS)


@lru_cache(maxsize=65536, typed=True)
def milli(text: str | int | float) -> int:
    """Thousandths of a unit, rounded up; saturates at 2**63 - 1 so that it always fits an int64."""
    return _bounded(-(-parse(text).nanos // 10**6))


@lru_cache(maxsize=65536, typed=True)
def value(text: str | int | float) -> int:
    """Whole units, rounded up; always fits an int64."""
    return _bounded(-(-parse(text).nanos // NANOS))


def _bounded(amount: int) -> int:
    return max(-MAX_UNITS, min(amount, MAX_UNITS))


def canonical(text: str | int | float) -> str:
    """The text Kubernetes prints: no fraction, the largest suffix that loses nothing, the form kept."""
    return render(parse(text))


def render(quantity: Quantity) -> str:
    """The canonical text of an amount."""
    nanos, form = quantity
    if nanos == 0:
        return "0"
    whole, part = divmod(nanos, NANOS)
    if form is Form.BINARY and not part and abs(whole) >= 1024:
        power = 0
        while power < 60 and whole % 1024 == 0:
            whole //= 1024
            power += 10
        return f"{whole}{_BINARY_SUFFIX[power]}"
    exponent = -9
    while exponent < 18 and nanos % 1000 == 0:
        nanos //= 1000
        exponent += 3
    if form is Form.EXPONENT:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIX[exponent]}"
