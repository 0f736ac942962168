"""YAML bodies as JSON values, as Kubernetes reads them.

YAML is a language in which few bytes can ask for much: aliases stand for gigabytes, deep nesting exhausts the stack of
the C parser, a number to the base 60 takes hours. So the events of a body are looked at first, which costs little
whatever they say, and only a document without such things, and not too large, is built.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import yaml

from muster.api.errors import bad_request
from muster.server.json_bodies import MAX_DEPTH

_MOST_NAMED = 100
MAX_NODES = 100_000  # a second of work; the largest manifests in use have a tenth of it

_TAG = "tag:yaml.org,2002:"
_KNOWN_TAGS = frozenset((None, "!", f"{_TAG}str", f"{_TAG}map", f"{_TAG}seq"))
_BEGINNINGS = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_ENDS = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_NUMBERS = {
    f"{_TAG}int": re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)$"),
    f"{_TAG}float": re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?$"
    ),
}
_UNUSED = (f"{_TAG}timestamp", f"{_TAG}value")


class _Loader(yaml.CSafeLoader):
    """Times are strings, and numbers are to the bases that JSON users know."""


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in known if tag not in _UNUSED]
    for letter, known in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def decode(body: bytes) -> tuple[Any, str]:
    """The JSON value of a YAML body, and Kubernetes' words about keys that it repeats, if it does.

    Raises ApiError 400 when there is no value, or when it is too much.
    """
    try:
        repeated = _look(body)
        value = yaml.load(body, Loader=_Loader)
        return msgspec.json.decode(msgspec.json.encode(value)), _words(repeated)
    except (yaml.YAMLError, msgspec.MsgspecError, TypeError, ValueError, ArithmeticError, RecursionError) as wrong:
        raise bad_request(f"the object provided is unrecognized: yaml: {wrong}") from None


def _words(repeated: list[tuple[int, str]]) -> str:
    if not repeated:
        return ""
    lines = [f'  line {line}: key "{key}" already set in map' for line, key in repeated[:_MOST_NAMED]]
    return "\n".join(["yaml: unmarshal errors:", *lines])


class _Keys:
    """The keys of one mapping or, with `seen` None, a sequence; keys and values of a mapping take turns."""

    __slots__ = ("is_key", "seen")

    def __init__(self, event: yaml.Event) -> None:
        self.seen: set[str] | None = set() if isinstance(event, yaml.MappingStartEvent) else None
        self.is_key = True


def _look(body: bytes) -> list[tuple[int, str]]:
    """The lines and names of repeated keys. Raises ValueError for what is not accepted."""
    repeated: list[tuple[int, str]] = []
    open_: list[_Keys] = []
    for count, event in enumerate(yaml.parse(body, Loader=_Loader)):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("aliases are not accepted")
        if getattr(event, "tag", None) not in _KNOWN_TAGS:
            raise ValueError("tags are not accepted")
        if isinstance(event, _ENDS):
            open_.pop()
        elif isinstance(event, (yaml.ScalarEvent, *_BEGINNINGS)):
            _note(event, open_[-1] if open_ else None, repeated)
        if isinstance(event, _BEGINNINGS):
            open_.append(_Keys(event))
        if len(open_) > MAX_DEPTH or count > MAX_NODES:
            raise ValueError("the document is nested too deeply or has too many parts")
    return repeated


def _note(event: yaml.Event, around: _Keys | None, repeated: list[tuple[int, str]]) -> None:
    """Takes note of a part of what is around it: a key, a value or an item."""
    if around is None or around.seen is None:
        return
    if around.is_key and isinstance(event, yaml.ScalarEvent):
        if event.value in around.seen:
            line = event.start_mark.line + 1 if event.start_mark else 0
            repeated.append((line, event.value))
        around.seen.add(event.value)
    around.is_key = not around.is_key
