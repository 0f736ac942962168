"""Regular expressions beyond `matches`: what they find in a text.

The search itself is the evaluator's own (RE2: linear time, whatever the pattern). Its function returns what a group
captured, while Kubernetes' `find` returns the whole match; so groups stop capturing before it is asked.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from muster.cel import evaluator
from muster.cel.functions.function import Function
from muster.cel.types import INT, STRING, ListOf

_LONGEST_PATTERN = 10_000


@lru_cache(maxsize=1)
def _searches() -> tuple[Any, Any]:
    environment = evaluator.regex_environment()
    first = environment.compile("regex.extract(text, pattern).orValue('')")
    return first, environment.compile("regex.extractAll(text, pattern)")


def find(text: str, pattern: str) -> str:
    return _search(_searches()[0], text, pattern)


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    found = _search(_searches()[1], text, pattern)
    return found if limit < 0 else found[:limit]


def _search(search: Any, text: str, pattern: str) -> Any:
    if len(pattern) > _LONGEST_PATTERN:
        raise ValueError("the regular expression is too long")
    found = search.eval(data={"text": text, "pattern": without_groups(pattern)})
    if found.type() == evaluator.module().Type.ERROR:
        raise ValueError(str(found.value()))
    return found.plain_value()


def without_groups(pattern: str) -> str:
    """The same pattern with groups that capture nothing."""
    written: list[str] = []
    at, inside = 0, False
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\":
            end = _escape_end(pattern, at)
            written.append(pattern[at:end])
            at = end
            continue
        if inside:
            inside = letter != "]"
        elif letter == "[":
            # A bracket right after the opening one (or after ^) is a member of the class.
            skip = 2 if pattern[at + 1 : at + 2] == "^" else 1
            skip += pattern[at + skip : at + skip + 1] == "]"
            written.append(pattern[at : at + skip])
            at, inside = at + skip, True
            continue
        elif letter == "(":
            at += _group_head(pattern, at)
            written.append("(?:" if pattern[at : at + 1] != "?" else "(")
            continue
        written.append(letter)
        at += 1
    return "".join(written)


def _escape_end(pattern: str, at: int) -> int:
    """Where an escape ends: \\Q takes everything up to \\E with it."""
    if pattern[at + 1 : at + 2] != "Q":
        return at + 2
    end = pattern.find("\\E", at + 2)
    return len(pattern) if end < 0 else end + 2


def _group_head(pattern: str, at: int) -> int:
    """How much of the opening of a group goes away: the parenthesis, and the name of a named group."""
    for head in ("(?P<", "(?<"):
        if pattern.startswith(head, at):
            end = pattern.find(">", at)
            return 1 if end < 0 else end + 1 - at
    return 1


FUNCTIONS = (
    Function("find", (STRING, STRING), STRING, find, walk=0.1, walk_second=0.25),
    Function("findAll", (STRING, STRING), ListOf(STRING), find_all, walk=0.1, walk_second=0.25),
    Function("findAll", (STRING, STRING, INT), ListOf(STRING), find_all, walk=0.1, walk_second=0.25),
)
