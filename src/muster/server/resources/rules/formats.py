"""Formats that only built-in kinds need, beside those of `muster.api.validation.formats` and in the same form."""

from __future__ import annotations

import re

from muster.api.validation.formats import LABEL_LIMIT, SUBDOMAIN_LIMIT, too_long

_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_dns1035 = re.compile(_DNS1035)
_config_key = re.compile(_CONFIG_KEY)

_DNS1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_DNS1035}')"
)
_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    f"or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
)


def dns_1035_label(text: str) -> list[str]:
    """A label that starts with a letter: the name of a Service."""
    found = [too_long(LABEL_LIMIT)] if len(text) > LABEL_LIMIT else []
    if not _dns1035.fullmatch(text):
        found.append(_DNS1035_TEXT)
    return found


def config_key(text: str) -> list[str]:
    """A key of a ConfigMap or a Secret."""
    found = [too_long(SUBDOMAIN_LIMIT)] if len(text) > SUBDOMAIN_LIMIT else []
    if not _config_key.fullmatch(text):
        found.append(_CONFIG_KEY_TEXT)
    if text in (".", ".."):
        found.append(f"must not be '{text}'")
    return found


def port_name(text: str) -> list[str]:
    """The name of a container's port."""
    found: list[str] = []
    if len(text) > 15:
        found.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", text):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found
