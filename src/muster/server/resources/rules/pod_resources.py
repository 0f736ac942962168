"""Requests and limits: well-formed names and quantities, nothing negative, no request above its limit."""

from __future__ import annotations

from typing import Any

from muster.api import quantity
from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.server.resources.kind import Obj
from muster.server.resources.rules.fields import invalid, required

_STANDARD = frozenset(("cpu", "memory", "ephemeral-storage", "storage", "pods"))
_PARSE_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def validate_resources(resources: Any, path: str) -> list[FieldError]:
    """All that is wrong with one `resources` block."""
    if not resources:
        return []
    limits: Obj = resources.get("limits") or {}
    requests: Obj = resources.get("requests") or {}
    found = validate_quantities(limits, f"{path}.limits", standard_or_qualified=True)
    found += validate_quantities(requests, f"{path}.requests", standard_or_qualified=True)
    if found:
        return found
    for name, asked in requests.items():
        limit = limits.get(name)
        extended = _extended(name)
        if limit is None:
            if extended:
                found.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
            continue
        wanted, most = quantity.parse(asked).nanos, quantity.parse(limit).nanos
        if extended and wanted != most:
            found.append(
                invalid(f"{path}.requests", quantity.canonical(asked), f"must be equal to {name} limit of {limit}")
            )
        elif wanted > most:
            found.append(
                invalid(
                    f"{path}.requests",
                    quantity.canonical(asked),
                    f"must be less than or equal to {name} limit of {quantity.canonical(limit)}",
                )
            )
    return found


def validate_quantities(amounts: Any, path: str, *, standard_or_qualified: bool = False) -> list[FieldError]:
    """A map of resource names to amounts, none negative; extended resources are whole numbers."""
    found: list[FieldError] = []
    for name, text in (amounts or {}).items():
        here = f"{path}[{name}]"
        found += [invalid(here, name, complaint) for complaint in formats.qualified_name(name)]
        if standard_or_qualified and "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
            found.append(invalid(here, name, "must be a standard resource type or fully qualified"))
        found += validate_quantity(text, here)
        if not found and _extended(name) and quantity.parse(text).nanos % quantity.NANOS:
            found.append(invalid(here, text, "must be an integer"))
    return found


def validate_quantity(text: Any, path: str) -> list[FieldError]:
    """One amount: it can be read, and it is not negative."""
    try:
        amount = quantity.parse(text).nanos
    except ValueError:
        return [invalid(path, text, _PARSE_TEXT)]
    if amount < 0:
        return [invalid(path, quantity.canonical(text), "must be greater than or equal to 0")]
    return []


def _extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name
