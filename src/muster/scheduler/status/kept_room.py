"""The words about room that is kept for a group: in conditions and events, in `muster explain` and `muster queue`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from muster.scheduler.status.messages import MAX_CONDITION_MESSAGE, count_text, domain_text

KEPT = "room is kept for it"
UNKNOWN = "unknown"


def start_text(start: float | None) -> str:
    """The expected start as a timestamp of the API, or `unknown`."""
    return UNKNOWN if start is None else datetime.fromtimestamp(start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def where_text(domains: Sequence[tuple[str, str]], nodes: Sequence[str]) -> str:
    """`in rack r3 on 4 nodes`; a single node is named."""
    on = f"on {nodes[0]}" if len(nodes) == 1 else f"on {count_text(len(nodes), 'node')}"
    inside = ", ".join(dict.fromkeys(domain_text(key, value) for key, value in domains))
    return f"in {inside} {on}" if inside else on


def kept_text(domains: Sequence[tuple[str, str]], nodes: Sequence[str], start: float | None) -> str:
    """What is kept, where, and until when it takes."""
    return f"{KEPT} {where_text(domains, nodes)}, expected start {start_text(start)}"


def with_kept_room(message: str, kept: str) -> str:
    """The message of a group's condition with the words about its room, which are never cut."""
    if not kept:
        return message
    return f"{message[: MAX_CONDITION_MESSAGE - len(kept) - 2]}; {kept}"
