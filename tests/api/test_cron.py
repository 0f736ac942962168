"""Schedules mean what cron means by them, and what is none is refused in the words of Kubernetes."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from muster.api.cron import CronError, parse


def following(text: str, start: str, zone: str = "UTC", count: int = 1) -> list[str]:
    """The next moments of a schedule, in local time."""
    place = ZoneInfo(zone)
    moment: float | None = datetime.fromisoformat(start).replace(tzinfo=place).timestamp()
    found: list[str] = []
    for _ in range(count):
        assert moment is not None
        moment = parse(text).next_after(moment, place)
        assert moment is not None
        found.append(datetime.fromtimestamp(moment, UTC).astimezone(place).strftime("%Y-%m-%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("* * * * *", "2026-03-01T10:00:30", "2026-03-01 10:01"),
        ("* * * * *", "2026-03-01T10:00:00", "2026-03-01 10:01"),
        ("*/15 * * * *", "2026-03-01T10:46:00", "2026-03-01 11:00"),
        ("5/20 * * * *", "2026-03-01T10:26:00", "2026-03-01 10:45"),
        ("0 0 29 2 *", "2026-03-01T00:00:00", "2028-02-29 00:00"),
        ("30 6-16/4 * * 1-5", "2026-02-27T14:31:00", "2026-03-02 06:30"),
        ("0 0 * jan,JUL sun", "2026-03-01T00:00:00", "2026-07-05 00:00"),
        ("0 12 13 * fri", "2026-03-01T00:00:00", "2026-03-06 12:00"),  # a day of the month or of the week
        ("0 12 13 * *", "2026-03-01T00:00:00", "2026-03-13 12:00"),
        ("@monthly", "2026-12-15T00:00:00", "2027-01-01 00:00"),
        ("@weekly", "2026-03-02T00:00:00", "2026-03-08 00:00"),
        ("@every 90m", "2026-03-01T10:00:00", "2026-03-01 11:30"),
    ],
)
def test_the_next_moment(text: str, start: str, expected: str):
    assert following(text, start) == [expected]


def test_moments_follow_the_clock_of_the_time_zone():
    assert following("0 9 * * *", "2026-03-28T00:00:00", "Europe/Berlin", 2) == ["2026-03-28 09:00", "2026-03-29 09:00"]
    first, second = (
        parse("0 9 * * *").next_after(datetime(2026, 3, day, tzinfo=ZoneInfo("Europe/Berlin")).timestamp(), zone)
        for day, zone in ((28, ZoneInfo("Europe/Berlin")), (29, ZoneInfo("Europe/Berlin")))
    )
    assert first is not None
    assert second is not None
    assert second - first == 23 * 3600


def test_an_hour_that_the_clock_skips_has_no_moment():
    assert following("30 2 * * *", "2026-03-28T03:00:00", "Europe/Berlin") == ["2026-03-30 02:30"]


def test_a_day_that_does_not_exist_has_no_moment():
    assert parse("0 0 31 2 *").next_after(0.0) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("61 * * * *", "end of range (61) above maximum (59): 61"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("@foo", "unrecognized descriptor: @foo"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("-1 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
    ],
)
def test_what_is_no_schedule_is_refused(text: str, message: str):
    with pytest.raises(CronError) as refused:
        parse(text)
    assert str(refused.value) == message
