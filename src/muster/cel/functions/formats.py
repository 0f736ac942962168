"""Named formats of texts: names, label values, URIs, dates. A format says what is wrong with a text, or nothing."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime

from muster.api.validation.formats import (
    LABEL_LIMIT,
    dns_label,
    dns_subdomain,
    label_value,
    qualified_name,
    taught,
    too_long,
)
from muster.cel.functions import url
from muster.cel.functions.function import Codec, Function
from muster.cel.types import STRING, ListOf, Opaque, OptionalOf

FORMAT = Opaque("kubernetes.NamedFormat")

_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


def _dns1035_label(text: str) -> list[str]:
    found = [too_long(LABEL_LIMIT)] if len(text) > LABEL_LIMIT else []
    if not re.fullmatch(_DNS1035, text):
        found.append(taught(_DNS1035_RULE, _DNS1035, "my-name", "abc-123"))
    return found


def _prefix_of(rule: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """A prefix may end with a dash, because something follows it."""
    return lambda text: rule(f"{text[:-1]}a" if text.endswith("-") else text)


def _uri(text: str) -> list[str]:
    return [] if url.is_url(text) else ["invalid URI"]


def _uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


def _date(text: str) -> list[str]:
    try:
        date.fromisoformat(text)
    except ValueError:
        return ["invalid date"]
    return [] if len(text) == 10 else ["invalid date"]


def _datetime(text: str) -> list[str]:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return ["invalid datetime"]
    return [] if parsed.tzinfo is not None and "T" in text.upper() else ["invalid datetime"]


NAMED: Mapping[str, Callable[[str], list[str]]] = {
    "dns1123Label": dns_label,
    "dns1123Subdomain": dns_subdomain,
    "dns1035Label": _dns1035_label,
    "qualifiedName": qualified_name,
    "dns1123LabelPrefix": _prefix_of(dns_label),
    "dns1123SubdomainPrefix": _prefix_of(dns_subdomain),
    "dns1035LabelPrefix": _prefix_of(_dns1035_label),
    "labelValue": label_value,
    "uri": _uri,
    "uuid": _uuid,
    "byte": _byte,
    "date": _date,
    "datetime": _datetime,
}

CODEC = Codec(FORMAT, b"f", str, str)


def _named(name: str) -> str | None:
    return name if name in NAMED else None


def _constant(name: str) -> Callable[[], str]:
    return lambda: name


def _validate(name: str, text: str) -> list[str] | None:
    return NAMED[name](text) or None


FUNCTIONS = (
    *(Function(f"format.{name}", (), FORMAT, _constant(name), member=False) for name in NAMED),
    Function("format.named", (STRING,), OptionalOf(FORMAT), _named, member=False),
    Function("validate", (FORMAT, STRING), OptionalOf(ListOf(STRING)), _validate, walk_second=0.25),
)
