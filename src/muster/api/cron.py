"""Cron schedules, as a CronJob's `spec.schedule` gives them: five fields, or a descriptor such as `@daily`.

Pure: the moment to start from and the time zone are arguments. The words of errors are those of Kubernetes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo

from muster.api import durations

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_YEARS = 5  # a schedule without a moment in so many years has none (31 February)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


class CronError(ValueError):
    """Why a text is no schedule."""


@dataclass(frozen=True, slots=True)
class _Field:
    """The numbers that one field allows; `any` where it is written as a star."""

    allowed: frozenset[int]
    any: bool


@dataclass(frozen=True, slots=True)
class Bounds:
    least: int
    most: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        if text.lower() in self.names:
            return self.names.index(text.lower()) + self.least
        return _integer(text)


_BOUNDS = (Bounds(0, 59), Bounds(0, 23), Bounds(1, 31), Bounds(1, 12, tuple(_MONTHS)), Bounds(0, 6, tuple(_DAYS)))


@dataclass(frozen=True, slots=True)
class Schedule:
    """Moments that fields allow, or (`every`) that are so many seconds apart."""

    minute: _Field
    hour: _Field
    day: _Field
    month: _Field
    weekday: _Field
    every: int = 0

    def next_after(self, moment: float, zone: tzinfo = UTC) -> float | None:
        """The first moment after this one, in seconds since the epoch; None where there is none in five years."""
        if self.every:
            return float(int(moment) + self.every)
        local = datetime.fromtimestamp(int(moment) // 60 * 60 + 60, UTC).astimezone(zone)
        latest = local.year + _YEARS
        while local.year <= latest:
            skipped = self._skip(local, zone)
            if skipped is None:
                return local.timestamp()
            local = skipped
        return None

    def _skip(self, local: datetime, zone: tzinfo) -> datetime | None:
        """The next moment that may be allowed; None when this one is."""
        if local.month not in self.month.allowed:
            return _local_midnight(local.year + local.month // 12, local.month % 12 + 1, 1, zone)
        if not self._on(local):
            following = local.date() + timedelta(days=1)
            return _local_midnight(following.year, following.month, following.day, zone)
        # Hours and minutes pass in universal time, so that an hour which the clock skips or repeats is met as it is.
        instant = local.astimezone(UTC)
        if local.hour not in self.hour.allowed:
            return (instant + timedelta(minutes=60 - local.minute)).astimezone(zone)
        if local.minute not in self.minute.allowed:
            return (instant + timedelta(minutes=1)).astimezone(zone)
        return None

    def _on(self, local: datetime) -> bool:
        """Whether the day is allowed: by both fields where one is a star, else by either."""
        day, weekday = local.day in self.day.allowed, local.isoweekday() % 7 in self.weekday.allowed
        return (day and weekday) if self.day.any or self.weekday.any else (day or weekday)


def _local_midnight(year: int, month: int, day: int, zone: tzinfo) -> datetime:
    # By way of universal time: a midnight that the clock skips becomes the moment after the gap.
    return datetime(year, month, day, tzinfo=zone).astimezone(UTC).astimezone(zone)


def parse(text: str) -> Schedule:
    """The schedule that a text stands for. Raises CronError."""
    if text.startswith("@every "):
        return replace(parse("* * * * *"), every=_interval(text))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise CronError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    fields = text.split()
    if len(fields) != len(_BOUNDS):
        raise CronError(f"expected exactly {len(_BOUNDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    minute, hour, day, month, weekday = map(_field, fields, _BOUNDS)
    return Schedule(minute, hour, day, month, weekday)


def _interval(text: str) -> int:
    written = text.removeprefix("@every ")
    try:
        seconds = durations.seconds(written)
    except ValueError:
        raise CronError(f'failed to parse duration {text}: time: invalid duration "{written}"') from None
    return max(1, int(seconds))


def _field(text: str, bounds: Bounds) -> _Field:
    allowed: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        numbers, is_star = _range(part, bounds)
        allowed |= numbers
        star = star or is_star
    return _Field(frozenset(allowed), star)


def _range(text: str, bounds: Bounds) -> tuple[set[int], bool]:
    """The numbers of `*`, `N`, `N-M`, each with or without `/step`, and whether it is a plain star."""
    span, *steps = text.split("/")
    ends = span.split("-")
    star = ends[0] in ("*", "?")
    if star:
        first, last = bounds.least, bounds.most
    else:
        first = last = bounds.number(ends[0])
        if len(ends) > 2:
            raise CronError(f"too many hyphens: {text}")
        if len(ends) == 2:
            last = bounds.number(ends[1])
    if len(steps) > 1:
        raise CronError(f"too many slashes: {text}")
    step = _integer(steps[0]) if steps else 1
    if steps and len(ends) == 1:
        last = bounds.most  # "N/step" goes on to the end
    _check(first, last, step, bounds, text)
    return set(range(first, last + 1, step)), star and step == 1


def _check(first: int, last: int, step: int, bounds: Bounds, text: str) -> None:
    if first < bounds.least:
        raise CronError(f"beginning of range ({first}) below minimum ({bounds.least}): {text}")
    if last > bounds.most:
        raise CronError(f"end of range ({last}) above maximum ({bounds.most}): {text}")
    if first > last:
        raise CronError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {text}")


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    found = int(text)
    if found < 0:
        raise CronError(f"negative number ({found}) not allowed: {text}")
    return found
