"""The formats that a schema may ask of strings. A format that is not known here restricts nothing.

Dashes in the name do not count: `date-time` and `datetime` are one.
"""

from __future__ import annotations

import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from urllib.parse import urlsplit

from muster.api.validation import formats


def _matching(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags | re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(version: str, variant: str) -> Callable[[str], bool]:
    return _matching(
        rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}[0-9a-f]{{3}}-?{variant}[0-9a-f]{{3}}-?[0-9a-f]{{12}}", re.IGNORECASE
    )


_is_date_time = _matching(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[tT ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?"
    r"([zZ]|[+-]([01]\d|2[0-3]):[0-5]\d)?"
)
_is_duration = _matching(r"[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
_is_long_duration = _matching(
    r"\s*(\d+(\.\d+)?)\s*(ns|nano(s(ec(onds?)?)?)?|us|micro(s(ec(onds?)?)?)?|ms|milli(s(ec(onds?)?)?)?|s|secs?|seconds?"
    r"|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)\s*"
)


def _date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _date_time(text: str) -> bool:
    return _is_date_time(text) and _date(text[:10])


def _duration(text: str) -> bool:
    return _is_duration(text) or _is_long_duration(text)


def _address(version: int) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version and "%" not in text
        except ValueError:
            return False

    return fits


def _cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return bool(slash) and length.isdigit() and "%" not in address


def _uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return text.startswith("/") or bool(parts.scheme and (parts.netloc or parts.path.startswith("/")))


def _email(text: str) -> bool:
    address = parseaddr(text)[1]
    local, at, domain = address.rpartition("@")
    return bool(at and local and domain) and not re.search(r"\s", address)


def _byte(text: str) -> bool:
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        return False
    return True


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"\d{9}[\dX]", digits, re.ASCII):
        return False
    return sum((10 - at) * (10 if digit == "X" else int(digit)) for at, digit in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"\d{13}", digits, re.ASCII):
        return False
    return sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(digits)) % 10 == 0


_is_card_number = _matching(
    r"4\d{12}(\d{3})?|5[1-5]\d{14}|6(011|5\d\d)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(2131|1800|35\d{3})\d{11}"
)


def _credit_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    if not _is_card_number(digits):
        return False
    doubled = [int(digit) * (2 if at % 2 else 1) for at, digit in enumerate(reversed(digits))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0


_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matching(r"[0-9a-fA-F]{24}"),
    "uri": _uri,
    "email": _email,
    "hostname": _matching(
        r"(?=.{1,253}\.?$)[A-Za-z0-9_\u00a0-\U0010ffff]([A-Za-z0-9_\u00a0-\U0010ffff-]{0,61}[A-Za-z0-9_\u00a0-\U0010ffff])?"
        r"(\.[A-Za-z0-9_\u00a0-\U0010ffff]([A-Za-z0-9_\u00a0-\U0010ffff-]{0,61}[A-Za-z0-9_\u00a0-\U0010ffff])?)*\.?"
    ),
    "ipv4": _address(4),
    "ipv6": _address(6),
    "cidr": _cidr,
    "mac": _matching(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5,19}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2,9}"),
    "uuid": _uuid("[0-9a-f]", "[0-9a-f]"),
    "uuid3": _uuid("3", "[0-9a-f]"),
    "uuid4": _uuid("4", "[89ab]"),
    "uuid5": _uuid("5", "[89ab]"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _credit_card,
    "ssn": _matching(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matching(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matching(
        r"rgb\(\s*(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])(\s*,\s*(\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])){2}\s*\)"
    ),
    "byte": _byte,
    "password": lambda text: True,
    "date": _date,
    "duration": _duration,
    "datetime": _date_time,
    "k8sshortname": lambda text: not formats.dns_label(text),
    "k8slongname": lambda text: not formats.dns_subdomain(text),
}


def known(name: str) -> bool:
    return name.replace("-", "") in _FORMATS


def fits(name: str, text: str) -> bool:
    """Whether a string has a format."""
    check = _FORMATS.get(name.replace("-", ""))
    return check is None or check(text)
