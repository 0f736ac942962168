"""Durations as Kubernetes writes them: `90s`, `1h30m`, `1.5h`."""

from __future__ import annotations

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})(ms|us|µs|ns|h|m|s)")
MALFORMED = "must be a duration above 0, for instance 90s, 15m or 1h30m"


def seconds(text: str) -> float:
    """The duration in seconds; ValueError for what is none, and for 0."""
    total, at = 0.0, 0
    while (part := _PART.match(text, at)) is not None:
        total += float(part[1]) * _UNITS[part[2]]
        at = part.end()
    if at != len(text) or total <= 0:
        raise ValueError(f"{text!r}: {MALFORMED}")
    return total


def is_duration(text: str) -> bool:
    try:
        seconds(text)
    except ValueError:
        return False
    return True
