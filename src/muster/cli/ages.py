"""How long ago, as kubectl prints it."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The current time; tests replace it."""
    return datetime.now(UTC)


def age(time: str) -> str:
    """`90s`, `5m`, `3h`, `2d`; `<unknown>` for what is no time."""
    try:
        since = datetime.fromisoformat(time.replace("Z", "+00:00"))
    except ValueError:
        return "<unknown>"
    return _length(int((now() - since).total_seconds()))


def until(time: str) -> str:
    """`in 5m`; `now` for what is past."""
    left = int((datetime.fromisoformat(time.replace("Z", "+00:00")) - now()).total_seconds())
    return f"in {_length(left)}" if left > 0 else "now"


def _length(seconds: int) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(0, seconds)}s"
