"""The inbox: oldest first, bounded, and awake while something is left."""

from __future__ import annotations

import pytest

from muster.engine.inbox import Inbox
from muster.scheduler.interface.events import BindSucceeded, Event


def events(count: int) -> list[Event]:
    return [BindSucceeded(f"u{number}", "n1") for number in range(count)]


def an_inbox(count: int) -> Inbox:
    inbox = Inbox()
    for event in events(count):
        inbox.report(event)
    return inbox


def test_events_are_taken_in_the_order_they_were_reported():
    inbox = an_inbox(3)
    assert inbox.wakeup.is_set()

    assert inbox.take(10) == events(3)
    assert not inbox.wakeup.is_set()
    assert len(inbox) == 0


def test_what_is_left_keeps_the_loop_awake():
    inbox = an_inbox(3)

    assert inbox.take(2) == events(3)[:2]
    assert inbox.wakeup.is_set()
    assert inbox.take(2) == events(3)[2:]
    assert not inbox.wakeup.is_set()


def test_a_call_that_crashed_is_raised_with_its_cause():
    inbox, cause = Inbox(), KeyError("x")
    inbox.crashed(cause)

    assert inbox.wakeup.is_set()
    with pytest.raises(RuntimeError) as raised:
        inbox.take(1)
    assert raised.value.__cause__ is cause
