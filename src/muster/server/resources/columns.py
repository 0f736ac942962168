"""The columns of server-printed tables, and the small readers that their cells share."""

from __future__ import annotations

from calendar import timegm
from time import strptime
from typing import Any

from muster.server.resources.kind import Column, Obj, RelatedCounts

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"


def at(obj: Obj, *path: str) -> Any:
    """A value deep in an object; None where the way ends early."""
    value: Any = obj
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def text(*path: str, absent: str = "") -> Any:
    """A cell that shows a field as text."""

    def cell(obj: Obj, around: RelatedCounts) -> str:
        value = at(obj, *path)
        return absent if value is None or value == "" else str(value)

    return cell


def number(*path: str) -> Any:
    def cell(obj: Obj, around: RelatedCounts) -> int:
        value = at(obj, *path)
        return value if isinstance(value, int) else 0

    return cell


def size(*path: str) -> Any:
    """A cell that counts the entries of a list or map."""

    def cell(obj: Obj, around: RelatedCounts) -> int:
        return len(at(obj, *path) or ())

    return cell


def age(*path: str) -> Any:
    """A cell that shows how long ago a moment was."""

    def cell(obj: Obj, around: RelatedCounts) -> str:
        moment = epoch(at(obj, *path))
        return UNKNOWN if moment is None else duration(around.now - moment)

    return cell


def epoch(stamp: Any) -> float | None:
    """Seconds since the epoch of an RFC 3339 timestamp in UTC."""
    if not isinstance(stamp, str):
        return None
    try:
        return float(timegm(strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None


def duration(seconds: float) -> str:
    """A span as kubectl writes it: two units while the smaller one still tells something."""
    if seconds < -1:
        return "<invalid>"
    left = max(int(seconds), 0)
    if left < 120:
        return f"{left}s"
    minutes, hours, days = left // 60, left // 3600, left // 86400
    if minutes < 10:
        return _pair(minutes, "m", left % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(major: int, unit: str, minor: int, small: str) -> str:
    return f"{major}{unit}{minor}{small}" if minor else f"{major}{unit}"


def selector_text(selector: Any) -> str:
    """A label selector in one line."""
    if not isinstance(selector, dict):
        return NONE
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        parts = [f"{key}={value}" for key, value in sorted(selector.items())]
        return ",".join(parts) or NONE
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression.get("key", ""), expression.get("operator", "")
        values = ",".join(expression.get("values") or ())
        words = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        parts.append(words.get(operator, f"!{key}"))
    return ",".join(parts) or NONE


def containers(*path: str) -> tuple[Column, Column]:
    """The wide columns CONTAINERS and IMAGES of anything with a pod template."""

    def listed(field: str) -> Any:
        def cell(obj: Obj, around: RelatedCounts) -> str:
            return ",".join(str(entry.get(field, "")) for entry in at(obj, *path) or ())

        return cell

    return Column("Containers", listed("name"), wide=True), Column("Images", listed("image"), wide=True)


def selector_column(*path: str) -> Column:
    def cell(obj: Obj, around: RelatedCounts) -> str:
        return selector_text(at(obj, *path))

    return Column("Selector", cell, wide=True)


NAME = Column("Name", text("metadata", "name"), format="name", description="Name must be unique within a namespace.")
AGE = Column("Age", age("metadata", "creationTimestamp"), description="How long ago the object was created.")
