"""The exit codes of `muster`, and the error that carries one. docs/cli.md lists them for users."""

from __future__ import annotations

import click

OK = 0
NO = 1
"""The command did its work and the answer is no: a manifest is invalid, a workload does not fit."""
UNDECIDED = 2
"""The budget ran out before there was an answer."""
USAGE = 64
"""The command line makes no sense."""
BAD_INPUT = 65
"""An input file cannot be read or understood."""
UNAVAILABLE = 69
"""A server cannot be reached, or it refused."""
UNEXPECTED = 70
"""Something that should not happen did; the details are in a file."""
INTERRUPTED = 130


class Failure(click.ClickException):
    """A failure that a user can do something about: a message and an exit code, no traceback."""

    def __init__(self, message: str, code: int = NO) -> None:
        super().__init__(message)
        self.__dict__["exit_code"] = code  # click declares it for the class; ours differs by failure
