"""Maps of labels and annotations outside an object's own metadata: in templates and node selectors."""

from __future__ import annotations

from typing import Any

from muster.api.errors import FieldError
from muster.api.validation import formats
from muster.api.validation.meta import validate_expected_duration
from muster.server.resources.rules.fields import invalid


def validate_labels(path: str, given: Any) -> list[FieldError]:
    """Qualified names to label values."""
    found: list[FieldError] = []
    for key, value in (given or {}).items():
        found += [invalid(path, key, text) for text in formats.qualified_name(key)]
        found += [invalid(path, value, text) for text in formats.label_value(value)]
    return found


def validate_annotations(path: str, given: Any) -> list[FieldError]:
    """Qualified names to any text; the one that scheduling reads is a duration."""
    found = [invalid(path, key, text) for key in given or {} for text in formats.qualified_name(key.lower())]
    return found + validate_expected_duration(given, path)
