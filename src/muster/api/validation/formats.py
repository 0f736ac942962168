"""The text formats of Kubernetes names and labels.

Each function gives the complaints about one text, in the words Kubernetes uses; an empty list means
that the text is fine.
"""

from __future__ import annotations

import re

LABEL_LIMIT = 63
SUBDOMAIN_LIMIT = 253

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_QUALIFIED})?"

_label = re.compile(_LABEL)
_subdomain = re.compile(_SUBDOMAIN)
_qualified = re.compile(_QUALIFIED)
_value = re.compile(_VALUE)

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character"
)
_QUALIFIED_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character"
)


def too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _taught(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}'" for example in examples)
    return f"{rule} (e.g. {shown}, regex used for validation is '{pattern}')"


def dns_label(text: str) -> list[str]:
    """A DNS label: the k8s-short-name format."""
    found = [too_long(LABEL_LIMIT)] if len(text) > LABEL_LIMIT else []
    if not _label.fullmatch(text):
        found.append(_taught(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return found


def dns_subdomain(text: str) -> list[str]:
    """A DNS subdomain: the k8s-long-name format, and the name of most objects."""
    found = [too_long(SUBDOMAIN_LIMIT)] if len(text) > SUBDOMAIN_LIMIT else []
    if not _subdomain.fullmatch(text):
        found.append(_taught(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return found


def qualified_name(text: str) -> list[str]:
    """A label or annotation key: `name` or `prefix/name`, the prefix a DNS subdomain."""
    parts = text.split("/")
    found: list[str] = []
    if len(parts) == 1:
        name = parts[0]
    elif len(parts) == 2:
        prefix, name = parts
        if not prefix:
            found.append("prefix part must be non-empty")
        else:
            found += [f"prefix part {complaint}" for complaint in dns_subdomain(prefix)]
    else:
        rule = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with"
        rule += " an alphanumeric character"
        return [
            _taught(rule, _QUALIFIED, "MyName", "my.name", "123-abc")
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > LABEL_LIMIT:
        found.append(f"name part {too_long(LABEL_LIMIT)}")
    if not _qualified.fullmatch(name):
        found.append(_taught(_QUALIFIED_RULE, _QUALIFIED, "MyName", "my.name", "123-abc"))
    return found


def label_value(text: str) -> list[str]:
    """A label's value: empty, or up to 63 characters."""
    found = [too_long(LABEL_LIMIT)] if len(text) > LABEL_LIMIT else []
    if not _value.fullmatch(text):
        found.append(_taught(_VALUE_RULE, _VALUE, "MyValue", "my_value", "12345"))
    return found


def path_segment(text: str) -> list[str]:
    """A name that can stand in a URL path: anything but `.`, `..`, `/` and `%`."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{mark}'" for mark in ("/", "%") if mark in text]
