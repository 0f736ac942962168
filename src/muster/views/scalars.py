"""What an unquoted YAML scalar means to kubectl.

kubectl reads YAML 1.1 with Go's rules: `on`, `yes` and `y` are true, `0777` and `0o17` are octal, `1e3` is a
number, `1_000` is 1000; `1:30` and `2026-11-15` stay text. A whole number written as a float is a whole number,
because that is what JSON makes of it.
"""

from __future__ import annotations

import math
import re
from typing import Any

_TRUE = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_FALSE = frozenset(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"))
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_INFINITE = frozenset(sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")) | frozenset(
    (".nan", ".NaN", ".NAN")
)
_INT = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)

MOST_DIGITS = 400


def resolve(text: str) -> Any:
    """The value of a plain scalar. ValueError for a number that JSON cannot hold."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text[0] in "+-.0123456789":
        return _number(text)
    return text


def _number(text: str) -> Any:
    if text in _INFINITE:
        raise ValueError(f"{text} is not a number that JSON can hold")
    plain = text.replace("_", "")
    if not _FLOAT.fullmatch(plain) and not _INT.fullmatch(plain):
        return text
    if len(plain) > MOST_DIGITS:
        raise ValueError(f"a number of {len(plain)} characters is too long")
    if _INT.fullmatch(plain):
        number = _int(plain)
        if -(2**63) <= number < 2**64:
            return number
    value = float(plain) if _FLOAT.fullmatch(plain) else float(_int(plain))
    if math.isinf(value):
        raise ValueError(f"{plain[:40]} is out of range")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _int(plain: str) -> int:
    sign = -1 if plain.startswith("-") else 1
    digits = plain.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)
