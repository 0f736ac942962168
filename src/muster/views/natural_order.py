"""An order of names for people: rack-2 before rack-10."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(\d+)")


def natural(name: str) -> list[tuple[int, int, str]]:
    """The sort key of a name."""
    parts = (part for part in _NUMBER.split(name) if part)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
