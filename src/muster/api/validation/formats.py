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
_RFC_1035_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_QUALIFIED})?"

_label = re.compile(_LABEL)
_subdomain = re.compile(_SUBDOMAIN)
_rfc_1035_label = re.compile(_RFC_1035_LABEL)
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
_RFC_1035_LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_QUALIFIED_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character"
)


def too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def taught(rule: str, pattern: str, *examples: str) -> str:
    """A rule with examples of texts that keep it, in Kubernetes' own punctuation."""
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{rule} (e.g. {shown}, regex used for validation is '{pattern}')"


def _over(text: str, limit: int) -> list[str]:
    return [too_long(limit)] if len(text) > limit or len(text.encode(errors="replace")) > limit else []


def dns_label(text: str) -> list[str]:
    """A DNS label: the k8s-short-name format."""
    found = _over(text, LABEL_LIMIT)
    if not _label.fullmatch(text):
        dotted = _subdomain.fullmatch(text) is not None
        found.append("must not contain dots" if dotted else taught(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return found


def rfc_1035_label(text: str) -> list[str]:
    """A DNS label that starts with a letter: what a kind, its plural and its versions may be called."""
    found = _over(text, LABEL_LIMIT)
    if not _rfc_1035_label.fullmatch(text):
        found.append(taught(_RFC_1035_LABEL_RULE, _RFC_1035_LABEL, "my-name", "abc-123"))
    return found


def dns_subdomain(text: str) -> list[str]:
    """A DNS subdomain: the k8s-long-name format, and the name of most objects."""
    found = _over(text, SUBDOMAIN_LIMIT)
    if not _subdomain.fullmatch(text):
        found.append(taught(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
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
        key = taught(f"a valid label key {_QUALIFIED_RULE}", _QUALIFIED, "MyName", "my.name", "123-abc")
        return [f"{key} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    if not name:
        found.append("name part must be non-empty")
    else:
        found += [f"name part {complaint}" for complaint in _over(name, LABEL_LIMIT)]
    if not _qualified.fullmatch(name):
        found.append(taught(f"name part {_QUALIFIED_RULE}", _QUALIFIED, "MyName", "my.name", "123-abc"))
    return found


def label_value(text: str) -> list[str]:
    """A label's value: empty, or up to 63 characters."""
    found = _over(text, LABEL_LIMIT)
    if not _value.fullmatch(text):
        found.append(taught(_VALUE_RULE, _VALUE, "MyValue", "my_value", "12345"))
    return found


def path_segment(text: str) -> list[str]:
    """A name that can stand in a URL path: anything but `.`, `..`, `/` and `%`."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{mark}'" for mark in ("/", "%") if mark in text]
