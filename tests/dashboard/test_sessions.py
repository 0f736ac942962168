"""Sessions begin with a token and end by themselves."""

from __future__ import annotations

import pytest

from muster.dashboard.sessions import SESSION_SECONDS, NotSignedIn, OneTimeToken, Sessions


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_token_opens_one_session_only():
    gate = OneTimeToken()
    sessions = Sessions(gate, Clock())
    token = gate.token
    assert await sessions.sign_in("another") is None
    session = await sessions.sign_in(token)
    assert session is not None
    assert await sessions.find(session.name) is session
    assert await sessions.sign_in(token) is None
    assert await sessions.sign_in("") is None


async def test_a_session_lasts_eight_hours():
    gate, clock = OneTimeToken(), Clock()
    sessions = Sessions(gate, clock)
    session = await sessions.sign_in(gate.token)
    assert session is not None
    clock.now = SESSION_SECONDS - 1
    assert await sessions.find(session.name) is session
    clock.now = SESSION_SECONDS
    with pytest.raises(NotSignedIn):
        await sessions.find(session.name)


async def test_whoever_signs_out_is_out():
    gate = OneTimeToken()
    sessions = Sessions(gate, Clock())
    session = await sessions.sign_in(gate.token)
    assert session is not None
    sessions.sign_out(session.name)
    with pytest.raises(NotSignedIn):
        await sessions.find(session.name)
