"""The error of a question that cannot be answered, for a reason that whoever asked can do something about."""

from __future__ import annotations


class ViewFailure(Exception):
    """The message says why. `undecided`: a limit was reached before there was an answer."""

    def __init__(self, message: str, *, undecided: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.undecided = undecided
