"""Formats that only built-in kinds need, beside those of `muster.api.validation.formats` and in the same form."""

from __future__ import annotations

import re

from muster.api.validation.formats import SUBDOMAIN_LIMIT, too_long

_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_config_key = re.compile(_CONFIG_KEY)

_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    f"or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
)


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
