"""Options of a command as one typed value.

click hands every option to a command as a keyword. `grouped` takes the options that a frozen dataclass has fields for,
and hands them over as one object of that class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any

Command = Callable[..., Any]


def grouped(name: str, group: type[Any], *options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Adds the options, in this order, to a command that takes an object of the dataclass `group` as `name`."""
    names = tuple(field.name for field in fields(group))

    def decorate(command: Command) -> Command:
        @wraps(command)
        def wrapped(**given: Any) -> Any:
            value = group(**{each: given.pop(each) for each in names})
            return command(**{name: value, **given})

        decorated: Command = wrapped
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate
