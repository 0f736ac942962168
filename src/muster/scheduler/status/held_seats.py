"""The words about members that do not exist yet and the seats that are held for them."""

from __future__ import annotations

from collections.abc import Collection

from muster.scheduler.groups.group import Group
from muster.scheduler.status.kept_room import start_text
from muster.scheduler.status.messages import count_text, short_key

FOR_EXPECTED = "WaitingForExpectedMembers"
MISSING = "ExpectedMembersMissing"
NEVER_FIT = "LaterMembersNeverFit"
INVALID_EXPECTATION = "InvalidExpectedMembers"


def held_text(group: Group, seats: int, nodes: Collection[str], deadline: float) -> str:
    """`1 of 4 members are bound; seats for 3 expected members are held on 2 nodes until 2026-…`."""
    on = f"on {next(iter(nodes))}" if len(nodes) == 1 else f"on {count_text(len(nodes), 'node')}"
    held = f"{_seats_text(seats)} held {on} until {start_text(deadline)}"
    return f"{group.bound} of {group.minimum} members are bound; {held}" if group.is_leaf else held


def _seats_text(seats: int) -> str:
    return "the seat of 1 expected member is" if seats == 1 else f"seats for {seats} expected members are"


def ended_text(group: Group, limit: float) -> str:
    """The members did not come in time."""
    return (
        f"{count_text(group.counts.expecting, 'expected member')} did not come within {limit:g} s of the last one: "
        "seats are no longer held for them"
    )


def never_text(count: int, seats: int, topology: str | None) -> str:
    """Members that come when others are completed have no room in the empty cluster."""
    where = f"the best {short_key(topology)} of the empty cluster" if topology else "the empty cluster"
    who = f"{count_text(count, 'member')} to come when others are completed"
    return f"{who} will not fit: {where} has {seats} seats for them"


def claims_text() -> str:
    """What is not held with a seat."""
    return "devices and volumes that are claimed for each pod are not held"


def expected_text(group: Group) -> str:
    """How many of the members that were planned for do not exist yet; empty if all do."""
    expecting = group.counts.expecting
    if not expecting:
        return ""
    does, is_ = ("does", "is") if expecting == 1 else ("do", "are")
    return f"{count_text(expecting, 'member')} {does} not exist yet and {is_} planned for"
