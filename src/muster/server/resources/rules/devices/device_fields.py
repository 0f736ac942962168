"""Rules that several kinds of `resource.k8s.io` share: names, selectors, configurations, taints, tolerations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from muster.api import errors
from muster.api.errors import OMITTED, FieldError
from muster.api.validation import formats
from muster.cel.device_selectors import compile_selector, too_long
from muster.cel.errors import CelMissingError, CompileError
from muster.cel.program import LONGEST, PER_CALL_LIMIT
from muster.server.resources.kind import Obj
from muster.server.resources.rules import fields
from muster.server.resources.rules.fields import duplicate, forbidden, invalid, one_of, required, too_many

MOST_SELECTORS = 32
MOST_CONFIGURATIONS = 32
EFFECTS = ("NoExecute", "NoSchedule", "None")

_C_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_C_IDENTIFIER_RULE = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_'"
)
_MIXED_CASE_RULE = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character"
)
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LONGEST_DOMAIN, _LONGEST_IDENTIFIER = 63, 32
_identifier = re.compile(_C_IDENTIFIER)


# --- names -----------------------------------------------------------------------------------------


def complaints(path: str, value: str, found: Iterable[str]) -> list[FieldError]:
    return [invalid(path, value, complaint) for complaint in found]


def name(path: str, value: str) -> list[FieldError]:
    """A DNS label, which must be there."""
    return complaints(path, value, formats.dns_label(value))


def driver(path: str, value: str) -> list[FieldError]:
    """A DNS subdomain of at most 63 characters."""
    if not value:
        return [required(path)]
    found = [fields.too_long(path, _LONGEST_DOMAIN)] if len(value) > _LONGEST_DOMAIN else []
    return found + complaints(path, value, formats.dns_subdomain(value))


def mixed_case_driver(path: str, value: str) -> list[FieldError]:
    """Like `driver`, with upper case, as configurations may write it."""
    if not value:
        return [required(path)]
    found = [fields.too_long(path, _LONGEST_DOMAIN)] if len(value) > _LONGEST_DOMAIN else []
    if formats.dns_subdomain(value.lower()):
        taught = formats.taught(_MIXED_CASE_RULE, _SUBDOMAIN, "Example.com")
        found.append(invalid(path, value, taught))
    return found


def pool_name(path: str, value: str) -> list[FieldError]:
    """DNS subdomains with slashes between them."""
    if not value:
        return [required(path)]
    if len(value) > formats.SUBDOMAIN_LIMIT:
        return [fields.too_long(path, formats.SUBDOMAIN_LIMIT)]
    return [error for part in value.split("/") for error in complaints(path, part, formats.dns_subdomain(part))]


def qualified_name(path: str, value: str) -> list[FieldError]:
    """An identifier of a driver, perhaps with its domain."""
    parts = value.split("/")
    if not value:
        return [required(path, "name required")]
    if len(parts) == 1:
        return _c_identifier(path, value)
    if len(parts) > 2:
        return [invalid(path, value, "must have at most one slash")]
    domain, identifier = parts
    found = _domain(path, domain) if domain else [required(path, "the domain must not be empty")]
    return found + (_c_identifier(path, identifier) if identifier else [required(path, "the name must not be empty")])


def fully_qualified_name(path: str, value: str) -> list[FieldError]:
    if value and "/" not in value:
        return [invalid(path, value, "a fully qualified name must be a domain and a name separated by a slash")]
    return qualified_name(path, value)


def _domain(path: str, value: str) -> list[FieldError]:
    found = [fields.too_long(path, _LONGEST_DOMAIN)] if len(value) > _LONGEST_DOMAIN else []
    return found + complaints(path, value, formats.dns_subdomain(value))


def _c_identifier(path: str, value: str) -> list[FieldError]:
    if len(value) > _LONGEST_IDENTIFIER:
        return [fields.too_long(path, _LONGEST_IDENTIFIER)]
    if not _identifier.fullmatch(value):
        return [invalid(path, value, formats.taught(_C_IDENTIFIER_RULE, _C_IDENTIFIER, "my_name", "MY_NAME", "MyName"))]
    return []


# --- lists -----------------------------------------------------------------------------------------


def limited(path: str, items: Sequence[Any], limit: int) -> list[FieldError]:
    return [too_many(path, len(items), limit)] if len(items) > limit else []


def repeated(path: str, items: Sequence[Any], keys: Sequence[Any]) -> list[FieldError]:
    """The items whose key an earlier one has."""
    seen: list[Any] = []
    found: list[FieldError] = []
    for position, (item, key) in enumerate(zip(items, keys, strict=True)):
        if key in seen:
            found.append(duplicate(f"{path}[{position}]", item))
        seen.append(key)
    return found


# --- selectors -------------------------------------------------------------------------------------


def selectors(path: str, given: Sequence[Obj], *, stored: bool = False) -> list[FieldError]:
    """Expressions over a device; `stored` ones were accepted before."""
    found = limited(path, given, MOST_SELECTORS)
    for position, selector in enumerate(given if not found else ()):
        here = f"{path}[{position}].cel"
        cel: Obj | None = selector.get("cel")
        if cel is None:
            found.append(required(here))
        elif not stored:
            found += _expression(f"{here}.expression", cel.get("expression") or "")
    return found


def _expression(path: str, text: str) -> list[FieldError]:
    if too_long(text):
        return [fields.too_long(path, LONGEST)]
    try:
        compiled = compile_selector(text)
    except CelMissingError as error:
        return [invalid(path, text, str(error))]
    if isinstance(compiled, CompileError):
        return [invalid(path, text, _told(compiled.message))]
    if compiled.cost() > PER_CALL_LIMIT:
        return [forbidden(path, "too complex, exceeds cost limit")]
    return []


def _told(message: str) -> str:
    """A compile error in the words that kube-apiserver has for selectors."""
    if message.startswith(_NO_CONDITION):
        return f"must evaluate to bool or the unknown type, not {message.removeprefix(_NO_CONDITION)}"
    return f"compilation failed: {message}"


_NO_CONDITION = "must evaluate to bool but got "


# --- configurations --------------------------------------------------------------------------------

_MOST_PARAMETERS = 10 * 1024


def configuration(path: str, given: Obj) -> list[FieldError]:
    """What a driver is told; `opaque` is the only kind."""
    opaque: Obj | None = given.get("opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    return mixed_case_driver(f"{path}.opaque.driver", opaque.get("driver") or "") + raw_object(
        f"{path}.opaque.parameters", opaque.get("parameters"), needed=True
    )


def raw_object(path: str, value: Any, *, needed: bool) -> list[FieldError]:
    """A JSON object of a driver, of at most 10 KiB."""
    if value is None:
        return [required(path)] if needed else []
    if not isinstance(value, dict):
        return [FieldError(errors.INVALID, path, "<value omitted>", "must be a valid JSON object")]
    if len(msgspec.json.encode(value)) > _MOST_PARAMETERS:
        return [FieldError(errors.TOO_LONG, path, OMITTED, f"may not be more than {_MOST_PARAMETERS} bytes")]
    return []


def requests_named(path: str, named: Sequence[str], known: frozenset[str], limit: int) -> list[FieldError]:
    """Names of requests of a claim, or of a request and one of its alternatives."""
    found = limited(path, named, limit) + repeated(path, named, named)
    for position, request in enumerate(named):
        if request not in known:
            found.append(invalid(f"{path}[{position}]", request, UNKNOWN_REQUEST))
    return found


UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


# --- taints ----------------------------------------------------------------------------------------


def taint(path: str, given: Obj) -> list[FieldError]:
    found = complaints(f"{path}.key", given.get("key") or "", formats.qualified_name(given.get("key") or ""))
    if given.get("value"):
        found += complaints(f"{path}.value", given["value"], formats.label_value(given["value"]))
    if not given.get("effect"):
        return [*found, required(f"{path}.effect")]
    return found + one_of(f"{path}.effect", given["effect"], EFFECTS)


def toleration(path: str, given: Obj) -> list[FieldError]:
    found: list[FieldError] = []
    key: str = given.get("key") or ""
    if key:
        found += complaints(f"{path}.key", key, formats.qualified_name(key))
    operator: str = given.get("operator") or ""
    value: str = given.get("value") or ""
    if operator == "Exists" and value:
        found.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        found += complaints(f"{path}.value", value, formats.label_value(value))
    elif not operator:
        found.append(required(f"{path}.operator"))
    elif operator != "Exists":
        found += one_of(f"{path}.operator", operator, ("Equal", "Exists"))
    effect: str = given.get("effect") or ""
    return found + (one_of(f"{path}.effect", effect, EFFECTS) if effect else [])
